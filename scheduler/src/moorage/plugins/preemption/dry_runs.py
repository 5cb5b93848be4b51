"""Dry runs of preemption: many independent nodes at once, other nodes one by one.

Part of DefaultPreemption's search. `KnownRows` keeps the outcomes. The search reads them there,
and so do the searches for replicas of the preemptor. A few rows are tried with scalars.

Rules mirrored: the rules of `victims`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.preemption import Candidate, EvictionsUnderWay
from moorage.framework.status import Status
from moorage.framework.what_if import RowsTrial, SumsTrial, TakesArraysError, WhatIf
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.known_rows import NEVER, UNKNOWN, KnownRows, Replicas, StateArray
from moorage.plugins.preemption.sums import (
    NOBODY,
    PRIORITY_SHIFT,
    Protection,
    RowVictims,
    Victims,
    comparable,
    costs_of,
    costs_of_row,
    dry_run_many,
    dry_run_within,
    judged_without,
    put_back_on_row,
    put_back_ranks,
)
from moorage.plugins.preemption.victim_gangs import VictimGangs
from moorage.plugins.preemption.victim_groups import LowerGroupPriority, VictimGroups
from moorage.plugins.preemption.victims import (
    ColumnRules,
    LowerPriority,
    NotedTrial,
    Unit,
    VictimRules,
    dry_run,
    put_back_order,
    ranked_units,
    started_ns,
)
from moorage.snapshot.importance import NOT_STARTED, Importance, RankedPods, start_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

# For more rows, arrays are cheaper than scalars; a guess.
_ROWS_IN_SCALARS = 8

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NO_ROWS = np.empty(0, np.int64)


class PreemptionInputs(msgspec.Struct):
    """Data that all searches share: the cluster, ranks, budgets, known outcomes and evictions.

    `groups_of_1_37` says that groups are victims as in 1.37. `rows_for_candidates` holds the number
    of rows that the last search tried and the number of candidates found. The ratio decides the
    size of a batch, never the outcome.
    """

    snapshot: Snapshot
    importance: Importance
    budgets: Budgets
    replicas: Replicas
    evictions: EvictionsUnderWay
    groups_of_1_37: bool = False
    rows_for_candidates: tuple[int, int] = (1, 1)
    _twice: tuple[IntArray, IntArray] = (_NO_ROWS, _NO_ROWS)

    @property
    def any_leaves(self) -> bool:
        """Whether any victim of preemption may be about to leave its node."""
        return bool(self.evictions.requested)

    def leaves(self, pod: PodInfo) -> bool:
        """Whether a victim of preemption is about to leave its node.

        A pod that somebody else deleted counts as one that stays, as upstream.
        """
        return pod.uid in self.evictions.requested and self.evictions.will_leave(pod.pod)

    def leaving_ranks(self, pods: Sequence[PodInfo], first: int) -> list[int]:
        """Return the ranks, starting at `first`, of the pods of a row that leave it anyway."""
        if not self.any_leaves:
            return []
        return [rank for rank in range(first, len(pods)) if self.leaves(pods[rank])]

    def twice(self, rows: IntArray) -> IntArray:
        """Return rows repeated twice: a slice from any start then contains all rows.

        The result is kept for the same array, because most searches try the same nodes.
        """
        if self._twice[0] is not rows:
            self._twice = rows, np.concatenate((rows, rows))
        return self._twice[1]


class DryRuns:
    """Dry runs for one preemptor.

    Parameters
    ----------
    around
        The cluster.
    what_if, pod
        The attempt, and the preemptor.
    now_ns
        Wall-clock time, nanoseconds.
    rules
        Which pods may be evicted; every pod of lower priority when None.
    nominated_placed
        Whether the pods nominated first count as placed. No outcome is then kept.

    Attributes
    ----------
    awaiting
        Rows where a trial found that only nominated pods are missing, with the plugin that said so.
        Rows beyond the end of the search may be among them.
    counted_rows
        Candidates of whose victims a Filter counts some for nominated pods, too. Found out only
        where nominated pods count as placed.
    independent
        Whether many rows are tried at once; False before `begin_rows`.
    known
        The outcomes by row.
    what_if
        The attempt.
    single
        Outcomes of rows tried one by one; `known` has all outcomes of the other rows.
    """

    __slots__ = (
        "_around",
        "_by_priority",
        "_gangs",
        "_nominated_placed",
        "_now_ns",
        "_pod",
        "awaiting",
        "counted_rows",
        "independent",
        "known",
        "rules",
        "single",
        "what_if",
    )

    def __init__(
        self,
        around: PreemptionInputs,
        what_if: WhatIf,
        pod: PodInfo,
        *,
        now_ns: int,
        rules: VictimRules | None = None,
        nominated_placed: bool = False,
    ) -> None:
        self._around = around
        self._nominated_placed = nominated_placed
        self.what_if = what_if
        self._pod = pod
        self._now_ns = now_ns
        self.independent = False
        self.awaiting: dict[int, str] = {}
        self.counted_rows: set[int] = set()
        self._by_priority = rules is None
        of_groups = around.groups_of_1_37 and rules is None
        lower = LowerGroupPriority(pod, around.snapshot) if of_groups else LowerPriority(pod)
        self.rules = rules or lower
        self._gangs: VictimGangs | VictimGroups | None = None
        if around.groups_of_1_37:
            self._gangs = VictimGroups(around.snapshot, self.rules)
        if what_if.evicts_whole_gangs:
            self._gangs = VictimGangs(
                around.snapshot, pod, self.rules, now_ns=now_ns, leaves=around.leaves
            )
        known = None
        if rules is None and not nominated_placed:
            known = around.replicas.known_rows(what_if, pod)
        self.known = known or KnownRows(around.snapshot)
        self.single: dict[int, Candidate | Status] = {}

    def begin_rows(self, rows: IntArray) -> None:
        """Begin the dry runs of potential rows."""
        self.independent = self.what_if.independent(rows)

    def tried(self, rows: IntArray, states: bytes) -> StateArray:
        """Return uint8: the states of rows; try the rows whose state is `UNKNOWN`."""
        if states.count(UNKNOWN) > _ROWS_IN_SCALARS:
            self._try(rows[np.frombuffer(states, np.uint8) == UNKNOWN].tolist())
        else:
            due, at = [], states.find(UNKNOWN)
            while at >= 0:
                due.append(rows.item(at))
                at = states.find(UNKNOWN, at + 1)
            self._try(due)
        known: StateArray = self.known.state_n.take(rows)
        return known

    def _try(self, rows: Sequence[int]) -> None:
        if self._row_by_row(rows):
            return
        due = np.array(rows, np.int64)
        if not self.independent:
            self._one_by_one(due)
            return
        if self.rules.in_columns is not None and self.what_if.sees_numbers_only:
            self._try_within(due, self.rules.in_columns)
            return
        ranked = self._around.importance.rank_rows(due)
        together = comparable(ranked, self._now_ns) & self.rules.by_priority(due)
        if self._gangs is not None:
            together &= ~np.array([self._gangs.on_row(row) for row in rows], np.bool_)
        if not together.all():
            self._one_by_one(due[~together])
            due, ranked = due[together], ranked.some_rows(together)
        if not len(due):
            return
        protection = self._protection(due, ranked)
        with self.what_if.on_rows(due, nominated_placed=self._nominated_placed) as trial:
            victims = dry_run_many(trial, ranked, self._pod.priority, protection)
            self._note_nominated(trial, due, victims)
        self._put_outcomes(due, ranked, victims)

    def _note_nominated(self, trial: RowsTrial, due: IntArray, victims: Victims) -> None:
        """Record the rows that wait for nominated pods, and those with counted victims."""
        for position, plugin in trial.awaited_by().items():
            if victims.lower[position].any():  # else the row is not tried
                self.awaiting[due.item(position)] = plugin
        if self._nominated_placed:
            self.counted_rows.update(due[trial.are_counted(victims.victim)].tolist())

    def _put_outcomes(self, due: IntArray, ranked: RankedPods, victims: Victims) -> None:
        """Keep the outcomes of rows, and try the rows alone that the trial left out."""
        self.known.put_outcomes(due, ranked, victims, costs_of(ranked, victims))
        alone = victims.filtered.alone
        if alone is not None and alone.any():
            self._one_by_one(due[alone])

    def _try_within(self, due: IntArray, rules: ColumnRules) -> None:
        """Try rows where rules say which pods may be evicted."""
        importance = self._around.importance
        ranked = importance.rank_rows(due)
        together = comparable(ranked, self._now_ns) & ~ranked.resized & ~self._with_ties(due)
        if not together.all():
            self._one_by_one(due[~together])
            due, ranked = due[together], ranked.some_rows(together)
        if not len(due):
            return
        allowed = rules.allowed(ranked, importance.number_of)
        with self.what_if.on_rows(due, nominated_placed=self._nominated_placed) as trial:
            victims = dry_run_within(trial, ranked, allowed, rules.within())
            self._note_nominated(trial, due, victims)
        self._put_outcomes(due, ranked, victims)

    def _with_ties(self, rows: IntArray) -> Mask:
        """Return bool, (rows,): rows with pods of gangs, of budgets, or that leave anyway."""
        around, snapshot = self._around, self._around.snapshot
        tied = np.zeros(snapshot.num_nodes, np.bool_)
        if self._gangs is not None:
            tied[[row for row in rows.tolist() if self._gangs.on_row(row)]] = True
        if around.budgets.protect_any():
            for row in rows.tolist():
                pods = around.importance.pods_by_rank(row)
                tied[row] |= bool(around.budgets.violating_ranks(row, pods, 0))
        for uid in (*around.evictions.requested, *snapshot.table.terminating):
            name = snapshot.table.node_of_pod(uid)
            row = None if name is None else snapshot.row_of(name)
            if row is not None:
                tied[row] = True
        return tied[rows]

    def _row_by_row(self, rows: Sequence[int]) -> bool:
        """Try a few rows with scalars; return False, without changes, where arrays are needed."""
        if len(rows) > _ROWS_IN_SCALARS or not (self.independent and self._by_priority):
            return False
        if self._gangs is not None and any(map(self._gangs.on_row, rows)):
            return False
        try:
            return all(map(self._tried_by_sums, rows))
        except TakesArraysError:
            return False

    def _tried_by_sums(self, row: int) -> bool:
        priority = self._pod.priority
        lower = [pod for pod in self._around.snapshot.pods(row) if pod.priority < priority]
        if not lower:
            self.known.put_row(row, NOBODY)
            return True
        trial = self.what_if.on_sums(row)
        if trial is None:
            return False
        # Most rows end here: since the last preemptor, rows changed because their victims left.
        # No pod is put back on such a row, so neither ranks nor starts matter.
        status = judged_without(trial, lower)
        if not status.ok:
            self.known.put_row(row, RowVictims((), 0, mixed=False, lower=True, status=status))
            return True
        return self._put_back(trial, row, len(lower))

    def _put_back(self, trial: SumsTrial, row: int, lower: int) -> bool:
        """Find the victims on a row that passes without its pods of lower priority."""
        pods = self._around.importance.take_row(row)
        starts = [start for pod in pods if (start := start_ns(pod)) != NOT_STARTED]
        latest = max(starts, default=NEVER)
        if latest >= self._now_ns:
            return False
        first = len(pods) - lower
        budgets = self._around.budgets
        violating: tuple[int, ...] = ()
        if budgets.protect_any():
            violating = budgets.violating_ranks(row, pods, first)
        leaving = self._around.leaving_ranks(pods, first)
        violating = tuple(rank for rank in violating if rank not in leaving)
        victims = put_back_on_row(
            trial, pods, range(first, len(pods)), violating=violating, leaving=leaving
        )
        costs = None
        if victims.ranks:
            staying = [pods[rank] for rank in victims.ranks if rank not in leaving]
            costs = (victims.violations, *costs_of_row(staying, len(victims.ranks)))
        self.known.put_row(row, victims, costs, latest=latest)
        return True

    def _protection(self, rows: IntArray, ranked: RankedPods) -> Protection | None:
        """Return the order in which pods are put back; None for the order of their ranks."""
        budgets, protects = self._around.budgets, self._around.budgets.protect_any()
        if not (protects or self._around.any_leaves):
            return None
        lower = ranked.priority < self._pod.priority
        order = np.tile(np.arange(lower.shape[1]), (len(rows), 1))
        violating, leaves = np.zeros_like(lower), np.zeros_like(lower)
        lower_pods = lower.sum(axis=1).tolist()
        reordered = False
        for position, row in enumerate(rows.tolist()):
            pods = self._around.importance.pods_by_rank(row)
            # Ranks are ordered by priority: the pods of lower priority are last.
            first = len(pods) - lower_pods[position]
            broken: Sequence[int] = budgets.violating_ranks(row, pods, first) if protects else ()
            leaving = self._around.leaving_ranks(pods, first)
            broken = [rank for rank in broken if rank not in leaving]
            if broken or leaving:
                reordered = True
                violating[position, broken] = True
                leaves[position, leaving] = True
                order[position] = put_back_ranks(range(lower.shape[1]), broken, leaving)
        return Protection(order, violating, leaves) if reordered else None

    def _one_by_one(self, rows: IntArray) -> None:
        for row in rows.tolist():
            found = self.single[row] = self._try_one(row)
            costs = self._costs_of_one(found) if isinstance(found, Candidate) else None
            self.known.note_costs(row, costs)

    def _try_one(self, row: int) -> Candidate | Status:
        name, units = self._around.snapshot.names[row], self._units(row)
        if isinstance(units, Status):
            return units
        if not units:
            return self.rules.nobody(name)
        around, now_ns = self._around, self._now_ns
        ranked = ranked_units if self._gangs is None else self._gangs.ranked
        order = put_back_order(ranked(units, now_ns), around.budgets, leaves=around.leaves)
        with self.what_if.on_row(row, nominated_placed=self._nominated_placed) as trial:
            tried = NotedTrial(self.rules.trial_of(trial))
            outcome = dry_run(tried, units, order, node_name=name, now_ns=now_ns)
            if tried.awaited_by:
                self.awaiting[row] = tried.awaited_by
            victims = outcome.victims if isinstance(outcome, Candidate) else ()
            if self._nominated_placed and any(map(trial.is_counted, victims)):
                self.counted_rows.add(row)
        return outcome

    def _costs_of_one(self, candidate: Candidate) -> tuple[int, ...]:
        return costs_of_one(candidate, self._now_ns, leaves=self._around.leaves)

    def _units(self, row: int) -> Sequence[Unit] | Status:
        """Return what may be evicted from a row, in the row's order."""
        pods: list[PodInfo] = []
        for pod in self._around.snapshot.pods(row):
            allowed = self.rules.allows(pod)
            if isinstance(allowed, Status):
                return allowed
            if allowed:
                pods.append(pod)
        if self._gangs is None or not self._gangs.on_row(row):
            units = [Unit((pod,)) for pod in pods]
        else:
            whole = self._gangs.units_of(pods)
            if isinstance(whole, Status):
                return whole
            units = whole
        return self.rules.within_bounds(units)


def costs_of_one(
    candidate: Candidate, now_ns: int, *, leaves: Callable[[PodInfo], bool]
) -> tuple[int, ...]:
    """Return the costs of a candidate by criterion, most important first; less is better.

    Victims that leave their node anyway cost nothing.
    """
    victims = [pod for pod in candidate.victims if not leaves(pod)]
    if not victims:
        return candidate.violations, *costs_of_row((), len(candidate.victims))
    top = max(pod.priority for pod in victims)
    return (
        candidate.violations,
        top,
        sum(pod.priority + PRIORITY_SHIFT for pod in victims),
        len(victims),
        len(candidate.victims),
        -min(started_ns(pod, now_ns) for pod in victims if pod.priority == top),
    )
