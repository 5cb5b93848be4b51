"""Suggestions that need pods to leave: wait for one that is leaving, move or evict one, or several.

To move a pod is to delete one whose replacement fits elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import MIRROR, Pod
from moorage.engine.inquiry import Inquiry
from moorage.engine.trials.what_if import NodeStatuses, SearchWhatIf
from moorage.explain.answer import Suggestion
from moorage.explain.suggestions.budgets import (
    budgets_against,
    eviction_text,
    evictions_text,
    is_protected,
)
from moorage.explain.suggestions.ranked import AGAINST_BUDGET, EVICT, MOVE, WAIT, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.snapshot.group_labels import named_group
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

Rows = NDArray[np.int64]

_ROWS_MOST: Final = 256
SEARCHED_MOST: Final = 32
"""Rows whose pods are looked at; a guess."""
_TRIALS_MOST: Final = 32
_MOVES_MOST: Final = 4
_SEVERAL_MOST: Final = 4
"""Pods of one row that may go together; a guess."""
_SEVERAL_ROWS: Final = 8
_LOOKED_AT_MOST: Final = 128
"""Pods of which the first are tried, those whose budgets allow it first; a guess."""
_SYSTEM_PRIORITY: Final = 2_000_000_000
"""The priority of system-cluster-critical; above it is system-node-critical."""
_REPLACING: Final = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})


def leaving_pods(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield a pod to wait for, and the least important pods whose eviction would do."""
    inquiry = trying.inquiry
    if inquiry.pre_filter.status.rejected:
        return
    rows = lacking_least(trying)
    for row, pod in leaving_helps(trying, _leaving(inquiry, rows)):
        name = inquiry.snapshot.names[row]
        text = f"wait for pod {pod.key} to leave {name}: it is terminating"
        yield RankedSuggestion(WAIT, _suggestion(trying, "wait", text, row, [pod]))
        break
    staying = pods_to_evict(inquiry, rows[:SEARCHED_MOST])
    helping = list(islice(leaving_helps(trying, staying), _MOVES_MOST))
    if not helping:
        yield from _several(trying, rows[:_SEVERAL_ROWS])
        return
    for row, pod in helping:
        elsewhere = _place_elsewhere(trying, row, pod)
        if elsewhere and not is_protected(inquiry.snapshot, pod.pod):
            name = inquiry.snapshot.names[row]
            text = (
                f"move pod {pod.key} (priority {pod.priority}) from {name} to {elsewhere}: delete "
                f"it, and its {_owner(pod)} makes another, which fits there"
            )
            yield RankedSuggestion(MOVE, _suggestion(trying, "move", text, row, [pod]))
            break
    else:
        yield _eviction(trying, *helping[0])


def _eviction(trying: Trying, row: int, pod: PodInfo) -> RankedSuggestion:
    """Return the suggestion to evict a pod from a row."""
    owner, snapshot = _owner(pod), trying.inquiry.snapshot
    makes = owner in _REPLACING
    again = f"; its {owner} makes another, which needs a place of its own" if makes else ""
    text, allowed = eviction_text(snapshot, pod.pod, f"from {snapshot.names[row]}{again}")
    size = EVICT if allowed else AGAINST_BUDGET
    return RankedSuggestion(size, _suggestion(trying, "evict", text, row, [pod]))


def _suggestion(
    trying: Trying, kind: str, text: str, row: int, pods: Sequence[PodInfo]
) -> Suggestion:
    keys = [pod.key for pod in pods]
    return Suggestion(
        kind=kind,
        text=text,
        nodes=1,
        node=trying.inquiry.snapshot.names[row],
        delete=keys[0],
        also_delete=tuple(keys[1:]),
        command="" if kind == "wait" else delete_command(*pods),
    )


def _place_elsewhere(trying: Trying, row: int, pod: PodInfo) -> str:
    """Return a node for the pod's replacement, once the waiting pod is in its place; "" for none.

    Not sought for a pod of another scheduler, nor for one with claims for devices, which are made
    again as well.
    """
    spec, snapshot = pod.pod.spec, trying.inquiry.snapshot
    other = spec.scheduler_name != trying.pod.spec.scheduler_name
    if _owner(pod) not in _REPLACING or other or spec.resource_claims:
        return ""
    again = msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(spec, node_name=""))
    with snapshot.trial() as trial:
        trial.remove_pod(pod.uid)
        trial.add_pod(trying.inquiry.attempt.pod, row)
        rows = trying.rows_of(again, snapshot.all())
        return trying.first_name(rows) if len(rows) else ""


def _several(trying: Trying, rows: Rows) -> Iterator[RankedSuggestion]:
    """Yield the least important pods of one row whose leaving together is enough.

    None that a controller makes again: the first of the others would take the room back before the
    last has left.
    """
    inquiry = trying.inquiry
    snapshot, what_if = inquiry.snapshot, SearchWhatIf(inquiry.search, NodeStatuses(inquiry.search))
    least: tuple[tuple[bool, int, int], int, Sequence[PodInfo]] | None = None
    for row in rows.tolist():
        placed = pods_to_evict(inquiry, np.array([row]), alone=False)
        alone = [pod for _, pod in placed if _owner(pod) not in _REPLACING]
        pods = _fewest(what_if, row, alone[:_SEVERAL_MOST])
        if len(pods) < 2:
            continue
        protected = bool(budgets_against(snapshot, [each.pod for each in pods]))
        rank = (protected, len(pods), max(each.priority for each in pods))
        if least is None or rank < least[0]:
            least = rank, row, pods
    if least is None:
        return
    _, row, pods = least
    rest = f"from {snapshot.names[row]}"
    text, allowed = evictions_text(snapshot, [each.pod for each in pods], rest)
    size = EVICT + 0.05 * (len(pods) - 1) if allowed else AGAINST_BUDGET
    yield RankedSuggestion(size, _suggestion(trying, "evict", text, row, pods))


def _fewest(what_if: SearchWhatIf, row: int, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
    """Return the first pods without which every Filter passes the row, without needless ones.

    Empty where not even the leaving of all is enough.
    """
    off: list[PodInfo] = []
    with what_if.on_row(row) as trial:
        for pod in pods:
            if not trial.take_off(pod).ok:
                return ()
            off.append(pod)
            if trial.judge().ok:
                break
        else:
            return ()
        for pod in reversed(off[:-1]):  # the last was needed
            if not trial.put_on(pod).ok:
                return ()
            if trial.judge().ok:
                off.remove(pod)
            elif not trial.take_off(pod).ok:
                return ()
    return off


def delete_command(*pods: PodInfo) -> str:
    """Return the kubectl command that deletes some pods; one for each namespace."""
    names: dict[str, list[str]] = {}
    for pod in pods:
        names.setdefault(pod.namespace, []).append(pod.name)
    return " && ".join(
        f"kubectl -n {namespace} delete pod {' '.join(each)}" for namespace, each in names.items()
    )


def lacking_least(trying: Trying) -> Rows:
    """Return int64: the rows that would take the pod empty, those that lack least first."""
    inquiry, open_n = trying.inquiry, ~trying.emptied.never_n & ~trying.inquiry.fits_n
    rows = np.flatnonzero(open_n)
    number_n = np.zeros(len(rows), np.int64)
    for rejected_n in inquiry.rejects.values():
        number_n += rejected_n[rows]
    order = np.lexsort((rows, _lack(inquiry, rows), number_n))
    return rows[order][:_ROWS_MOST]


def _lack(inquiry: Inquiry, rows: Rows) -> NDArray[np.float64]:
    """Return float64, (rows,): the share of the pod's requests that is missing, added up."""
    lack_n = np.zeros(len(rows), np.float64)
    for name, wanted in inquiry.attempt.pod.part(RESOURCES).value.filter.items():
        if wanted:
            free_n = (
                inquiry.snapshot.allocatable(name)[rows] - inquiry.snapshot.requested(name)[rows]
            )
            lack_n += np.maximum(0, wanted - free_n) / wanted
    return lack_n


Placed = tuple[int, PodInfo]


def _leaving(inquiry: Inquiry, rows: Rows) -> list[Placed]:
    """Return the terminating pods of some rows."""
    return [
        (row, pod)
        for row in rows.tolist()
        for pod in inquiry.snapshot.pods(row)
        if pod.pod.metadata.deletion_timestamp
    ]


def pods_to_evict(inquiry: Inquiry, rows: Rows, *, alone: bool = True) -> list[Placed]:
    """Return pods that may be evicted, the least important of each row first.

    With ``alone`` only pods whose requests are what the row lacks.
    A pod of the same group is none of them, whether the group is scheduled as one: the group needs
    all its pods. Nor is one of the same controller, which makes another one at once.
    """
    staying: list[Placed] = []
    group = named_group(inquiry.attempt.pod.pod)
    for row in rows.tolist():
        here = sorted(inquiry.snapshot.pods(row), key=lambda pod: (pod.priority, pod.key))
        staying += [
            (row, pod)
            for pod in here
            if _may_be_evicted(pod, inquiry.attempt.pod.priority)
            and (group is None or named_group(pod.pod) != group)
            and not have_one_controller(pod.pod, inquiry.attempt.pod.pod)
            and (not alone or _covers_lack(inquiry, row, pod))
        ]
        if len(staying) >= _LOOKED_AT_MOST:
            break
    # Those first whose budgets allow it, then the least important; of these a pod without an
    # owner, whose place stays free.
    return sorted(
        staying,
        key=lambda placed: (
            is_protected(inquiry.snapshot, placed[1].pod),
            placed[1].priority,
            bool(_owner(placed[1])),
        ),
    )


def have_one_controller(one: Pod, other: Pod) -> bool:
    """Whether two pods have the same controller: where one makes room, as many wait as before."""
    first, second = one.metadata.controller, other.metadata.controller
    return first is not None and second is not None and first.uid == second.uid


def _may_be_evicted(pod: PodInfo, priority: int) -> bool:
    """Whether the eviction of a pod leaves room for another, of a priority.

    A pod that is made again with a higher priority takes the room back. Pods that the cluster
    needs are never suggested.
    """
    owner = _owner(pod)
    if owner == "DaemonSet" or MIRROR in pod.annotations or pod.priority >= _SYSTEM_PRIORITY:
        return False
    return not owner or pod.priority <= priority


def _owner(pod: PodInfo) -> str:
    """Return the kind of the pod's controller, "" for none."""
    controller = pod.pod.metadata.controller
    return "" if controller is None else controller.kind


def _covers_lack(inquiry: Inquiry, row: int, pod: PodInfo) -> bool:
    """Whether a pod's requests cover what the row lacks; only to choose what is worth a trial."""
    snapshot, frees = inquiry.snapshot, pod.part(RESOURCES).value.balanced
    for name, wanted in inquiry.attempt.pod.part(RESOURCES).value.filter.items():
        free = snapshot.allocatable(name).item(row) - snapshot.requested(name).item(row)
        if wanted > max(0, free + frees.get(name, 0)):
            return False
    return True


def leaving_helps(trying: Trying, placed: list[Placed]) -> Iterator[Placed]:
    """Yield the pods whose leaving lets every Filter pass their row."""
    if not placed:
        return
    what_if = SearchWhatIf(trying.inquiry.search, NodeStatuses(trying.inquiry.search))
    for row, pod in placed[:_TRIALS_MOST]:
        with what_if.on_row(row) as trial:
            if trial.take_off(pod).ok and trial.judge().ok:
                yield row, pod
