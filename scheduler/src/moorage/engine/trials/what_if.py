"""A failed search lent to PostFilter plugins: statuses by row, and trials on rows.

Implements `framework.what_if`. A trial starts from the attempt's cycle state, so that the plugins'
PreFilter results follow every pod taken off or put on. The cluster is unchanged when the trial
ends.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from moorage.base.no_names import NO_NAMES
from moorage.engine.search import Search
from moorage.engine.trials.row import TriedRow
from moorage.engine.trials.rows import TriedRows
from moorage.engine.trials.scalar_trial import ScalarTrial
from moorage.framework.status import Code, Status
from moorage.snapshot.nominated_rows import NominatedLevel, NominatedSums
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.shifted import ShiftedSums
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]

# Looking at the pods of each row would take long on a large cluster; a guess.
_ROWS_LOOKED_AT = 256


class NodeStatuses(Mapping[str, Status]):
    """Status of every node after a failed search, nodes that were not filtered included.

    Statuses are made only when read: at thousands of nodes most plugins read none.

    Parameters
    ----------
    search
        The failed search.
    """

    def __init__(self, search: Search) -> None:
        self._profile = search.attempt.profile
        self._snapshot = search.attempt.snapshot
        self._view = search.view
        self._filtered = search.filtered
        self._absent = search.absent_status
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
        return self._absent if position is None else self._filtered.status(self._profile, position)

    def rows_with(self, code: Code) -> Rows:
        """Return int64: the rows whose status has this code, ascending; not to be changed."""
        if self._view.is_all:
            return self._filtered.rows_with(code)
        found = np.full(self._snapshot.num_nodes, self._absent.code is code)
        found[self._view.row_numbers()] = self._filtered.code_n == code
        return np.flatnonzero(found)

    def _position(self, row: int) -> int | None:
        if self._view.is_all:
            return row
        if self._positions is None:
            self._positions = {int(each): i for i, each in enumerate(self._view.row_numbers())}
        return self._positions.get(row)


class SearchWhatIf:
    """`WhatIf` over one failed search.

    Parameters
    ----------
    search
        The search.
    statuses
        The statuses of the nodes at the end of the search.

    Attributes
    ----------
    rejected_in_pre_filter
        Whether PreFilter rejected the pod, so that no Filter was asked about any row.
    """

    def __init__(self, search: Search, statuses: NodeStatuses) -> None:
        self._attempt = attempt = search.attempt
        self._known = search.known
        self.rejected_in_pre_filter = search.pre_filter.status.rejected
        self._statuses = statuses
        self._pods_seen = attempt.profile.pods_seen(attempt.state.skip_filter)
        self._level: tuple[NominatedLevel, int | None] | None = None

    def rows_with(self, code: Code) -> Rows:
        """Return int64: the rows whose status in the search has this code, ascending.

        Rows out of the attempt's scope are left out: PreFilter rejects the pod for them, too.
        """
        rows, within = self._statuses.rows_with(code), self._attempt.scope.within
        if within is None:
            return rows
        return np.intersect1d(rows, within.row_numbers())

    def status_of(self, row: int) -> Status:
        """Return the status of one row in the search."""
        return self._statuses.status_of(row)

    def awaits_nominated(self) -> bool:
        """Whether a row takes the pod as soon as the pods nominated first are placed."""
        counting = self._attempt.profile.count_nominated
        if counting <= self._attempt.state.skip_filter:
            return False  # no such Filter judged the pod: most pods ask for nothing of the kind
        rows = self._statuses.rows_with(Code.PENDING).tolist()
        return any(self._statuses.status_of(row).plugin in counting for row in rows)

    @property
    def evicts_whole_gangs(self) -> bool:
        """Whether the profile evicts what a gang needs as a whole or not at all."""
        return self._attempt.profile.evicts_whole_gangs

    def independent(self, rows: Rows) -> bool:
        """Whether most of these rows can be tried at once; estimated from some of them."""
        seen = self._pods_seen
        if seen is None:
            return False
        some = rows[:: len(rows) // _ROWS_LOOKED_AT + 1]
        below = seen.below(some, self._attempt.pod.priority)
        return below is None or 2 * int(np.count_nonzero(below)) <= len(some)

    @property
    def sees_numbers_only(self) -> bool:
        """Whether every Filter sees the pods of a row as their number, sums and counts."""
        return self._pods_seen is not None and self._pods_seen.only_numbers

    @property
    def alike(self) -> object | None:
        """An object equal for attempts whose Filters answer alike about a row."""
        return self._known if self._pods_seen is not None and self._pods_seen.are_reused else None

    def nominated(self) -> tuple[NominatedLevel, int | None]:
        """Return the pods nominated first, as sums, and the row the pod itself is nominated to."""
        if self._level is None:
            self._level = self._attempt.snapshot.nominated_level(self._attempt.pod)
        return self._level

    @contextmanager
    def on_rows(self, rows: Rows, *, nominated_placed: bool = False) -> Iterator[TriedRows]:
        """Open a trial on many rows at once, where the rows are independent."""
        assert self._pods_seen is not None, "rows depend on one another"
        snapshot, pod = self._attempt.snapshot, self._attempt.pod
        view = NodeView.spanning(snapshot.num_nodes, rows)
        resources = frozenset(pod.part(RESOURCES).value.filter)
        by_node = None if self._known is None else self._known.by_node
        with ShiftedSums(snapshot.table, view, resources) as sums:
            yield TriedRows(
                self._attempt,
                view,
                sums,
                self._pods_seen,
                nominated=self._nominated(rows),
                by_node=by_node,
                waived=self._attempt.profile.count_nominated if nominated_placed else NO_NAMES,
            )

    def needed_by_nominated(self, victims: Mapping[int, Sequence[PodInfo]]) -> set[int]:
        """Return the rows without whose victims nominated pods no longer fit, once all are placed.

        Where a plugin cannot say so, a row is needed if the plugin counts any of its victims.
        """
        at, needed = self._attempt, set[int]()
        for name in at.profile.count_nominated - at.state.skip_filter:
            needs = at.profile.capabilities[name].nominated_need
            if needs is not None:
                candidates = [[(row, each) for each in pods] for row, pods in victims.items()]
                answers = needs(at.pod, candidates)
                needed |= {row for row, yes in zip(victims, answers, strict=True) if yes}
                continue
            for row, pods in victims.items():
                with self.on_row(row, nominated_placed=True) as trial:
                    if any(trial.is_counted(each, by=name) for each in pods):
                        needed.add(row)
        return needed

    def on_sums(self, row: int) -> ScalarTrial | None:
        """Open a trial on one row by its sums; None where arrays are needed."""
        pods_seen, by_node = self._pods_seen, None if self._known is None else self._known.by_node
        if pods_seen is None or not pods_seen.only_sums or by_node is None:
            return None
        level, own = self.nominated()
        if own == row:
            return None
        return ScalarTrial(
            self._attempt,
            row,
            pods_seen.by_sums,
            by_node=by_node.result_at(row),
            nominated=level.row_sums(row),
        )

    def _nominated(self, rows: Rows) -> tuple[Rows, NominatedSums] | None:
        """Return positions of rows where nominated pods come first, and their sums, or None."""
        if not self._attempt.snapshot.nominations:
            return None
        found = self._attempt.snapshot.nominated_among(self._attempt.pod, rows)
        return found if len(found[0]) else None

    @contextmanager
    def on_row(self, row: int, *, nominated_placed: bool = False) -> Iterator[TriedRow]:
        """Open a trial on one row; every change is undone at the end."""
        counting = self._attempt.profile.count_nominated if nominated_placed else NO_NAMES
        by_node = None if self._known is None else self._known.by_node
        known = None if by_node is None else by_node.result_at(row)
        with self._attempt.snapshot.trial() as trial:
            yield TriedRow(self._attempt.branch(), trial, row, by_node=known, counting=counting)
