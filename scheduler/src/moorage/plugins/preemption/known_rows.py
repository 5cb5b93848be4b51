"""Outcomes of dry runs, kept by row for replicas of a preemptor.

Part of the preemption search. Replicas that preempt one after another repeat the same dry runs.
Only the chosen nodes, and nodes whose pods changed, differ from one preemptor to the next. The
cache must never change a decision: any change that an outcome depends on clears its row.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.caches import Changes, RowFollower
from moorage.framework.what_if import WhatIf
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.sums import CRITERIA, RowVictims, Victims
from moorage.snapshot.importance import NOT_STARTED, RankedPods
from moorage.snapshot.nominated_rows import NominatedLevel
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Number of kinds of preemptors with kept outcomes: about a megabyte each at 5000 nodes. A guess.
_KINDS_MOST: Final = 8
# Memory of one kind, bytes; above this, all rows are tried again. A guess.
_BYTES_MOST: Final = 16 * 1024 * 1024
# Size of the outcome of a row tried alone, and of a dry run without its arrays; guesses.
_ROW_BYTES: Final = 128
_RUN_BYTES: Final = 1024
NEVER: Final = int(np.iinfo(np.int64).min)
"""Earlier than any time: the latest start of a row whose pods have not started."""
_ONE_ROW: Final = -1  # instead of the index of a dry run: the row was tried alone

UNKNOWN: Final = 0
"""State of a row that must be tried."""
NO_CANDIDATE: Final = 1
"""State of a row where eviction makes no room."""
BREAKING: Final = 2
"""State of a candidate whose victims violate a budget; greater states are candidates, too."""
CLEAN: Final = 3
"""State of a candidate whose victims violate no budget."""

StateArray = NDArray[np.uint8]


class KnownRows:
    """Outcomes by row for one kind of preemptor.

    Parameters
    ----------
    snapshot
        The cluster.

    Attributes
    ----------
    state_n
        uint8, (n,): `UNKNOWN`, `NO_CANDIDATE`, `BREAKING` or `CLEAN`; callers must not change it.
    alike
        Whether all candidates so far have equal costs, as on nodes with equal pods. Then no
        comparison is needed.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.forget()

    def forget(self) -> None:
        """Forget every outcome."""
        n = self._snapshot.num_nodes
        self.state_n: StateArray = np.full(n, UNKNOWN, np.uint8)
        # Whether a row was tried alone, and the costs of the first candidate.
        self._mixed, self.alike = False, True
        self._loss: Sequence[int] | None = None
        # Rows whose states hold for one search only: tried alone, or nominated to the preemptor.
        self._passing: list[int] = []
        self._costs_nc = np.zeros((n, CRITERIA), np.int64)
        self._latest_n = np.zeros(n, np.int64)
        self._latest = NEVER
        self._runs: list[Victims] = []
        self._runs_bytes = 0
        self._rows: dict[int, RowVictims] = {}
        self._run_n = np.zeros(n, np.int64)
        self._position_n = np.zeros(n, np.int64)
        self._arrays_bytes = self.state_n.nbytes + self._costs_nc.nbytes + 3 * self._latest_n.nbytes

    def follow(self, changes: Changes) -> None:
        """Forget the outcomes of the changed rows."""
        self._mark(changes.rows)

    def begin_search(self, own: int | None) -> None:
        """Begin a search: forget the outcomes that held only for the search before.

        Parameters
        ----------
        own
            The row the preemptor is nominated to. Replicas must leave room for the preemptor on
            that row, so the outcome of that row is not kept.
        """
        if self._passing:
            self._mark(self._passing)
            self._passing = []
        if own is not None:
            self.state_n[own] = UNKNOWN
            self._passing.append(own)

    @property
    def nbytes(self) -> int:
        """Memory of the outcomes, bytes; 0 where no row was tried."""
        if not self._runs and not self._rows:
            return 0
        return self._arrays_bytes + self._runs_bytes + len(self._rows) * _ROW_BYTES

    def _mark(self, changed: Sequence[int]) -> None:
        """Mark rows as `UNKNOWN`."""
        state_n = self.state_n
        for row in changed:
            state_n[row] = UNKNOWN

    def states(self, rows: IntArray, now_ns: int) -> StateArray:
        """Return uint8: the states of some rows.

        Rows with a pod that starts at `now_ns` or later (clocks differ) are always `UNKNOWN`.
        """
        states: StateArray = self.state_n.take(rows)
        if self._latest >= now_ns:
            states[self._latest_n[rows] >= now_ns] = UNKNOWN
        return states

    def put_outcomes(
        self, rows: IntArray, ranked: RankedPods, victims: Victims, costs: IntArray
    ) -> None:
        """Keep the outcomes of some rows, except where a Filter failed: the error may not repeat.

        Parameters
        ----------
        rows
            Which.
        ranked, victims
            Pods of the rows and the result of the dry run, in the order of `known_rows`.
        costs
            As `sums.costs_of` returns, with `NOT_STARTED` for pods that have not started.
        """
        started = np.where(ranked.start_ns == NOT_STARTED, NEVER, ranked.start_ns)
        latest = started.max(axis=1, initial=NEVER)
        self._latest_n[rows] = latest
        self._latest = max(self._latest, int(latest.max(initial=NEVER)))
        self._costs_nc[rows] = costs
        states = np.where(costs[:, 0] == 0, np.uint8(CLEAN), np.uint8(BREAKING))
        candidate = victims.victim.any(axis=1)
        states[~candidate] = NO_CANDIDATE
        self.state_n[rows] = states
        if self.alike and (losses := costs[candidate].tolist()):
            self._compare(losses[0])
            if losses.count(losses[0]) < len(losses):
                self.alike = False
        self._passing += rows[victims.filtered.broken].tolist()
        self._run_n[rows] = len(self._runs)
        self._position_n[rows] = np.arange(len(rows))
        self._runs.append(victims)
        self._runs_bytes += victims.nbytes + _RUN_BYTES

    def put_row(
        self,
        row: int,
        victims: RowVictims,
        costs: Sequence[int] | None = None,
        *,
        latest: int = NEVER,
    ) -> None:
        """Keep the outcome of one row.

        Parameters
        ----------
        row
            Which.
        victims, costs
            Victims and costs of the row; None where the row is no candidate.
        latest
            Latest start of the row's pods; `NEVER` where the start does not matter.
        """
        self._latest_n[row] = latest
        self._latest = max(self._latest, latest)
        self._put_costs(row, costs)
        self._run_n[row] = _ONE_ROW
        self._rows[row] = victims

    def note_costs(self, row: int, costs: Sequence[int] | None) -> None:
        """Record for this search the costs of a row tried alone; None: the row is no candidate."""
        self._put_costs(row, costs)
        self._passing.append(row)
        self._mixed = True
        self.alike = False  # a pod that has not started has two representations

    def victims_of(self, row: int) -> RowVictims:
        """Return the result of the last dry run for a row."""
        run = self._run_n.item(row)
        if run == _ONE_ROW:
            return self._rows[row]
        return self._runs[run].of_row(self._position_n.item(row))

    def costs(self, rows: IntArray, now_ns: int) -> IntArray:
        """Return int64, (rows, 5): the costs of rows by criterion.

        A victim that has not started counts as the latest start. Its start is `NOT_STARTED`, or
        `now_ns` on rows that were tried alone.
        """
        costs: IntArray = self._costs_nc.take(rows, axis=0)
        if self._mixed:
            starts = costs[:, -1]
            starts[starts == -NOT_STARTED] = -now_ns
        return costs

    def earliest_ns(self, row: int) -> int:
        """Return the earliest start among a row's victims of greatest priority."""
        return -self._costs_nc.item(row, CRITERIA - 1)

    def _put_costs(self, row: int, costs: Sequence[int] | None) -> None:
        if costs is None:
            self.state_n[row] = NO_CANDIDATE
        else:
            self.state_n[row] = BREAKING if costs[0] else CLEAN
            self._costs_nc[row] = costs
            self._compare(costs)

    def _compare(self, costs: Sequence[int]) -> None:
        """Compare the costs of a candidate with the first candidate, to update `alike`."""
        if self._loss is None:
            self._loss = tuple(costs)
        elif self._loss != tuple(costs):
            self.alike = False


class _Kind:
    """The outcomes of one kind of preemptor, and what they depend on.

    Attributes
    ----------
    basis
        The nominated pods that count before the preemptor, the structure of the rows and the
        generation of the budgets. Nominated pods are compared by identity: they are a new object
        after each rebuild.
    follower
        Tells which rows changed.
    rows
        The outcomes.
    """

    __slots__ = ("basis", "follower", "rows")

    def __init__(self, snapshot: Snapshot, level: NominatedLevel, basis: object) -> None:
        table = snapshot.table
        logs = (table.pod_log, table.version_log, level.log)
        self.basis = basis
        self.follower = RowFollower(table.node_log, *logs)
        self.rows = KnownRows(snapshot)

    def follow(self) -> None:
        """Bring the outcomes up to date with every changed row."""
        changes = self.follower.changes()
        if changes is None or self.rows.nbytes > _BYTES_MOST:
            self.rows.forget()
        else:
            self.rows.follow(changes)


class Replicas:
    """`KnownRows` by kind of preemptor; the least recently used kind is dropped first.

    Parameters
    ----------
    snapshot, budgets
        The cluster, and the disruption budgets.
    """

    def __init__(self, snapshot: Snapshot, budgets: Budgets) -> None:
        self._snapshot = snapshot
        self._budgets = budgets
        self._kinds: OrderedDict[tuple[object, int], _Kind] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Memory of all outcomes, bytes; at most `_KINDS_MOST` times `_BYTES_MOST` and a search."""
        return sum([kind.rows.nbytes for kind in self._kinds.values()])

    def known_rows(self, what_if: WhatIf, pod: PodInfo) -> KnownRows | None:
        """Return the current outcomes for a preemptor; None where none can be kept."""
        alike = what_if.alike
        if alike is None:
            return None
        key = (alike, pod.priority)
        level, own = what_if.nominated()
        structure = self._snapshot.table.columns.structure
        basis = (level, structure, self._budgets.generation)
        kind = self._kinds.get(key)
        if kind is None or kind.basis != basis:
            kind = self._kinds[key] = _Kind(self._snapshot, level, basis)
            if len(self._kinds) > _KINDS_MOST:
                self._kinds.popitem(last=False)
        else:
            kind.follow()
        self._kinds.move_to_end(key)
        kind.rows.begin_search(own)
        return kind.rows
