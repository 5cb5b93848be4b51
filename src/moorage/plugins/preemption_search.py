"""The search for nodes to make room on: which are tried, in what order, and which loses least.

Part of DefaultPreemption. Nodes are tried from a random one on until enough candidates are found,
as many at once as independence allows; the outcome is the one of trying them one by one.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/preemption.go``.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.preemption import Candidate
from moorage.framework.status import Status, error
from moorage.framework.what_if import TakesArraysError, WhatIf
from moorage.plugins.preemption_budgets import Budgets
from moorage.plugins.preemption_known import (
    BREAKING,
    CLEAN,
    NEVER,
    NO_CANDIDATE,
    UNKNOWN,
    KnownRows,
    Replicas,
    StateArray,
)
from moorage.plugins.preemption_sums import (
    CRITERIA,
    PRIORITY_SHIFT,
    Protection,
    comparable,
    costs_of,
    costs_of_row,
    dry_run_many,
    dry_run_row,
)
from moorage.plugins.preemption_victims import (
    LowerPriority,
    VictimRules,
    by_importance,
    started_ns,
)
from moorage.snapshot.importance import NOT_STARTED, Importance, RankedPods, start_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

# Rows tried beyond those that are missing: a guess between one more lot and waste.
_MORE_ROWS = 16
# With more rows arrays cost less; a guess.
_ROWS_IN_SCALARS = 8

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

_NO_ROWS = np.empty(0, np.int64)


class Surroundings(msgspec.Struct):
    """What every search looks at: the cluster, its pods by rank, budgets, what replicas met.

    `rows_for_candidates` is how many rows the last search tried for how many candidates: the next
    one will hardly do with fewer. It decides how many are tried at once, never which count.
    """

    snapshot: Snapshot
    importance: Importance
    budgets: Budgets
    replicas: Replicas
    rows_for_candidates: tuple[int, int] = (1, 1)


class Search:
    """Tries nodes out for one preemptor.

    Parameters
    ----------
    around
        The cluster.
    what_if, pod
        The attempt, and the preemptor.
    now_ns
        Wall-clock time, nanoseconds.
    rules
        Who may be evicted; every pod of lower priority when None.
    """

    def __init__(
        self,
        around: Surroundings,
        what_if: WhatIf,
        pod: PodInfo,
        *,
        now_ns: int,
        rules: VictimRules | None = None,
    ) -> None:
        self._around = around
        self._what_if = what_if
        self._pod = pod
        self._now_ns = now_ns
        self._by_priority = rules is None
        self._rules = rules or LowerPriority(around.snapshot, around.budgets, pod, now_ns)
        known = around.replicas.rows(what_if, pod) if rules is None else None
        self._known = known or KnownRows(around.snapshot, around.budgets)
        # What rows tried one by one came to; of the others it is known.
        self._single: dict[int, Candidate | Status] = {}
        self._tried: list[IntArray] = []
        self._found: list[IntArray] = []
        self._all_clean = True
        self._wanted = 0
        self._kept: tuple[IntArray, IntArray] | None = None
        self._made: dict[int, Candidate] = {}

    def run(self, rows: IntArray, wanted: int) -> None:
        """Try rows in this order until enough are candidates, one without broken budgets."""
        self._wanted = wanted
        at = clean = total = 0
        while at < len(rows) and not (clean and total >= wanted):
            lot = rows[at : at + self._rows_at_once(wanted - total, at, total)]
            states = self._states(lot)
            unbroken = states == CLEAN
            found = np.flatnonzero(states >= BREAKING)
            at += len(lot)
            size = len(lot)
            if total + len(found) >= wanted and (clean or unbroken.any()):
                missing = wanted - total
                last = int(found[missing - 1]) if missing > 0 else 0
                size = max(last, 0 if clean else int(unbroken.argmax())) + 1
                found = found[: int(np.searchsorted(found, size))]
            clean += int(np.count_nonzero(unbroken[:size]))
            total += len(found)
            self._tried.append(lot[:size])
            self._found.append(lot[found])
        self._all_clean = clean == total
        if total:
            self._around.rows_for_candidates = (self.tried, total)

    def _rows_at_once(self, missing: int, tried: int, found: int) -> int:
        """Return how many rows to try next: as many as will do at the rate so far, and a few."""
        if not self._what_if.independent:
            return 1
        if missing <= 0:  # only one is missing that breaks no budget, and nobody knows where
            return tried
        if not found:
            rows, candidates = self._around.rows_for_candidates
            return max(missing * rows // candidates, tried) * 9 // 8 + _MORE_ROWS
        return missing * tried // found * 9 // 8 + _MORE_ROWS

    @property
    def tried(self) -> int:
        """How many rows were tried out."""
        return sum(map(len, self._tried))

    # -- what came of it -----------------------------------------------------------------------

    def best(self) -> IntArray:
        """Return int64: rows of the candidates that lose least, equal by every criterion.

        In no order; empty when there is no candidate.
        """
        rows, costs = self._candidates()
        if len(rows) and (costs == costs[0]).all():
            return rows  # as of nodes that are filled alike, and cheaper than looking five times
        for criterion in range(CRITERIA):
            if len(rows) <= 1:
                break
            of_it = costs[:, criterion]
            least = of_it == of_it.min()
            if not least.all():
                rows, costs = rows[least], costs[least]
        return rows

    def chosen(self, ties: IntArray) -> int:
        """Return the row to take of the candidates that lose least: the first by name.

        Where those they would lose have not started, it is the last: upstream looks at the clock
        for each anew, so the one that is asked last seems to have started last.
        """
        ranks = self._around.importance.name_ranks()[ties]
        first = int(ties[ranks.argmin()])
        earliest_ns = self._known.earliest_ns(first)
        waits = earliest_ns == NOT_STARTED
        if earliest_ns == self._now_ns:  # one started now, or not started and tried by itself
            victims = self.candidate(first).victims
            starts = [start_ns(each) for each in victims if each.priority == victims[0].priority]
            waits = NOT_STARTED in starts and min(starts) > self._now_ns
        return int(ties[ranks.argmax()]) if waits else first

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every candidate, those that break no budget first, each in the order tried."""
        rows, _ = self._candidates()
        return tuple(self.candidate(row) for row in rows.tolist())

    def candidate(self, row: int) -> Candidate:
        """Return one candidate."""
        found = self._single.get(row)
        if isinstance(found, Candidate):
            return found
        assert found is None, f"row {row} is no candidate: {found}"
        made = self._made.get(row)
        if made is None:
            outcome = self._known.found(row)
            pods = self._around.importance.pods(row)
            victims = [pods[rank] for rank in outcome.ranks]
            if outcome.mixed:
                victims = by_importance(victims, self._now_ns)
            made = Candidate(self._name(row), tuple(victims), outcome.violations)
            self._made[row] = made
        return made

    def rejected(self) -> dict[str, Status]:
        """Return why the other tried nodes are no candidates, in the order tried."""
        state_n = self._known.state_n
        return {
            self._name(row): self._status(row)
            for rows in self._tried
            for row in rows[state_n[rows] == NO_CANDIDATE].tolist()
        }

    def _candidates(self) -> tuple[IntArray, IntArray]:
        """Return rows and costs of the candidates, without broken budgets first, each capped."""
        if self._kept is None:
            self._kept = self._capped()
        return self._kept

    def _capped(self) -> tuple[IntArray, IntArray]:
        found = self._found
        rows = found[0] if len(found) == 1 else np.concatenate([_NO_ROWS, *found])
        costs = self._known.costs(rows, self._now_ns)
        if self._all_clean:
            return rows[: self._wanted], costs[: self._wanted]
        clean = np.flatnonzero(costs[:, 0] == 0)[: self._wanted]
        broken = np.flatnonzero(costs[:, 0] != 0)[: self._wanted]
        order = np.concatenate([clean, broken])
        return rows[order], costs[order]

    def _status(self, row: int) -> Status:
        found = self._single.get(row)
        if found is not None:
            assert isinstance(found, Status), f"row {row} is a candidate"
            return found
        outcome = self._known.found(row)
        if not outcome.lower:
            return self._rules.nobody(self._name(row))
        status = outcome.status
        return status if not status.ok else _without_victims(self._name(row))

    # -- trying --------------------------------------------------------------------------------

    def _states(self, rows: IntArray) -> StateArray:
        """Return the states of rows, tried where they have to be."""
        states = self._known.states(rows, self._now_ns)
        due = rows[states == UNKNOWN]
        if not len(due):
            return states
        self._try(due)
        return self._known.state_n[rows]

    def _try(self, due: IntArray) -> None:
        if not self._what_if.independent:
            self._one_by_one(due)
            return
        if self._row_by_row(due):
            return
        ranked = self._around.importance.take(due)
        together = comparable(ranked, self._now_ns) & self._rules.by_priority(due)
        if not together.all():
            self._one_by_one(due[~together])
            due, ranked = due[together], _some(ranked, together)
        if not len(due):
            return
        protection = self._protection(due, ranked)
        with self._what_if.on_rows(due) as sums:
            victims = dry_run_many(sums, ranked, self._pod.priority, protection)
        self._known.put(due, ranked, victims, costs_of(ranked, victims))

    def _row_by_row(self, rows: IntArray) -> bool:
        """Try a few rows in scalars; False where that takes arrays, and nothing is lost then."""
        if len(rows) > _ROWS_IN_SCALARS or not self._by_priority:
            return False
        try:
            return all(self._tried_by_sums(row) for row in rows.tolist())
        except TakesArraysError:
            return False

    def _tried_by_sums(self, row: int) -> bool:
        trial = self._what_if.on_sums(row)
        if trial is None:
            return False
        pods = self._around.importance.take_row(row)
        starts = [start for pod in pods if (start := start_ns(pod)) != NOT_STARTED]
        latest = max(starts, default=NEVER)
        if latest >= self._now_ns:
            return False
        first = sum([pod.priority >= self._pod.priority for pod in pods])
        budgets = self._around.budgets
        violating: tuple[int, ...] = ()
        if budgets.protect_any():
            violating = budgets.violating_ranks(row, pods, first)
        victims = dry_run_row(trial, pods, range(first, len(pods)), violating)
        costs = None
        if victims.ranks:
            costs = (victims.violations, *costs_of_row(pods, victims.ranks))
        self._known.put_row(row, victims, costs, latest=latest)
        return True

    def _protection(self, rows: IntArray, ranked: RankedPods) -> Protection | None:
        """Return in what order pods are put back, where a budget counts one of them."""
        budgets = self._around.budgets
        if not budgets.protect_any():
            return None
        lower = ranked.priority < self._pod.priority
        order = np.tile(np.arange(lower.shape[1]), (len(rows), 1))
        violating = np.zeros_like(lower)
        lower_pods = lower.sum(axis=1).tolist()
        for position, row in enumerate(rows.tolist()):
            pods = self._around.importance.pods(row)
            # Ranks go by priority: the lower pods are the last ones.
            broken = budgets.violating_ranks(row, pods, len(pods) - lower_pods[position])
            if broken:
                violating[position, broken] = True
                others = [rank for rank in range(lower.shape[1]) if rank not in broken]
                order[position] = [*broken, *others]
        return Protection(order, violating) if violating.any() else None

    def _one_by_one(self, rows: IntArray) -> None:
        for row in rows.tolist():
            found = self._single[row] = self._try_one(row)
            costs = costs_of_one(found, self._now_ns) if isinstance(found, Candidate) else None
            self._known.note(row, costs)

    def _try_one(self, row: int) -> Candidate | Status:
        with self._what_if.on_row(row) as trial:
            return self._rules.dry_run(trial, row)

    def _name(self, row: int) -> str:
        return self._around.snapshot.names[row]


def costs_of_one(candidate: Candidate, now_ns: int) -> tuple[int, ...]:
    """Return what a candidate loses by each criterion, the weightiest first; less is better."""
    victims = candidate.victims
    top = max(pod.priority for pod in victims)
    return (
        candidate.violations,
        top,
        sum(pod.priority + PRIORITY_SHIFT for pod in victims),
        len(victims),
        -min(started_ns(pod, now_ns) for pod in victims if pod.priority == top),
    )


def _without_victims(node_name: str) -> Status:
    return error(f'expected at least one victim pod on node "{node_name}"')


def _some(ranked: RankedPods, at: Mask) -> RankedPods:
    requests = {name: array[at] for name, array in ranked.requests.items()}
    return RankedPods(ranked.priority[at], ranked.start_ns[at], requests)
