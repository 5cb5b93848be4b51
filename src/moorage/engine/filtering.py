"""Runs Filter plugins over the rows of a view; the first failing plugin decides a row.

Rules: scheduling spec, cycle sections 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filter_pass import PASSES, FilterPass, RowVerdict, verdict_status
from moorage.engine.nominated import judge_row, nominated_first
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.meter import FILTER, NOT_TIMED
from moorage.framework.points import FilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.status import Code, FilterAnswer, Status, error
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import NOTHING_MORE, ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView


class CycleError(Exception):
    """A plugin broke during an attempt; carries the status the attempt ends with.

    Parameters
    ----------
    status
        Error, or a rejection.
    point
        Where it broke, if that is told apart.
    """

    def __init__(self, status: Status, point: str = "") -> None:
        self.status = status
        self.point = point
        super().__init__(status.message)


def run_filters(profile: Profile, state: CycleState, pod: PodInfo, view: NodeView) -> FilterPass:
    """Run the Filter plugins that were not skipped over a view.

    Raises
    ------
    CycleError
        A plugin answered Error for a row that no earlier plugin failed; the first such row in
        index order decides the text.
    """
    verdict = ask_filters(profile, state, pod, view, only=range(len(profile.filters)))
    raise_first_error(profile, verdict)
    return verdict


def ask_filters(
    profile: Profile, state: CycleState, pod: PodInfo, view: NodeView, *, only: Iterable[int]
) -> FilterPass:
    """Run some Filter plugins, by index, over a view; rows that broke are in the verdict."""
    verdict = FilterPass(len(view))
    for index in only:
        if profile.filters[index].name not in state.skip_filter:
            ask_into(verdict, profile, index, state, pod, view=view)
    return verdict


def ask_into(
    verdict: FilterPass,
    profile: Profile,
    index: int,
    state: CycleState,
    pod: PodInfo,
    *,
    view: NodeView,
) -> None:
    """Ask one plugin about a view and take its answer over into the verdict on that view.

    A plugin that judges row by row is asked only about rows that no earlier one failed: the others
    have their verdict, and each row costs a call.
    """
    forms = profile.filter_forms[index]
    plugin = forms.plugin
    if forms.row_by_row:
        open_rows = np.flatnonzero(verdict.plugin_n > index)
        if len(open_rows) < len(view):
            if len(open_rows):
                part = NodeView(view.size_of_all, view.row_numbers()[open_rows])
                answer = ask_filter(profile, plugin, state, pod, part)
                if answer is not None:
                    verdict.record(index, _spread(answer, open_rows, len(view)))
            return
    answer = ask_filter(profile, plugin, state, pod, view)
    if answer is not None:
        verdict.record(index, answer)


def _spread(answer: FilterAnswer, at: NDArray[np.int64], n: int) -> FilterAnswer:
    code_n, reason_n = np.zeros(n, np.uint8), np.zeros(n, np.int32)
    code_n[at], reason_n[at] = answer.code_n, answer.reason_n
    return FilterAnswer(code_n, reason_n)


def ask_filter(
    profile: Profile, plugin: FilterPlugin, state: CycleState, pod: PodInfo, view: NodeView
) -> FilterAnswer | None:
    """Ask one plugin about a view; one that raises answers Error for every row."""
    if state.meter is None:
        return _answer(profile, plugin, state, pod, view)
    began_ns = state.begins()
    answer = _answer(profile, plugin, state, pod, view)
    timed = began_ns != NOT_TIMED  # or the code is told nobody
    broke = timed and answer is not None and answer.is_broken
    code = Code.ERROR if broke else Code.SUCCESS
    state.ended(plugin.name, FILTER, code, since_ns=began_ns)
    return answer


def _answer(
    profile: Profile, plugin: FilterPlugin, state: CycleState, pod: PodInfo, view: NodeView
) -> FilterAnswer | None:
    try:
        answer = plugin.filter(state, pod, view)
    except Exception as problem:
        status = contained(plugin.name, "Filter", problem)
        n = len(view)
        reason = profile.handle.reasons.intern(*status.reasons)
        return FilterAnswer(np.full(n, Code.ERROR, np.uint8), np.full(n, reason, np.int32))
    if answer is not None and len(answer) != len(view):
        reason = profile.handle.reasons.intern(
            f"plugin answered for {len(answer)} rows instead of {len(view)}"
        )
        n = len(view)
        return FilterAnswer(np.full(n, Code.ERROR, np.uint8), np.full(n, reason, np.int32))
    return answer


def raise_first_error(profile: Profile, verdict: FilterPass) -> None:
    """Raise `CycleError` for the first row whose verdict is neither success nor rejection."""
    if verdict.is_broken:
        broken = np.flatnonzero(verdict.broken)
        raise CycleError(broken_filter(verdict.status(profile, int(broken[0]))))


def broken_filter(status: Status) -> Status:
    """Return the Error an attempt ends with when a Filter answered neither yes nor no."""
    return error(f'running "{status.plugin}" filter plugin: {status.message}')


def judge_one(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    view: NodeView,
    *,
    row: int,
    by_node: RowVerdict | None,
) -> Status:
    """Run the Filter plugins that were not skipped over one row, until one fails it.

    Parameters
    ----------
    profile, state, pod
        The attempt, after PreFilter.
    view, row
        The row, twice.
    by_node
        What those say of it that read its node alone; None when they are to be asked.

    Returns
    -------
    Status
        As `run_filters` would find; Error where that would raise.
    """
    found = PASSES if by_node is None else by_node
    for forms in profile.filter_forms:
        index, plugin = forms.index, forms.plugin
        if index >= found[0]:
            break
        if (by_node is not None and forms.by_node) or forms.name in state.skip_filter:
            continue
        said = judge_row(profile, (index,), state, pod, row, more=NOTHING_MORE)
        if said is None:
            answer = ask_filter(profile, plugin, state, pod, view)
            if answer is None or not answer.code_n[0]:
                continue
            said = index, answer.code_n.item(0), answer.reason_n.item(0)
        if said is not PASSES:
            found = said
            break
    status = verdict_status(profile, found)
    return status if status.ok or status.rejected else broken_filter(status)


def filter_nominated(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    view: NodeView,
    verdict: FilterPass,
) -> None:
    """Judge rows again where pods of equal or higher priority are nominated.

    Such a row must pass twice: with those pods added, then without them. What they add is local
    to their row: it is a trial of its own, or, where Filters see sums only, one shift for all
    rows. `verdict` is changed in place.
    """
    by_sums = profile.filters_by_sums(state.skip_filter)
    if by_sums is not None:
        filter_beside_sums(profile, state, pod, snapshot, by_sums, view=view, verdict=verdict)
        return
    for name, nominated in snapshot.nominations.items():
        row = snapshot.row_of(name) if nominated else None
        position = None if row is None else _position(view, row)
        if row is None or position is None:
            continue
        first = filter_beside_nominated(profile, state, pod, snapshot, row=row, nominated=nominated)
        if first is not None:
            verdict.put_failures(np.array([position]), first)


def filter_beside_sums(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    by_sums: Sequence[int],
    *,
    view: NodeView,
    verdict: FilterPass,
) -> None:
    """Judge rows again where pods are nominated, by the Filters that read sums.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    positions, added = snapshot.nominated_among(pod, view.row_numbers())
    if not len(positions):
        return
    rows = snapshot.rows(added.rows)
    with ShiftedSums(snapshot.table, rows, frozenset(added.amounts)) as sums:
        sums.shift(added.amounts, added.pods)
        found = ask_filters(profile, state, pod, rows, only=by_sums)
    verdict.put_sooner(positions, found)
    if found.is_broken:
        raise_first_error(profile, verdict.at(positions))


def filter_beside_nominated(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    row: int,
    nominated: Sequence[PodInfo],
) -> FilterPass | None:
    """Judge one row with the pods nominated to it that come first; None when none does.

    Those are of equal or higher priority, not the pod itself, and not on a node already.

    Raises
    ------
    CycleError
        A plugin broke.
    """
    added = nominated_first(snapshot, pod, nominated)
    if not added:
        return None
    with snapshot.trial() as trial:
        changed = state.copy()
        for other in added:
            put_on_row(profile, changed, pod, trial, other=other, row=row)
        return run_filters(profile, changed, pod, snapshot.rows([row]))


def put_on_row(
    profile: Profile, state: CycleState, pod: PodInfo, trial: Trial, *, other: PodInfo, row: int
) -> None:
    """Add a pod to a row in a trial and let the plugins' PreFilter results follow.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    trial.add_pod(other, row)
    for plugin in profile.extensions:
        if plugin.name not in state.skip_filter:
            _follow(plugin.name, "AddPod", partial(plugin.add_pod, state, pod, other, row=row))


def take_off_row(
    profile: Profile, state: CycleState, pod: PodInfo, trial: Trial, *, other: PodInfo, row: int
) -> None:
    """Remove a pod from a row in a trial and let the plugins' PreFilter results follow.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    trial.remove_pod(other.uid)
    for plugin in profile.extensions:
        if plugin.name not in state.skip_filter:
            follow = partial(plugin.remove_pod, state, pod, other, row=row)
            _follow(plugin.name, "RemovePod", follow)


def _follow(name: str, point: str, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as problem:
        text = contained(name, point, problem).message
        raise CycleError(
            error(f'running {point} on PreFilter plugin "{name}": {text}')
        ) from problem


def _position(view: NodeView, row: int) -> int | None:
    if view.rows is None:
        return row
    found = np.flatnonzero(view.rows == row)
    return int(found[0]) if len(found) else None
