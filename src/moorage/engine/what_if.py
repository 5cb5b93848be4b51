"""A failed search as PostFilter plugins may use it: statuses by row, and trials on one row.

Implements `framework.what_if`. A trial starts from the attempt's cycle state, so that the plugins'
PreFilter results follow what is taken off and put on; the cluster is as before when it ends.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.filter_pass import PASSED, FilterPass, RowVerdict
from moorage.engine.filtering import (
    CycleError,
    ask_filter,
    broken_filter,
    filter_beside_nominated,
    judge_one,
    put_on_row,
    take_off_row,
)
from moorage.engine.nominated import judge_row
from moorage.engine.shape_entry import Entry
from moorage.engine.summed_row import SummedRow
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.framework.status import SUCCESS, Code, Status
from moorage.framework.what_if import Room, TakesArraysError
from moorage.snapshot.nominated_rows import NominatedLevel, NominatedSums
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.shifted import RowSums, ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]


class NodeStatuses(Mapping[str, Status]):
    """Status of every node after a failed search, nodes that were not filtered included.

    Nothing is spelled out before it is asked for: at thousands of nodes most plugins ask for none.

    Parameters
    ----------
    profile, snapshot
        The attempt's.
    view, verdict
        The rows that were filtered and the verdict on them.
    absent
        Status of every other node.
    """

    def __init__(
        self,
        profile: Profile,
        snapshot: Snapshot,
        *,
        view: NodeView,
        verdict: FilterPass,
        absent: Status,
    ) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._view = view
        self._verdict = verdict
        self._absent = absent
        self._positions: dict[int, int] | None = None

    def __getitem__(self, name: str) -> Status:
        row = self._snapshot.row_of(name)
        if row is None:
            raise KeyError(name)
        return self.status_of(row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshot.names)

    def __len__(self) -> int:
        return self._snapshot.num_nodes

    def status_of(self, row: int) -> Status:
        """Return the status of one row."""
        position = self._position(row)
        return self._absent if position is None else self._verdict.status(self._profile, position)

    def rows_with(self, code: Code) -> NDArray[np.int64]:
        """Return int64: the rows whose status has this code, ascending; not to be changed."""
        if self._view.is_all:
            return self._verdict.rows_with(code)
        found = np.full(self._snapshot.num_nodes, self._absent.code is code)
        found[self._view.row_numbers()] = self._verdict.code_n == code
        return np.flatnonzero(found)

    def _position(self, row: int) -> int | None:
        if self._view.is_all:
            return row
        if self._positions is None:
            self._positions = {int(each): i for i, each in enumerate(self._view.row_numbers())}
        return self._positions.get(row)


class Attempt(msgspec.Struct, frozen=True):
    """A pod's attempt as plugins are asked about it.

    `entry` is what is known of the pod's shape, where the search was answered from it.
    """

    profile: Profile
    snapshot: Snapshot
    state: CycleState
    pod: PodInfo
    entry: Entry | None = None


class SearchWhatIf:
    """`WhatIf` over one failed search.

    Parameters
    ----------
    attempt
        The pod, its state after PreFilter, and who judges.
    statuses
        What the search ended with.
    """

    def __init__(self, attempt: Attempt, statuses: NodeStatuses) -> None:
        self._attempt = attempt
        self._statuses = statuses
        self._by_sums = attempt.profile.filters_by_sums(attempt.state.skip_filter)
        self._level: tuple[NominatedLevel, int | None] | None = None

    def rows_with(self, code: Code) -> NDArray[np.int64]:
        """Return int64: the rows whose status in the search has this code, ascending."""
        return self._statuses.rows_with(code)

    def status_of(self, row: int) -> Status:
        """Return the status of one row in the search."""
        return self._statuses.status_of(row)

    @property
    def independent(self) -> bool:
        """Whether no Filter of this attempt sees more of a row's pods than their sums."""
        return self._by_sums is not None

    @property
    def alike(self) -> object | None:
        """The same for attempts whose Filters answer alike about a row."""
        return self._attempt.entry

    def nominated(self) -> tuple[NominatedLevel, int | None]:
        """Return the pods nominated first, as sums, and the row the pod itself is nominated to."""
        if self._level is None:
            self._level = self._attempt.snapshot.nominated_level(self._attempt.pod)
        return self._level

    @contextmanager
    def on_rows(self, rows: NDArray[np.int64]) -> Iterator[TriedRows]:
        """Try things out on many rows at once, where they are independent."""
        assert self._by_sums is not None, "rows depend on one another"
        snapshot, pod = self._attempt.snapshot, self._attempt.pod
        view = NodeView.spanning(snapshot.num_nodes, rows)
        resources = frozenset(pod.part(RESOURCES).value.filter)
        with ShiftedSums(snapshot.table, view, resources) as sums:
            yield TriedRows(self._attempt, view, sums, self._by_sums, self._nominated(rows))

    def on_sums(self, row: int) -> SummedRow | None:
        """Try things out on one row by its sums; None where it takes arrays."""
        at, by_sums = self._attempt, self._by_sums
        known = None if at.entry is None else at.entry.by_node
        if by_sums is None or known is None:
            return None
        level, own = self.nominated()
        if own == row:
            return None
        return SummedRow(
            at.profile,
            row,
            self._ask,
            soonest=by_sums[0] if by_sums else PASSED,
            by_node=known.verdict_at(row),
            nominated=level.at(row),
        )

    def _ask(self, row: int, more: RowSums) -> RowVerdict:
        """Ask the Filters that read sums about one row that holds more."""
        at = self._attempt
        found = judge_row(at.profile, self._by_sums or (), at.state, at.pod, row, more=more)
        if found is None:
            raise TakesArraysError
        return found

    def _nominated(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NominatedSums] | None:
        """Return where in the rows nominated pods come first, and what they add; None: nowhere."""
        if not self._attempt.snapshot.nominations:
            return None
        found = self._attempt.snapshot.nominated_among(self._attempt.pod, rows)
        return found if len(found[0]) else None

    @contextmanager
    def on_row(self, row: int) -> Iterator[TriedRow]:
        """Try things out on a row; everything is undone at the end."""
        with self._attempt.snapshot.trial() as trial:
            yield TriedRow(self._attempt, trial, row)


class TriedRow:
    """`RowTrial` over a trial of the snapshot and a copy of the attempt's cycle state."""

    def __init__(self, attempt: Attempt, trial: Trial, row: int) -> None:
        self._attempt = attempt
        self._trial = trial
        self._row = row
        self._state = attempt.state.copy()

    def take_off(self, other: PodInfo) -> Status:
        """Take a pod off the row; Error where a plugin cannot follow."""
        at = self._attempt
        try:
            take_off_row(at.profile, self._state, at.pod, self._trial, other=other, row=self._row)
        except CycleError as broken:
            return broken.status
        return SUCCESS

    def put_on(self, other: PodInfo) -> Status:
        """Put a pod on the row; Error where a plugin cannot follow."""
        at = self._attempt
        try:
            put_on_row(at.profile, self._state, at.pod, self._trial, other=other, row=self._row)
        except CycleError as broken:
            return broken.status
        return SUCCESS

    def judge(self) -> Status:
        """Run every Filter on the row: beside nominated pods first, then without them."""
        at = self._attempt
        try:
            nominated = at.snapshot.nominations.get(at.snapshot.names[self._row], ())
            if nominated:
                first = filter_beside_nominated(
                    at.profile,
                    self._state,
                    at.pod,
                    at.snapshot,
                    row=self._row,
                    nominated=nominated,
                )
                if first is not None and not first.passed[0]:
                    return first.status(at.profile, 0)
        except CycleError as broken:
            return broken.status
        by_node = None if at.entry is None else at.entry.by_node
        known = None if by_node is None else by_node.verdict_at(self._row)
        view = at.snapshot.rows([self._row])
        return judge_one(at.profile, self._state, at.pod, view, row=self._row, by_node=known)


class Verdict:
    """`RowsVerdict` over a pass of the Filters."""

    def __init__(self, profile: Profile, found: FilterPass) -> None:
        self._profile = profile
        self._found = found
        self.passed: NDArray[np.bool_] = found.passed
        self.broken: NDArray[np.bool_] = found.broken

    def status(self, position: int) -> Status:
        """Return the status of one row."""
        status = self._found.status(self._profile, position)
        return status if status.ok or status.rejected else broken_filter(status)


class TriedRows:
    """`RowsTrial` over shifted sums of the snapshot.

    Parameters
    ----------
    attempt, view
        Who asks, about which rows.
    sums
        The rows' sums.
    by_sums
        Indexes of the Filters that read them.
    nominated
        Where in the view nominated pods come first, and what they add; None for nowhere.
    """

    def __init__(
        self,
        attempt: Attempt,
        view: NodeView,
        sums: ShiftedSums,
        by_sums: tuple[int, ...],
        nominated: tuple[NDArray[np.int64], NominatedSums] | None,
    ) -> None:
        self._attempt = attempt
        self._view = view
        self._by_sums = by_sums
        self._nominated = nominated
        self._room: Room | None = None
        self._shift = sums.shift

    def shift(self, amounts: Mapping[str, NDArray[np.int64]], pods: NDArray[np.int64]) -> None:
        """Add to the sums of each row."""
        self._shift(amounts, pods)
        self._room = None

    def judge(self) -> Verdict:
        """Run every Filter on the rows as they are now."""
        at = self._attempt
        known = None if at.entry is None else at.entry.by_node
        if known is None:
            return Verdict(at.profile, self._run(range(len(at.profile.filters))))
        # What Filters say that see the node alone is known, with any pods and without.
        found = known.at(self._view.row_numbers())
        found.merge(self._pass(self._by_sums, self._view))
        self._beside(found.put_sooner, self._by_sums)
        return Verdict(at.profile, found)

    def put_back(
        self, amounts: Mapping[str, NDArray[np.int64]], which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Put a pod back on rows that still pass with it; return where there was no room."""
        room = self._room or self._measured()
        if room is None:
            return self._put_back_and_judge(amounts, which)
        self._room = room
        return which & ~room.take(amounts, which)

    def _put_back_and_judge(
        self, amounts: Mapping[str, NDArray[np.int64]], which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        added = {name: amount * which for name, amount in amounts.items()}
        self._shift(added, which.astype(np.int64))
        gone: NDArray[np.bool_] = which & ~self._run(self._by_sums).passed
        if gone.any():
            less = {name: -amount * gone for name, amount in amounts.items()}
            self._shift(less, -gone.astype(np.int64))
        return gone

    def _measured(self) -> Room | None:
        """Return the room on the rows as they are now; None where a Filter cannot tell it."""
        at = self._attempt
        found: Room | None = None
        for index in self._by_sums:
            room = at.profile.filter_forms[index].room
            if found is not None or room is None:
                return None
            found = room(at.state, at.pod, self._view)
        if found is not None and self._nominated is not None:
            # Nominated pods only take room, so a row that passes beside them passes without.
            positions, added = self._nominated
            found.lessen(positions, added.amounts, added.pods)
        return found

    def _run(self, only: Iterable[int]) -> FilterPass:
        found = self._pass(only, self._view)
        self._beside(found.put_failures, only)
        return found

    def _beside(self, put: Callable[[Rows, FilterPass], None], only: Iterable[int]) -> None:
        """Judge the rows with nominated pods beside those, and put the verdicts in."""
        if self._nominated is None:
            return
        positions, added = self._nominated
        snapshot = self._attempt.snapshot
        view = snapshot.rows(added.rows)
        with ShiftedSums(snapshot.table, view, frozenset(added.amounts)) as sums:
            sums.shift(added.amounts, added.pods)
            put(positions, self._pass(only, view))

    def _pass(self, only: Iterable[int], view: NodeView) -> FilterPass:
        at = self._attempt
        found = FilterPass(len(view))
        for index in only:
            plugin = at.profile.filters[index]
            if plugin.name not in at.state.skip_filter:
                answer = ask_filter(at.profile, plugin, at.state, at.pod, view)
                if answer is not None:
                    found.record(index, answer)
        return found
