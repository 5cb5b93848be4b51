"""The cause: the smallest set of plugins that stands between a pod and some nodes.

A node that rejects the pod even when it is empty is set aside as long as another node does not.
Among the remaining nodes the smallest set of rejecting plugins is the cause; of sets of one size,
the set of the most nodes. Where no node takes the pod even empty, nodes come first that would take
it after a wait, such as cordoned ones. Where there are none of these either, the same is asked
about the rejections that remain for ever; nodes that the pod itself does not choose come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.reasons.codes import code_of_reasons
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.explain.answer import Cause
from moorage.explain.emptied import Emptied
from moorage.explain.facts import fact_about
from moorage.explain.rejections import Rejection
from moorage.explain.waiting import lasting_rejections, one_cordon
from moorage.explain.words import joined
from moorage.framework.subjects import Subject

CHOOSING: Final = frozenset({Subject.NODE_NAME, Subject.NODE_AFFINITY, Subject.VOLUMES})
"""The subjects by which a pod, or its data, chooses nodes."""
_CAUSES_MOST: Final = 8
_ROWS_MOST: Final = 64
"""Rows whose reasons are read one by one, at most; a guess."""
_BITS: Final = 63


class Reach(Enum):
    """What it takes for a node to take the pod as it is."""

    PODS = "pods"
    """A node would take it if other pods left."""
    WAIT = "wait"
    """A node would take it after something that may happen: it is uncordoned, a partner comes."""
    NEVER = "never"
    """No node would take it, however long it waits."""


class Group(msgspec.Struct, frozen=True):
    """The rows that the same set of plugins rejects.

    Parameters
    ----------
    plugins
        The plugins, in the order of the profile.
    rows
        int64: the rows.
    empty
        Those of the plugins that reject these rows even when they are empty.
    """

    plugins: tuple[str, ...]
    rows: NDArray[np.int64]
    empty: frozenset[str] = frozenset()


class Causes(msgspec.Struct, frozen=True):
    """The cause why no node takes a pod.

    Parameters
    ----------
    reach
        What it would take for a node to take the pod.
    groups
        The sets of plugins, the cause first.
    untried
        Number of nodes that were not emptied on trial.
    """

    reach: Reach
    groups: tuple[Group, ...]
    untried: int


def find_causes(inquiry: Inquiry, emptied: Emptied) -> Causes:
    """Return why no node takes a pod, from the answers as they are and about empty nodes."""
    closed_n, never_n = emptied.never_n, np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    lasting = lasting_rejections(inquiry, emptied.rejects)
    for rejected_n in lasting.values():
        never_n |= rejected_n
    if len(never_n) and never_n.all():
        groups = _groups(one_cordon(inquiry, emptied.rejects), never_n)
        groups.sort(
            key=lambda group: (_chosen(inquiry, group), len(group.plugins), -len(group.rows))
        )
        return Causes(Reach.NEVER, tuple(_lasting(each, lasting) for each in groups), 0)
    reach, untried = Reach.PODS, int(emptied.untried_n.sum())
    if closed_n.all():
        reach, untried, closed_n = Reach.WAIT, 0, never_n
    groups = _groups(one_cordon(inquiry, inquiry.rejects), ~closed_n)
    groups.sort(key=lambda group: (len(group.plugins), -len(group.rows)))
    return Causes(reach, tuple(_with_empty(each, emptied) for each in groups), untried)


def _lasting(group: Group, lasting: Mapping[str, BoolArray]) -> Group:
    """Return a group with the plugins alone whose rejections waiting does not cure."""
    plugins = tuple(
        name for name in group.plugins if name in lasting and lasting[name][group.rows].any()
    )
    return Group(plugins, group.rows, frozenset(plugins))


def _with_empty(group: Group, emptied: Emptied) -> Group:
    """Return a group with those of its plugins that reject all its rows when they are empty."""
    empty = [name for name in group.plugins if emptied.rejected_empty(name, group.rows)]
    return msgspec.structs.replace(group, empty=frozenset(empty))


def _chosen(inquiry: Inquiry, group: Group) -> bool:
    """Return True, which sorts last, for nodes that the pod does not choose."""
    return any(inquiry.subject(plugin) in CHOOSING for plugin in group.plugins)


def _groups(rejects: Mapping[str, BoolArray], among_n: BoolArray) -> list[Group]:
    """Return the rows by the set of plugins that rejects them."""
    plugins = [name for name, rejected_n in rejects.items() if (rejected_n & among_n).any()]
    plugins = plugins[:_BITS]
    bits_n = np.zeros(len(among_n), np.int64)
    for index, plugin in enumerate(plugins):
        bits_n |= rejects[plugin].astype(np.int64) << index
    rows = np.flatnonzero(among_n)
    distinct, place_n = np.unique(bits_n[rows], return_inverse=True)
    return [
        Group(
            tuple(plugin for index, plugin in enumerate(plugins) if bits >> index & 1),
            rows[place_n == place],
        )
        for place, bits in enumerate(distinct.tolist())
    ]


def group_causes(inquiry: Inquiry, causes: Causes) -> tuple[Cause, ...]:
    """Return the causes with their reasons and facts, the first few."""
    rows = np.concatenate([group.rows for group in causes.groups]) if causes.groups else None
    return tuple(_cause_of(inquiry, group, rows) for group in causes.groups[:_CAUSES_MOST])


def _cause_of(inquiry: Inquiry, group: Group, rows: NDArray[np.int64] | None) -> Cause:
    reasons = {plugin: _reasons(inquiry, plugin, group) for plugin in group.plugins}
    facts = [
        fact_about(
            Rejection(
                inquiry=inquiry,
                plugin=plugin,
                rows=group.rows,
                reasons=reasons[plugin],
                never=plugin in group.empty,
                in_question=rows,
            )
        )
        for plugin in group.plugins
    ]
    return Cause(
        plugins=group.plugins,
        reasons=tuple(reason for plugin in group.plugins for reason in reasons[plugin]),
        fact=joined(facts),
        nodes=len(group.rows),
        code=code_of_reasons(reason for each in reasons.values() for reason in each),
    )


def _reasons(inquiry: Inquiry, plugin: str, group: Group) -> tuple[str, ...]:
    """Return a plugin's reasons on the rows of a group, the most frequent first."""
    answer = inquiry.answers.get(plugin)
    counts: Counter[str] = Counter()
    if answer is not None:
        table = inquiry.attempt.profile.handle.reasons
        ids, numbers = np.unique(answer.reason_n[group.rows], return_counts=True)
        for reason_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
            counts.update(dict.fromkeys(table.reasons(reason_id), number))
    passed_n = np.ones(len(group.rows), np.bool_)
    if answer is not None:
        passed_n = ~answer.failed_n[group.rows]
    for row in group.rows[passed_n][:_ROWS_MOST].tolist():  # next to nominated pods, or PreFilter
        counts.update(inquiry.reasons_at(row).get(plugin, ()))
    return tuple(
        reason for reason, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )
