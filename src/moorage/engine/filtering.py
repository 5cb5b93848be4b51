"""Runs Filter plugins over the rows of a view; the first failing plugin decides a row.

Rules: scheduling spec, cycle sections 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.engine.nominated import filters_by_sums, nominated_first
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import count_reasons
from moorage.framework.meter import FILTER, NOT_TIMED
from moorage.framework.points import FilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.status import (
    Code,
    FilterAnswer,
    ReasonTable,
    Status,
    error,
)
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView

PASSED = 255
"""Plugin index of a row that no plugin failed."""

EXTENDED = 254
"""Plugin index of a row that an extender failed; so a profile has at most 254 Filter plugins."""

_BROKEN = np.array([not (code.rejected or code is Code.SUCCESS) for code in Code], np.bool_)


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


class FilterPass:
    """The verdict on every row of a view.

    Attributes
    ----------
    code_n
        uint8: `Code` of the first failing plugin, 0 where the row passed.
    reason_n
        int32: its interned reasons.
    plugin_n
        uint8: its index in ``profile.filters``, `PASSED` where the row passed.
    """

    __slots__ = ("_last", "code_n", "plugin_n", "reason_n")

    def __init__(self, n: int) -> None:
        self.code_n = np.zeros(n, np.uint8)
        self.reason_n = np.zeros(n, np.int32)
        self.plugin_n = np.full(n, PASSED, np.uint8)
        self._last = -1  # no plugin of a greater index failed any row

    def record(self, index: int, answer: FilterAnswer) -> None:
        """Take over an answer where it fails and no plugin of a lower index failed."""
        new = answer.code_n != 0
        new &= self.plugin_n > index
        if index > self._last:
            # Those rows passed so far, so there is nothing to replace: sums cost a fifth of masks.
            self._last = index
            self.code_n += answer.code_n * new
            self.reason_n += answer.reason_n * new
            self.plugin_n -= new * np.uint8(PASSED - index)
            return
        np.putmask(self.code_n, new, answer.code_n)
        np.putmask(self.reason_n, new, answer.reason_n)
        np.putmask(self.plugin_n, new, index)

    def merge(self, other: FilterPass) -> None:
        """Take over the verdicts of another pass where its plugin comes first."""
        if other._last < 0:
            return
        new = other.plugin_n < self.plugin_n
        np.putmask(self.code_n, new, other.code_n)
        np.putmask(self.reason_n, new, other.reason_n)
        np.putmask(self.plugin_n, new, other.plugin_n)
        self._last = max(self._last, other._last)

    def put(self, at: NDArray[np.int64], other: FilterPass) -> None:
        """Overwrite some rows with the verdicts of a pass over just those rows."""
        self.code_n[at] = other.code_n
        self.reason_n[at] = other.reason_n
        self.plugin_n[at] = other.plugin_n
        self._last = max(self._last, other._last)

    def put_failures(self, at: NDArray[np.int64], other: FilterPass) -> None:
        """Overwrite rows with the verdicts of a pass over just those rows, where it fails."""
        failed = ~other.passed
        rows = at[failed]
        self.code_n[rows] = other.code_n[failed]
        self.reason_n[rows] = other.reason_n[failed]
        self.plugin_n[rows] = other.plugin_n[failed]
        self._last = max(self._last, other._last)

    def put_sooner(self, at: NDArray[np.int64], other: FilterPass) -> None:
        """Overwrite rows with the verdicts of a pass over just those rows, where it fails first.

        For a pass of some plugins that judge more strictly now; the others would say the same.
        """
        sooner = ~other.passed & (other.plugin_n <= self.plugin_n[at])
        rows = at[sooner]
        self.code_n[rows] = other.code_n[sooner]
        self.reason_n[rows] = other.reason_n[sooner]
        self.plugin_n[rows] = other.plugin_n[sooner]
        self._last = max(self._last, other._last)

    def at(self, positions: NDArray[np.int64]) -> FilterPass:
        """Return the verdict on some of the rows."""
        part = FilterPass(0)
        part.code_n, part.reason_n = self.code_n[positions], self.reason_n[positions]
        part.plugin_n = self.plugin_n[positions]
        part._last = self._last
        return part

    def copy(self) -> FilterPass:
        """Return an independent copy."""
        twin = FilterPass(0)
        twin.code_n, twin.reason_n = self.code_n.copy(), self.reason_n.copy()
        twin.plugin_n, twin._last = self.plugin_n.copy(), self._last
        return twin

    @property
    def nbytes(self) -> int:
        """Memory of the three arrays, bytes."""
        return self.code_n.nbytes + self.reason_n.nbytes + self.plugin_n.nbytes

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool, (rows of the view,): whether each row's verdict is neither yes nor no."""
        broken: NDArray[np.bool_] = _BROKEN[self.code_n]
        return broken

    @property
    def passed(self) -> NDArray[np.bool_]:
        """bool, (rows of the view,): whether each row passed."""
        passed: NDArray[np.bool_] = self.plugin_n == PASSED
        return passed

    def status(self, profile: Profile, position: int) -> Status:
        """Return the verdict on one row as a `Status`."""
        index = int(self.plugin_n[position])
        if index == PASSED:
            return Status()
        reasons = profile.handle.reasons.reasons(int(self.reason_n[position]))
        name = "" if index == EXTENDED else profile.filters[index].name
        return Status(Code(int(self.code_n[position])), reasons, name)

    def rejectors(self, profile: Profile) -> frozenset[str]:
        """Return the plugins that rejected any row."""
        counts = np.bincount(self.plugin_n, minlength=PASSED + 1)
        return frozenset(plugin.name for i, plugin in enumerate(profile.filters) if counts[i])

    def pending(self, profile: Profile) -> frozenset[str]:
        """Return the plugins that answered Pending for any row."""
        indexes = np.unique(self.plugin_n[self.code_n == Code.PENDING])
        return frozenset(profile.filters[int(i)].name for i in indexes)

    def reason_counts(self, reasons: ReasonTable) -> dict[str, int]:
        """Return how many rows fail for each single reason."""
        counts = np.bincount(self.reason_n)
        used = np.flatnonzero(counts)
        return count_reasons((reasons.reasons(int(i)), int(counts[i])) for i in used if i)


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
    plugin = profile.filters[index]
    if getattr(plugin, "filters_row_by_row", False):
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
    broke = timed and answer is not None and bool(_BROKEN[answer.code_n].any())
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
    if answer is not None and len(answer.code_n) != len(view):
        reason = profile.handle.reasons.intern(
            f"plugin answered for {len(answer.code_n)} rows instead of {len(view)}"
        )
        n = len(view)
        return FilterAnswer(np.full(n, Code.ERROR, np.uint8), np.full(n, reason, np.int32))
    return answer


def raise_first_error(profile: Profile, verdict: FilterPass) -> None:
    """Raise `CycleError` for the first row whose verdict is neither success nor rejection."""
    broken = np.flatnonzero(verdict.broken)
    if len(broken):
        raise CycleError(broken_filter(verdict.status(profile, int(broken[0]))))


def broken_filter(status: Status) -> Status:
    """Return the Error an attempt ends with when a Filter answered neither yes nor no."""
    return error(f'running "{status.plugin}" filter plugin: {status.message}')


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
    by_sums = filters_by_sums(profile, state)
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
    if found.broken.any():
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
