"""Filter: which nodes can serve a pod's claims, and the allocations found there.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (Filter).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import AllocationResult
from moorage.framework.handle import Handle
from moorage.framework.status import Code, FilterAnswer
from moorage.plugins.claims.attempt import Attempt
from moorage.plugins.claims.books import Books
from moorage.plugins.claims.conditions import is_lost
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import INVALID_POOLS, Allocator
from moorage.plugins.claims.devices.contract import (
    AllocationError,
    AllocationTimeoutError,
    NodeFacts,
)
from moorage.plugins.claims.devices.search import Solution
from moorage.plugins.claims.findings import ClaimDemands, Findings, OnNode
from moorage.plugins.claims.rows import (
    ALLOCATED,
    INVALID_POOL,
    NOT_ALLOCATED,
    RowAnswers,
    outcome,
)
from moorage.plugins.nodes.terms import SelectorQuestion
from moorage.snapshot.view import NodeView

LEFT_OVER: Final = "cannot schedule extended resource claim"
NO_FIT: Final = "cannot fit resource"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
NOT_ENOUGH: Final = "cannot allocate all claims"

RowArray = NDArray[np.int64]

_NO_RESOURCE_LEFT: Final[tuple[str, ...]] = ()
_PASSES: Final = 0
"""Id of no reasons."""
_UNRESOLVABLE: Final = np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class DeviceSearch:
    """Judges rows for one attempt.

    Parameters
    ----------
    attempt
        The claims; the search adds the claims that nodes cannot reach.
    books
        The devices.
    handle
        The clock, and the table of reasons.
    state
        The devices that count as allocated; None for those of the cluster as it is.
    timeout_ns
        Time limit for allocated devices to become ready; None to never wait for devices.
    """

    def __init__(
        self,
        attempt: Attempt,
        books: Books,
        handle: Handle,
        *,
        state: AllocatedState | None,
        timeout_ns: int | None,
    ) -> None:
        self._attempt = attempt
        self._books = books
        self._snapshot = attempt.snapshot
        self._reasons = handle.reasons
        self._allocator_of_others = None if state is None else books.allocator_beside(state)
        # The state of a claim's devices does not depend on the node.
        self._lost = [
            timeout_ns is not None
            and each.is_allocated
            and is_lost(each.claim, handle.clock, timeout_ns=timeout_ns)
            for each in attempt.claims
        ]
        self._reachable = [
            None if each.reachable is None else SelectorQuestion(each.reachable)
            for each in attempt.claims
        ]
        self._claims_by_names: dict[tuple[str, ...], ClaimDemands] = {}
        self._structure = -1
        self._findings = Findings(0, self._results)

    def judge(self, view: NodeView) -> FilterAnswer | None:
        """Return the answer for the rows of a view; an Error applies to all rows."""
        if self._attempt.left_over is not None:
            return self._all(view, LEFT_OVER)
        structure = self._snapshot.table.columns.structure
        if structure != self._structure:  # the first call, or rows have other numbers now
            self._structure = structure
            self._findings = Findings(self._snapshot.num_nodes, self._results)
        rows = view.row_numbers()
        reason_n = np.full(len(rows), _PASSES, np.int32)
        try:
            for resources, positions in self._by_resources(rows, reason_n):
                where = rows if positions is None else rows[positions]
                found_n = self._find(resources, where)
                reason_n[slice(None) if positions is None else positions] = found_n
        except (AllocationError, AllocationTimeoutError) as broken:
            return self._all(view, str(broken), Code.ERROR)
        if not reason_n.any():
            return None
        code_n = np.where(reason_n == _PASSES, np.uint8(Code.SUCCESS), _UNRESOLVABLE)
        return FilterAnswer(code_n, reason_n)

    def on(self, row: int) -> OnNode | None:
        """Return the allocations on a row; None for a row that did not pass."""
        if self._structure != self._snapshot.table.columns.structure:
            return None
        return self._findings.on(row)

    def scores(self, rows: RowArray, more: int) -> NDArray[np.int64]:
        """Return int64, (rows,): points for alternatives, and `more` on each row that passed."""
        return self._findings.scores(rows, more)

    def _all(
        self, view: NodeView, reason: str, code: Code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    ) -> FilterAnswer:
        reason_n = np.full(len(view), self._reasons.intern(reason), np.int32)
        return FilterAnswer(np.full(len(view), code, np.uint8), reason_n)

    def _by_resources(
        self, rows: RowArray, reason_n: NDArray[np.int32]
    ) -> list[tuple[tuple[str, ...], RowArray | None]]:
        """Group rows by the resources that devices must provide there.

        Returns the positions of each group, None for every row, without the rows that need no
        devices. Rows that lack a resource get their reason.
        """
        extended, has_own = self._attempt.extended, self._attempt.has_own
        if extended is None:
            return [(_NO_RESOURCE_LEFT, None)] if has_own else []
        groups, lacking = extended.by_resources(self._snapshot, rows)
        for positions in lacking:
            reason_n[positions] = self._reasons.intern(NO_FIT)
        return [
            (resources, None if len(positions) == len(rows) else positions)
            for resources, positions in groups
            if resources or has_own
        ]

    def _find(self, resources: tuple[str, ...], rows: RowArray) -> NDArray[np.int32]:
        """Judge rows where devices must provide the same resources; return ids of reasons."""
        reason_n = self._allocate(resources, rows)
        missing_n = np.zeros(len(rows), np.bool_)
        for index, reachable in enumerate(self._reachable):
            if self._lost[index]:
                out_n = np.ones(len(rows), np.bool_)
            elif reachable is not None:
                out_n = ~reachable.holds(self._snapshot, self._snapshot.rows(rows))
            else:
                continue
            out_n &= reason_n == _PASSES
            if out_n.any():
                self._attempt.unavailable[index] = None
                missing_n |= out_n
        if missing_n.any():
            reason_n[missing_n] = self._reasons.intern(NOT_AVAILABLE)
            self._findings.rejected(rows[missing_n])
        return reason_n

    def _allocate(self, resources: tuple[str, ...], rows: RowArray) -> NDArray[np.int32]:
        """Search devices for the claims without an allocation; return ids of reasons."""
        if not self._attempt.unallocated:
            return np.full(len(rows), _PASSES, np.int32)
        allocator = self._allocator()
        claim_demands = self._claims_by_names.get(resources)
        if claim_demands is None:
            extended = self._attempt.extended
            special = None if extended is None else extended.on_node(resources)
            claims = self._attempt.demands_for(special)
            claim_demands = self._claims_by_names[resources] = ClaimDemands(
                special, allocator.compile(claims)
            )
        if not claim_demands.demands:
            self._findings.passed(rows, claim_demands, {}, np.zeros(len(rows), np.int32))
            return np.full(len(rows), _PASSES, np.int32)
        answers = self._answers(allocator, claim_demands, rows)
        is_allocated_n = answers.outcome_n == ALLOCATED
        if is_allocated_n.all():
            self._findings.passed(rows, claim_demands, answers.solutions, answers.number_n)
            return np.full(len(rows), _PASSES, np.int32)
        passed = rows[is_allocated_n]
        self._findings.rejected(rows)
        self._findings.passed(
            passed, claim_demands, answers.solutions, answers.number_n[is_allocated_n]
        )
        return self._reason_ids()[answers.outcome_n]

    def _reason_ids(self) -> NDArray[np.int32]:
        """Return int32, (outcomes,): the id of the reasons for each outcome of a search."""
        ids = np.full(INVALID_POOL + 1, _PASSES, np.int32)
        ids[NOT_ALLOCATED] = self._reasons.intern(NOT_ENOUGH)
        ids[INVALID_POOL] = self._reasons.intern(INVALID_POOLS)
        return ids

    def _answers(
        self, allocator: Allocator, claim_demands: ClaimDemands, rows: RowArray
    ) -> RowAnswers:
        if self._allocator_of_others is None:
            return self._books.rows.answers(allocator, claim_demands.demands, rows)
        facts = [self._facts(row) for row in rows.tolist()]
        answers = allocator.allocate_nodes(facts, claim_demands.demands)
        outcomes = [outcome(seen, solution) for seen, solution in answers]
        found = {at: solution for at, (_, solution) in enumerate(answers) if solution is not None}
        number_n = np.arange(len(rows), dtype=np.int32)
        return RowAnswers(number_n, np.array(outcomes, np.uint8), found)

    def _allocator(self) -> Allocator:
        return self._allocator_of_others or self._books.allocator()

    def _results(
        self, row: int, claim_demands: ClaimDemands, solution: Solution
    ) -> list[AllocationResult]:
        return self._allocator().results(self._facts(row), claim_demands.demands, solution)

    def _facts(self, row: int) -> NodeFacts:
        node = self._snapshot.node(row)
        return NodeFacts(node.name, node.metadata.labels)
