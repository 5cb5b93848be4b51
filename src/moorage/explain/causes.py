"""The cause: the smallest set of plugins that stands between a pod and some nodes.

A node that rejects the pod even when it is empty is set aside as long as another node does not.
Among the remaining nodes the smallest set of rejecting plugins is the cause; of sets of one size,
the set of the most nodes. Where no node takes the pod even empty, the same is asked about the
rejections that remain then; nodes that the pod itself does not choose come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.explain.answer import Cause
from moorage.explain.asking import Asked, BoolArray, Rejection
from moorage.explain.emptied import Emptied
from moorage.explain.facts import fact_about
from moorage.framework.subjects import Subject

CHOOSING: Final = frozenset({Subject.NODE_NAME, Subject.NODE_AFFINITY, Subject.VOLUMES})
"""The subjects by which a pod, or its data, chooses nodes."""
_CAUSES_MOST: Final = 8
_BITS: Final = 63


class Group(msgspec.Struct, frozen=True):
    """The rows that the same set of plugins rejects.

    Parameters
    ----------
    plugins
        The plugins, in the order of the profile.
    rows
        int64: the rows.
    """

    plugins: tuple[str, ...]
    rows: NDArray[np.int64]


class Causes(msgspec.Struct, frozen=True):
    """The cause why no node takes a pod.

    Parameters
    ----------
    never
        Whether no node takes it even empty.
    groups
        The sets of plugins, the cause first.
    untried
        Number of nodes that were not emptied on trial.
    """

    never: bool
    groups: tuple[Group, ...]
    untried: int


def find_causes(asked: Asked, emptied: Emptied) -> Causes:
    """Return why no node takes a pod, from the answers as they are and about empty nodes."""
    never_n = emptied.never_n
    if never_n.all():
        groups = _groups(emptied.rejects, never_n)
        groups.sort(key=lambda group: (_chosen(asked, group), len(group.plugins), -len(group.rows)))
        return Causes(True, tuple(groups), 0)
    groups = _groups(asked.rejects, ~never_n)
    groups.sort(key=lambda group: (len(group.plugins), -len(group.rows)))
    return Causes(False, tuple(groups), int(emptied.untried_n.sum()))


def _chosen(asked: Asked, group: Group) -> bool:
    """Return True, which sorts last, for nodes that the pod does not choose."""
    return any(asked.subject(plugin) in CHOOSING for plugin in group.plugins)


def _groups(rejects: Mapping[str, BoolArray], among_n: BoolArray) -> list[Group]:
    """Return the rows by the set of plugins that rejects them."""
    plugins = [name for name, rejected_n in rejects.items() if (rejected_n & among_n).any()]
    plugins = plugins[:_BITS]
    bits_n = np.zeros(len(among_n), np.int64)
    for index, plugin in enumerate(plugins):
        bits_n |= rejects[plugin].astype(np.int64) << index
    rows = np.flatnonzero(among_n)
    found, place_n = np.unique(bits_n[rows], return_inverse=True)
    return [
        Group(
            tuple(plugin for index, plugin in enumerate(plugins) if bits >> index & 1),
            rows[place_n == place],
        )
        for place, bits in enumerate(found.tolist())
    ]


def causes_told(asked: Asked, causes: Causes) -> tuple[Cause, ...]:
    """Return the causes with their reasons and facts, the first few."""
    return tuple(_told(asked, group, causes.never) for group in causes.groups[:_CAUSES_MOST])


def _told(asked: Asked, group: Group, never: bool) -> Cause:
    reasons = {plugin: _reasons(asked, plugin, group) for plugin in group.plugins}
    facts = [
        fact_about(
            Rejection(
                asked=asked, plugin=plugin, rows=group.rows, reasons=reasons[plugin], never=never
            )
        )
        for plugin in group.plugins
    ]
    return Cause(
        plugins=group.plugins,
        reasons=tuple(reason for plugin in group.plugins for reason in reasons[plugin]),
        fact=(", and " if any("," in fact for fact in facts) else " and ").join(facts),
        nodes=len(group.rows),
    )


def _reasons(asked: Asked, plugin: str, group: Group) -> tuple[str, ...]:
    """Return a plugin's reasons on the rows of a group, the most frequent first."""
    answer = asked.answers.get(plugin)
    counts: Counter[str] = Counter()
    if answer is not None:
        table = asked.attempt.profile.handle.reasons
        ids, numbers = np.unique(answer.reason_n[group.rows], return_counts=True)
        for reason_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
            counts.update(dict.fromkeys(table.reasons(reason_id), number))
    if not counts:
        counts.update(asked.reasons_at(int(group.rows[0])).get(plugin, ()))
    return tuple(
        reason for reason, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )
