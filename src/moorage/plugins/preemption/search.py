"""The search for nodes to make room on: which are tried, in what order, and which loses least.

Part of DefaultPreemption. Nodes are tried from a random one on until enough candidates are found,
as many at once as independence allows; the outcome is the one of trying them one by one.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/preemption.go``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.preemption import Candidate
from moorage.framework.status import Status, error
from moorage.framework.what_if import WhatIf
from moorage.plugins.preemption.dry_runs import DryRuns, Surroundings
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

# How many times as many rows are looked at as may have to be tried: that costs next to nothing, and
# saves another lot where candidates are rarer than they were; a guess.
_LOOKED_AT = 2
# Rows tried beyond those that are missing: a guess between one more lot and waste.
_MORE_ROWS = 16

IntArray = NDArray[np.int64]

_NO_ROWS = np.empty(0, np.int64)


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

    Attributes
    ----------
    tried
        How many rows were tried out.
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
        self._now_ns = now_ns
        self._runs = DryRuns(around, what_if, pod, now_ns=now_ns, rules=rules)
        self.tried = 0
        self._tried: list[IntArray] = []
        self._found: list[IntArray] = []
        self._all_clean = True
        self._wanted = 0
        self._kept: tuple[IntArray, IntArray] | None = None

    def run(self, rows: IntArray, first: int, wanted: int) -> None:
        """Try rows until enough are candidates, one without broken budgets.

        Parameters
        ----------
        rows
            The rows worth a try.
        first
            Which of them is tried first; the others follow in order, those before it last.
        wanted
            How many candidates are enough.
        """
        self._wanted = wanted
        at = clean = total = 0
        in_order = self._around.twice(rows)[first : first + len(rows)]
        while at < len(rows) and not (clean and total >= wanted):
            at_once = self._rows_at_once(wanted - total, at, total)
            lot, states, text = self._lot(in_order[at : at + at_once * _LOOKED_AT], at_once)
            found = (states >= BREAKING).nonzero()[0]
            size = len(lot)
            at += size
            if total + len(found) >= wanted and (clean or CLEAN in text):
                missing = wanted - total
                last = found.item(missing - 1) if missing > 0 else 0
                size = max(last, 0 if clean else text.index(CLEAN)) + 1
                found = found[: found.searchsorted(size)]
            clean += text.count(CLEAN, 0, size) if BREAKING in text else len(found)
            total += len(found)
            self.tried += size
            self._tried.append(lot[:size])
            self._found.append(lot[found])
        self._all_clean = clean == total
        if total:
            self._around.rows_for_candidates = (self.tried, total)

    def _lot(self, rows: IntArray, at_once: int) -> tuple[IntArray, StateArray, bytes]:
        """Return the next rows, and their states as an array and as bytes.

        Those are rows that are known, or tried now because they are among the first `at_once`.
        """
        states = self._runs.known.states(rows, self._now_ns)
        # As bytes: looking for one of them takes a fraction of what a comparison takes.
        text = states.tobytes()
        unknown = text.find(UNKNOWN, at_once)
        if unknown >= 0:
            rows, states, text = rows[:unknown], states[:unknown], text[:unknown]
        if UNKNOWN in text:
            states = self._runs.tried(rows, text)
            text = states.tobytes()
        return rows, states, text

    def _rows_at_once(self, missing: int, tried: int, found: int) -> int:
        """Return how many rows to try next: as many as will do at the rate so far, and a few."""
        if not self._runs.independent:
            return 1
        if missing <= 0:  # only one is missing that breaks no budget, and nobody knows where
            return tried
        if not found:
            rows, candidates = self._around.rows_for_candidates
            return max(missing * rows // candidates, tried) * 9 // 8 + _MORE_ROWS
        return missing * tried // found * 9 // 8 + _MORE_ROWS

    # -- what came of it -----------------------------------------------------------------------

    def best(self) -> IntArray:
        """Return int64: rows of the candidates that lose least, equal by every criterion.

        In no order; empty when there is no candidate.
        """
        if self._all_clean and self._runs.known.alike:
            return self._joined()[: self._wanted]
        rows, costs = self._candidates()
        if len(rows) and (costs == costs[0]).all():
            return rows  # cheaper than looking five times
        for criterion in range(CRITERIA):
            if len(rows) <= 1:
                break
            of_it = costs[:, criterion]
            # By position: NumPy's reductions take three times as long.
            least = (of_it == of_it[of_it.argmin()]).nonzero()[0]
            if len(least) < len(rows):
                rows, costs = rows[least], costs[least]
        return rows

    def chosen(self, ties: IntArray) -> int:
        """Return the row to take of the candidates that lose least: the first by name.

        Where those they would lose have not started, it is the last: upstream looks at the clock
        for each anew, so the one that is asked last seems to have started last.
        """
        ranks = self._around.importance.name_ranks()[ties]
        first = ties.item(ranks.argmin())
        earliest_ns = self._runs.known.earliest_ns(first)
        waits = earliest_ns == NOT_STARTED
        if earliest_ns == self._now_ns:  # one started now, or not started and tried by itself
            victims = self.victims(first)
            starts = [start_ns(each) for each in victims if each.priority == victims[0].priority]
            waits = NOT_STARTED in starts and min(starts) > self._now_ns
        return ties.item(ranks.argmax()) if waits else first

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every candidate, those that break no budget first, each in the order tried."""
        rows, _ = self._candidates()
        return tuple(self.candidate(row) for row in rows.tolist())

    def candidate(self, row: int) -> Candidate:
        """Return one candidate."""
        found = self._runs.single.get(row)
        if isinstance(found, Candidate):
            return found
        violations = self._runs.known.found(row).violations
        return Candidate(self._name(row), tuple(self.victims(row)), violations)

    def victims(self, row: int) -> Sequence[PodInfo]:
        """Return who would have to go from a candidate, most important first."""
        found = self._runs.single.get(row)
        if isinstance(found, Candidate):
            return found.victims
        assert found is None, f"row {row} is no candidate: {found}"
        outcome = self._runs.known.found(row)
        pods = self._around.importance.pods(row)
        victims = [pods[rank] for rank in outcome.ranks]
        return by_importance(victims, self._now_ns) if outcome.mixed else victims

    def rejected(self) -> dict[str, Status]:
        """Return why the other tried nodes are no candidates, in the order tried."""
        state_n = self._runs.known.state_n
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

    def _joined(self) -> IntArray:
        """Return the rows of all candidates in the order tried."""
        found = self._found
        return found[0] if len(found) == 1 else np.concatenate([_NO_ROWS, *found])

    def _capped(self) -> tuple[IntArray, IntArray]:
        rows = self._joined()
        costs = self._runs.known.costs(rows, self._now_ns)
        if self._all_clean:
            return rows[: self._wanted], costs[: self._wanted]
        clean = np.flatnonzero(costs[:, 0] == 0)[: self._wanted]
        broken = np.flatnonzero(costs[:, 0] != 0)[: self._wanted]
        order = np.concatenate([clean, broken])
        return rows[order], costs[order]

    def _status(self, row: int) -> Status:
        found = self._runs.single.get(row)
        if found is not None:
            assert isinstance(found, Status), f"row {row} is a candidate"
            return found
        outcome = self._runs.known.found(row)
        if not outcome.lower:
            return self._runs.rules.nobody(self._name(row))
        status = outcome.status
        return status if not status.ok else _without_victims(self._name(row))

    def _name(self, row: int) -> str:
        return self._around.snapshot.names[row]


def _without_victims(node_name: str) -> Status:
    return error(f'expected at least one victim pod on node "{node_name}"')
