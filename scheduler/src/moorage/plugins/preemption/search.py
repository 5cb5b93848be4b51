"""The preemption search: which nodes are tried, in what order, and which candidate is chosen.

Part of DefaultPreemption. The search starts at a random node and ends with enough candidates.
Independent nodes are tried many at once; the outcome is the same as one by one.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/preemption.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.base.no_names import NO_NAMES
from moorage.framework.preemption import Candidate
from moorage.framework.status import Status, error
from moorage.framework.what_if import WhatIf
from moorage.plugins.preemption.dry_runs import DryRuns, PreemptionInputs
from moorage.plugins.preemption.known_rows import (
    BREAKING,
    CLEAN,
    NO_CANDIDATE,
    UNKNOWN,
    StateArray,
)
from moorage.plugins.preemption.sums import CRITERIA
from moorage.plugins.preemption.victims import VictimRules, by_importance
from moorage.snapshot.importance import NOT_STARTED, start_ns
from moorage.snapshot.pod_info import PodInfo

# Factor of rows looked at to rows expected to be tried: looking is cheap, and a large batch saves
# another batch where candidates have become rarer. A guess.
_LOOKED_AT = 2
# Rows tried beyond the missing ones: a guess between one more batch and wasted dry runs.
_MORE_ROWS = 16

# The criteria about the pods that would stay otherwise: all but the last two.
_OF_PODS: Final = CRITERIA - 2

RULES: Final = (
    "fewest violations of PodDisruptionBudgets",
    "lowest priority of the most important victim",
    "lowest sum of the victims' priorities",
    "fewest victims",
    "fewest victims, counting those that leave anyway",
    "latest start of the most important victim",
)
"""The rules of the choice among candidates, in the order of the criteria of costs."""
BY_NAME: Final = "by name among candidates equal by every other rule"
ONLY_CANDIDATE: Final = "the only candidate"

IntArray = NDArray[np.int64]

_NO_ROWS = np.empty(0, np.int64)


class Search:
    """The search for one preemptor.

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
        Whether the pods nominated first count as placed.

    Attributes
    ----------
    tried
        Number of rows tried.
    """

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
        self._now_ns = now_ns
        self._runs = DryRuns(
            around, what_if, pod, now_ns=now_ns, rules=rules, nominated_placed=nominated_placed
        )
        self.tried = 0
        self._tried: list[IntArray] = []
        self._candidate_rows: list[IntArray] = []
        self._all_clean = True
        self._wanted = 0
        self._first_candidates: tuple[IntArray, IntArray] | None = None
        self._narrowed_by = ""

    def run(self, rows: IntArray, first: int, wanted: int) -> None:
        """Try rows until enough are candidates, at least one of them without budget violations.

        Parameters
        ----------
        rows
            The potential rows.
        first
            Index of the first row to try; the rows before this index come last.
        wanted
            Number of candidates that are enough.
        """
        self._wanted = wanted
        self._runs.begin_rows(rows)
        clean = total = 0
        in_order = self._around.twice(rows)[first : first + len(rows)]
        # kube-scheduler stops as soon as it has `wanted` candidates, of which one breaks no budget
        # (preemption.go, DryRunPreemption). Rows are tried in lots. In the last lot only the rows
        # up to the one that completes the search count as tried.
        while self.tried < len(rows) and not (clean and total >= wanted):
            missing = wanted - total
            at_once = self._rows_at_once(missing, self.tried, total)
            next_rows = in_order[self.tried : self.tried + at_once * _LOOKED_AT]
            lot, states, text = self._lot(next_rows, at_once)
            candidates = (states >= BREAKING).nonzero()[0]
            end = _end_of_search(text, candidates, missing, has_clean=clean > 0)
            if end < len(lot):
                candidates = candidates[: candidates.searchsorted(end)]
            clean += text.count(CLEAN, 0, end) if BREAKING in text else len(candidates)
            total += len(candidates)
            self.tried += end
            self._tried.append(lot[:end])
            self._candidate_rows.append(lot[candidates])
        self._all_clean = clean == total
        if total:
            self._around.rows_for_candidates = (self.tried, total)

    def _lot(self, rows: IntArray, at_once: int) -> tuple[IntArray, StateArray, bytes]:
        """Return the next rows, and their states as an array and as bytes.

        The result has known rows, and rows tried now because they are among the first `at_once`.
        """
        states = self._runs.known.states(rows, self._now_ns)
        # As bytes: finding a byte is much faster than an array comparison.
        text = states.tobytes()
        unknown = text.find(UNKNOWN, at_once)
        if unknown >= 0:
            rows, states, text = rows[:unknown], states[:unknown], text[:unknown]
        if UNKNOWN in text:
            states = self._runs.tried(rows, text)
            text = states.tobytes()
        return rows, states, text

    def _rows_at_once(self, missing: int, tried: int, count: int) -> int:
        """Return the number of rows to try next: the number expected at this rate, and a few."""
        if not self._runs.independent:
            return 1
        if missing <= 0:  # only a candidate without budget violations is missing, on an unknown row
            return tried
        if not count:
            rows, candidates = self._around.rows_for_candidates
            return max(missing * rows // candidates, tried) * 9 // 8 + _MORE_ROWS
        return missing * tried // count * 9 // 8 + _MORE_ROWS

    @property
    def rows_awaiting(self) -> IntArray:
        """int64: the rows that take the pod with fewer victims once nominated pods are placed."""
        awaiting = self._runs.awaiting
        if not awaiting:
            return _NO_ROWS
        return np.array([row for row in self._rows_tried() if row in awaiting], np.int64)

    @property
    def awaited_by(self) -> frozenset[str]:
        """Names of the plugins that said so."""
        awaiting = self._runs.awaiting
        if not awaiting:
            return NO_NAMES
        return frozenset(awaiting[row] for row in self._rows_tried() if row in awaiting)

    def _rows_tried(self) -> Iterator[int]:
        for rows in self._tried:
            yield from rows.tolist()

    def is_cheaper(self, other: Search) -> bool:
        """Whether the best candidate costs less than that of another search."""
        mine, others = self._least_costs(), other._least_costs()
        return bool(mine) and (not others or mine < others)

    # -- the outcome ---------------------------------------------------------------------------

    def best(self) -> IntArray:
        """Return int64: rows of the candidates with the lowest costs, equal by every criterion.

        The rows are in no order. The array is empty when no row is a candidate.
        """
        if self._all_clean and self._runs.known.alike:
            return self._joined()[: self._wanted]
        return self._cheapest(*self._candidates())

    def _cheapest(self, rows: IntArray, costs: IntArray) -> IntArray:
        if len(rows) and (costs == costs[0]).all():
            return rows  # cheaper than five comparisons
        for criterion in range(CRITERIA):
            if len(rows) <= 1:
                break
            of_it = costs[:, criterion]
            # By position: NumPy's reductions take three times as long.
            least = (of_it == of_it[of_it.argmin()]).nonzero()[0]
            if len(least) < len(rows):
                rows, costs = rows[least], costs[least]
                self._narrowed_by = RULES[criterion]
        return rows

    def best_without_needed(self) -> IntArray:
        """As `best`, without candidates whose victims nominated pods need once they are placed.

        Only candidates count whose victims are as few and as unimportant as those of the best ones.
        """
        rows, costs = self._candidates()
        as_few = (costs[:, :_OF_PODS] == self._least_costs()).all(axis=1)
        counted = self._runs.counted_rows
        victims = {row: self.victims(row) for row in rows[as_few].tolist() if row in counted}
        needed = self._runs.what_if.needed_by_nominated(victims) if victims else set[int]()
        as_few &= ~np.isin(rows, list(needed))
        return self._cheapest(rows[as_few], costs[as_few])

    def rule(self, ties: IntArray) -> str:
        """Return the rule that chose among the candidates, for people."""
        if len(ties) > 1:
            return BY_NAME
        return self._narrowed_by or ONLY_CANDIDATE

    def chosen(self, ties: IntArray) -> int:
        """Choose a row among the candidates with the lowest costs: the first by name.

        If their victims have not started, choose the last by name. Upstream reads the clock for
        each candidate, so the candidate compared last seems to have the latest start.
        """
        ranks = self._around.importance.name_ranks()[ties]
        first = ties.item(ranks.argmin())
        earliest_ns = self._runs.known.earliest_ns(first)
        waits = earliest_ns == NOT_STARTED
        if earliest_ns == self._now_ns:  # started now, or not started and tried alone
            leaves = self._around.leaves
            victims = [each for each in self.victims(first) if not leaves(each)]
            starts = [start_ns(each) for each in victims if each.priority == victims[0].priority]
            waits = NOT_STARTED in starts and min(starts) > self._now_ns
        return ties.item(ranks.argmax()) if waits else first

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates in the order tried, candidates without budget violations first."""
        rows, _ = self._candidates()
        return tuple(self.candidate(row) for row in rows.tolist())

    def candidate(self, row: int) -> Candidate:
        """Return one candidate."""
        found = self._runs.single.get(row)
        if isinstance(found, Candidate):
            return found
        violations = self._runs.known.victims_of(row).violations
        return Candidate(self._name(row), tuple(self.victims(row)), violations)

    def victims(self, row: int) -> Sequence[PodInfo]:
        """Return the victims of a candidate, most important first."""
        found = self._runs.single.get(row)
        if isinstance(found, Candidate):
            return found.victims
        assert found is None, f"row {row} is no candidate: {found}"
        outcome = self._runs.known.victims_of(row)
        pods = self._around.importance.pods_by_rank(row)
        victims = [pods[rank] for rank in outcome.ranks]
        return by_importance(victims, self._now_ns) if outcome.mixed else victims

    def rejected(self) -> dict[str, Status]:
        """Return the statuses of tried nodes that are no candidates, in the order tried."""
        state_n = self._runs.known.state_n
        return {
            self._name(row): self._status(row)
            for rows in self._tried
            for row in rows[state_n[rows] == NO_CANDIDATE].tolist()
        }

    def _candidates(self) -> tuple[IntArray, IntArray]:
        """Return rows and costs of the candidates, without budget violations first, both capped."""
        if self._first_candidates is None:
            self._first_candidates = self._capped()
        return self._first_candidates

    def _joined(self) -> IntArray:
        """Return the rows of all candidates in the order tried."""
        lots = self._candidate_rows
        return lots[0] if len(lots) == 1 else np.concatenate([_NO_ROWS, *lots])

    def _capped(self) -> tuple[IntArray, IntArray]:
        rows = self._joined()
        costs = self._runs.known.costs(rows, self._now_ns)
        if self._all_clean:
            return rows[: self._wanted], costs[: self._wanted]
        clean = np.flatnonzero(costs[:, 0] == 0)[: self._wanted]
        broken = np.flatnonzero(costs[:, 0] != 0)[: self._wanted]
        order = np.concatenate([clean, broken])
        return rows[order], costs[order]

    def _least_costs(self) -> list[int]:
        """Return the costs of the best candidate by `_OF_PODS`; empty without a candidate."""
        _, costs = self._candidates()
        of_pods: list[list[int]] = costs[:, :_OF_PODS].tolist()
        return min(of_pods, default=[])

    def _status(self, row: int) -> Status:
        found = self._runs.single.get(row)
        if found is not None:
            assert isinstance(found, Status), f"row {row} is a candidate"
            return found
        outcome = self._runs.known.victims_of(row)
        if not outcome.lower:
            return self._runs.rules.nobody(self._name(row))
        status = outcome.status
        return status if not status.ok else _without_victims(self._name(row))

    def _name(self, row: int) -> str:
        return self._around.snapshot.names[row]


def _end_of_search(states: bytes, candidates: IntArray, missing: int, *, has_clean: bool) -> int:
    """Return how many rows of a lot are needed: all, unless the search ends within the lot.

    Parameters
    ----------
    states
        The states of the rows.
    candidates
        Positions of the candidates among them, ascending.
    missing
        How many candidates are still wanted; 0 or less if there are enough.
    has_clean
        Whether an earlier lot has a candidate that breaks no budget.
    """
    if len(candidates) < missing or not (has_clean or CLEAN in states):
        return len(states)
    last_wanted = candidates.item(missing - 1) if missing > 0 else 0
    first_clean = 0 if has_clean else states.index(CLEAN)
    return max(last_wanted, first_clean) + 1


def _without_victims(node_name: str) -> Status:
    return error(f'expected at least one victim pod on node "{node_name}"')
