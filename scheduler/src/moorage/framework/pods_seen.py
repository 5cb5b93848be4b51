"""How the Filters of an attempt see the pods of a row: as sums, as more than sums, or not at all.

Preemption takes pods off rows, and a pod is judged next to the pods nominated to a row. Both are
tried on many rows at once, in numbers, where no Filter sees any of these pods as more than sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.capabilities import Capabilities, sees_no_pod
from moorage.framework.forms import FilterForms
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.selected_pods import SelectedPods
from moorage.snapshot.table import NodeTable

_NEVER = 255  # greater than the index of any Filter plugin


class PodsSeen:
    """How some Filter plugins of a profile see the pods of a row.

    Parameters
    ----------
    table
        The pods by row.
    by_node
        Indexes of the Filters that read the node alone.
    by_sums
        Indexes of the Filters that see pods as sums.
    by_counts
        Indexes of the Filters that judge by counts of pods, of which each pod's kind is known.
    others
        The other Filters: each sees some pods as more than sums, and does not see the rest.
    sees
        For each plugin that sees some pods as more than sums or counts, whether it sees a pod.
    counting
        The Filters by counts to which a pod nominated to a row matters, with whether they see it.
    are_reused
        Whether the answers of all these Filters may be reused for replicas.

    Attributes
    ----------
    others
        The indexes of the other Filters.
    only_sums
        Whether no Filter sees the pods of a row otherwise than as sums.
    only_numbers
        Whether no Filter sees pods on a row otherwise than as sums or counts.
    first
        Index of the first Filter that sees some pods nominated to a row as more than sums. A row
        that an earlier Filter fails keeps that result, whatever such pods do.
    first_of_placed
        The same of pods on the row.
    """

    def __init__(
        self,
        table: NodeTable,
        *,
        by_node: Sequence[int],
        by_sums: Sequence[int],
        by_counts: Sequence[int],
        others: Sequence[FilterForms],
        sees: Sequence[Callable[[PodInfo], bool]],
        counting: Mapping[int, Callable[[PodInfo], bool]],
        are_reused: bool,
    ) -> None:
        self.by_node = tuple(by_node)
        self.by_sums = tuple(by_sums)
        self.by_counts = tuple(by_counts)
        self.others = tuple(each.index for each in others)
        self.are_reused = are_reused
        self.only_sums = not others and not sees and not by_counts
        self.only_numbers = not sees
        seeing = [each.index for each in others if each.sees_pod is not sees_no_pod]
        self.first_of_placed = min(seeing, default=_NEVER) if sees else _NEVER
        self.first = min([self.first_of_placed, *counting])
        self._sees = tuple(sees)
        self._sees_nominated = (*sees, *counting.values())
        self._selected = SelectedPods(table, self._sees_pod) if sees else None

    def sees(self, pods: Iterable[PodInfo]) -> bool:
        """Whether any of some nominated pods is seen as more than sums."""
        sees = self._sees_nominated
        return bool(sees) and any(one(pod) for pod in pods for one in sees)

    def below(self, rows: NDArray[np.int64], priority: int) -> NDArray[np.bool_] | None:
        """Return bool, (rows,): where a pod that is seen has a lower priority; None: nowhere."""
        return None if self._selected is None else self._selected.below(rows, priority)

    def _sees_pod(self, pod: PodInfo) -> bool:
        return any(sees(pod) for sees in self._sees)


def pods_seen(
    table: NodeTable,
    filters: Iterable[FilterForms],
    followers: Mapping[str, Capabilities],
    skipped: Collection[str],
    count_nominated: Collection[str],
) -> PodsSeen | None:
    """Return how Filters see the pods of a row; None where one does not say which pods it sees.

    Parameters
    ----------
    table
        The pods by row.
    filters
        The Filters of a profile.
    followers
        The capabilities of the plugins whose PreFilter follows pods added to a row or removed, by
        name.
    skipped
        Names of the plugins that take no part.
    count_nominated
        Names of the plugins that count nominated pods themselves.
    """
    by_node: list[int] = []
    by_sums: list[int] = []
    by_counts: list[int] = []
    counting: dict[int, Callable[[PodInfo], bool]] = {}
    others: list[FilterForms] = []
    taking_part = [each for each in filters if each.name not in skipped]
    for each in taking_part:
        if each.by_node:
            by_node.append(each.index)
        elif each.by_sums:
            by_sums.append(each.index)
        elif each.counts is not None:
            by_counts.append(each.index)
            if each.name not in count_nominated:
                counting[each.index] = each.sees_pod or _sees_any_pod
        else:
            others.append(each)
    told = [each.sees_pod for each in others]
    told += [each.filter_sees_pod for each in followers.values() if each.filter_counts is None]
    sees: list[Callable[[PodInfo], bool]] = []
    for one in dict.fromkeys(told):
        if one is None:
            return None
        if one is not sees_no_pod:
            sees.append(one)
    return PodsSeen(
        table,
        by_node=by_node,
        by_sums=by_sums,
        by_counts=by_counts,
        others=others,
        sees=sees,
        counting=counting,
        are_reused=all(each.reused for each in taking_part),
    )


def _sees_any_pod(other: PodInfo) -> bool:
    del other
    return True
