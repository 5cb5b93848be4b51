"""The rejections that remain when a node is empty: every node is emptied on trial.

The pods of DaemonSets stay, as `staying` says: they are made again at once.
Filters that read the node alone answer the same about an empty node. Filters that read the sums of
the pods' requests are asked about all nodes at once, with the sums taken off. Filters that read a
node's pods are asked about one node after another, with its pods taken off, until one node takes
the pod; so are Filters of volumes that other pods use. A Filter of devices is asked again without
the allocations of other pods. A Filter that reads the whole cluster says by its code whether
evictions may help: to empty one node would prove nothing about the pods of others.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.filters.asking import ask_filter
from moorage.engine.filters.moving import take_off_row
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.explain.devices import claims_of, of_others, released_devices
from moorage.explain.rejections import ask_again
from moorage.explain.staying import staying_pods, stays
from moorage.explain.volumes import ONE_POD
from moorage.framework.capabilities import Reads
from moorage.framework.forms import FilterForms
from moorage.framework.status import Code, FilterAnswer
from moorage.framework.subjects import Subject
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.shifted import ShiftedSums

IntArray = NDArray[np.int64]

_LOOKED_AT_FIRST: Final = 512
"""Rows whose pods are looked at first: if none decides there, no others are. A guess."""
_TRIED_LEAST: Final = 8
"""Nodes that are emptied even where the first of them takes the pod. A guess."""


class Emptied(msgspec.Struct, frozen=True):
    """The rejections of empty nodes.

    Parameters
    ----------
    rejects
        Plugin to bool, (nodes,): the rows that it rejects as they are and empty.
    untried_n
        bool, (nodes,): rows that were not tried, because enough others were.
    """

    rejects: dict[str, BoolArray]
    untried_n: BoolArray

    @property
    def never_n(self) -> BoolArray:
        """bool, (nodes,): the rows that do not take the pod even when they are empty."""
        never_n = np.zeros(len(self.untried_n), np.bool_)
        for rejected_n in self.rejects.values():
            never_n |= rejected_n
        return never_n

    def rejected_empty(self, plugin: str, rows: IntArray) -> bool:
        """Whether a plugin rejects all of some rows even when they are empty."""
        rejected_n = self.rejects.get(plugin)
        return rejected_n is not None and bool(rejected_n[rows].all())


def empty_nodes(inquiry: Inquiry, *, rows_most: int) -> Emptied:
    """Empty every node on trial, and return which rejections remain.

    Parameters
    ----------
    inquiry
        The answers about the nodes as they are.
    rows_most
        How many nodes are emptied one after another, at most.

    Notes
    -----
    A Filter that answers UnschedulableAndUnresolvable says that no eviction helps; it is not asked
    about the empty node again.
    """
    forms = {each.name: each for each in inquiry.attempt.profile.filter_forms}
    emptied_by: dict[str, BoolArray] = {}
    for plugin, rejected_n in inquiry.rejects.items():
        own = forms.get(plugin)
        if inquiry.subject(plugin) is Subject.DEVICES:
            emptied_by[plugin] = _without_allocations(inquiry, plugin)
        elif own is None or own.by_node or plugin in inquiry.pre_filter.restricted_by:
            emptied_by[plugin] = rejected_n
        elif own.by_sums:
            emptied_by[plugin] = rejected_n & _without_sums(inquiry, own)
        else:
            emptied_by[plugin] = rejected_n & _unresolvable(inquiry, plugin)
    emptied = Emptied(emptied_by, np.zeros(inquiry.snapshot.num_nodes, np.bool_))
    _one_by_one(inquiry, forms, emptied, rows_most)
    return Emptied({name: n for name, n in emptied_by.items() if n.any()}, emptied.untried_n)


def _without_sums(inquiry: Inquiry, forms: FilterForms) -> BoolArray:
    """Return bool, (nodes,): the rows that a Filter of sums rejects when they are empty."""
    resources = sorted(inquiry.attempt.pod.part(RESOURCES).value.filter)
    snapshot = inquiry.snapshot
    amounts = {name: -snapshot.requested(name) for name in resources}
    count_n = -snapshot.pod_count
    failed_n = _with_sums(inquiry, forms, amounts, count_n)
    # Pods of DaemonSets are looked up only where they decide: on a few rows first.
    rows = np.flatnonzero(inquiry.rejects[forms.name] & ~failed_n)
    for some in (rows[:_LOOKED_AT_FIRST], rows):
        again_n = _with_staying(inquiry, forms, some, (amounts, count_n))
        if not (again_n & ~failed_n).any():
            break
    return failed_n | again_n


def _with_staying(
    inquiry: Inquiry,
    forms: FilterForms,
    rows: IntArray,
    empty: tuple[dict[str, IntArray], IntArray],
) -> BoolArray:
    """Return bool, (nodes,): what a Filter rejects where the pods that stay on some rows count."""
    amounts, count_n = {name: each.copy() for name, each in empty[0].items()}, empty[1].copy()
    staying = staying_pods(inquiry, rows)
    if not staying:
        return np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    for row, pod in staying:
        count_n[row] += 1
        for name, amount in pod.part(RESOURCES).value.balanced.items():
            if name in amounts:
                amounts[name][row] += amount
    return _with_sums(inquiry, forms, amounts, count_n)


def _with_sums(
    inquiry: Inquiry, forms: FilterForms, amounts: dict[str, IntArray], count_n: IntArray
) -> BoolArray:
    """Return bool, (nodes,): the rows that a Filter rejects with other sums."""
    view = inquiry.snapshot.all()
    with ShiftedSums(inquiry.snapshot.table, view, frozenset(amounts)) as sums:
        sums.shift(amounts, count_n)
        return _failed(ask_filter(inquiry.attempt, forms, view), len(view))


def _without_allocations(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): the rows that a Filter rejects also where no other pod has devices."""
    rejected_n = inquiry.rejects[plugin].copy()
    rows, pod = np.flatnonzero(rejected_n), inquiry.attempt.pod.pod
    if not any(of_others(pod, claim) for claim in inquiry.snapshot.listers.resource_claims.all()):
        return rejected_n
    # The lister says what the pod's own claims have; the devices of all others are thousands.
    own = [claim for claim in claims_of(pod, inquiry.snapshot) if of_others(pod, claim)]
    with released_devices(inquiry.snapshot, own):
        _status, answer = ask_again(inquiry, plugin, rows, pod, given_back=partial(of_others, pod))
    rejected_n[rows] = _failed(answer, len(rows))
    return rejected_n


def _failed(answer: FilterAnswer | None, n: int) -> BoolArray:
    return np.zeros(n, np.bool_) if answer is None else answer.failed_n.copy()


def _unresolvable(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): the rows about which a Filter says that no eviction helps."""
    answer = inquiry.answers.get(plugin)
    if answer is None:
        return np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    code = np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    unresolvable_n: BoolArray = answer.code_n == code
    return unresolvable_n


def _one_by_one(
    inquiry: Inquiry, forms: dict[str, FilterForms], emptied: Emptied, rows_most: int
) -> None:
    """Empty the open rows one after another: a few, and until one takes the pod."""
    others = [
        forms[plugin]
        for plugin in inquiry.rejects
        if plugin in forms and Reads.SUMS not in forms[plugin].reads
        if forms[plugin].reads & ~Reads.NODE == Reads.PODS
        or inquiry.subject(plugin) is Subject.VOLUME_USE
    ]
    if not others:
        return
    rejected_n = np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    for each in others:
        rejected_n |= inquiry.rejects[each.name]
    open_rows = np.flatnonzero(rejected_n & ~emptied.never_n)
    taken = False
    for tried, row in enumerate(open_rows.tolist()):
        if tried >= rows_most:
            emptied.untried_n[open_rows[tried:]] = True
            return
        remaining = _rejecting_empty(inquiry, others, row)
        for plugin in remaining:
            emptied.rejects[plugin][row] = True
        taken = taken or not remaining
        if taken and tried + 1 >= _TRIED_LEAST:
            emptied.untried_n[open_rows[tried + 1 :]] = True
            return


def _rejecting_empty(inquiry: Inquiry, others: list[FilterForms], row: int) -> list[str]:
    """Return the Filters that reject a row as it is and without its pods."""
    snapshot, attempt = inquiry.snapshot, inquiry.attempt.branch()
    view = snapshot.rows([row])
    names = []
    with snapshot.trial() as trial:
        for pod in list(snapshot.pods(row)):
            if not stays(pod, next_to=attempt.pod.pod):
                take_off_row(attempt, trial, pod, row)
        for each in others:
            if inquiry.rejects[each.name][row]:
                answer = ask_filter(attempt, each, view)
                if answer is not None and answer.code_n[0] and not _elsewhere(inquiry, answer):
                    names.append(each.name)
    return names


def _elsewhere(inquiry: Inquiry, answer: FilterAnswer) -> bool:
    """Whether a rejection of one row is about a pod that may be on any node."""
    reasons = inquiry.attempt.profile.handle.reasons.reasons(int(answer.reason_n[0]))
    return any(ONE_POD in each for each in reasons)
