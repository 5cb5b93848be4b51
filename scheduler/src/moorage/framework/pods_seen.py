"""How the Filters of an attempt see the pods of a row: as sums, as more than sums, or not at all.

Preemption takes pods off rows, and a pod is judged next to the pods nominated to a row. Both are
tried on many rows at once, in numbers, where no Filter sees any of these pods as more than sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

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
    others
        The other Filters: each sees some pods as more than sums, and does not see the rest.
    sees
        For each plugin that sees some pods as more than sums, whether it sees a pod.
    are_reused
        Whether the answers of all these Filters may be reused for replicas.

    Attributes
    ----------
    others
        The indexes of the other Filters.
    only_sums
        Whether no Filter sees the pods of a row otherwise than as sums.
    first
        Index of the first Filter that sees some pods as more than sums. A row that an earlier
        Filter fails keeps that result, whatever such pods do.
    """

    def __init__(
        self,
        table: NodeTable,
        *,
        by_node: Sequence[int],
        by_sums: Sequence[int],
        others: Sequence[FilterForms],
        sees: Sequence[Callable[[PodInfo], bool]],
        are_reused: bool,
    ) -> None:
        self.by_node = tuple(by_node)
        self.by_sums = tuple(by_sums)
        self.others = tuple(each.index for each in others)
        self.are_reused = are_reused
        self.only_sums = not others and not sees
        seeing = [each.index for each in others if each.sees_pod is not sees_no_pod]
        self.first = min(seeing, default=_NEVER) if sees else _NEVER
        self._sees = tuple(sees)
        self._selected = SelectedPods(table, self._sees_pod) if sees else None

    def sees(self, pods: Iterable[PodInfo]) -> bool:
        """Whether any of some pods is seen as more than sums."""
        return bool(self._sees) and any(map(self._sees_pod, pods))

    def below(self, rows: NDArray[np.int64], priority: int) -> NDArray[np.bool_] | None:
        """Return bool, (rows,): where such a pod has a lower priority; None for nowhere."""
        return None if self._selected is None else self._selected.below(rows, priority)

    def _sees_pod(self, pod: PodInfo) -> bool:
        return any(sees(pod) for sees in self._sees)


def pods_seen(
    table: NodeTable,
    filters: Iterable[FilterForms],
    followers: Iterable[Capabilities],
    skipped: Collection[str],
) -> PodsSeen | None:
    """Return how Filters see the pods of a row; None where one does not say which pods it sees.

    Parameters
    ----------
    table
        The pods by row.
    filters
        The Filters of a profile.
    followers
        The capabilities of the plugins whose PreFilter follows pods added to a row or removed.
    skipped
        Names of the plugins that take no part.
    """
    by_node: list[int] = []
    by_sums: list[int] = []
    others: list[FilterForms] = []
    taking_part = [each for each in filters if each.name not in skipped]
    for each in taking_part:
        if each.by_node:
            by_node.append(each.index)
        elif each.by_sums:
            by_sums.append(each.index)
        else:
            others.append(each)
    told = [each.sees_pod for each in others]
    told += [each.filter_sees_pod for each in followers]
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
        others=others,
        sees=sees,
        are_reused=all(each.reused for each in taking_part),
    )
