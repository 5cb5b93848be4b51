"""The claims of one pod during one attempt, and the allocations found on nodes.

PreFilter creates an attempt. Filter and Score read it, Reserve sets the allocations, and PreBind
writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.api.selectors import NodeMatcher
from moorage.framework.status import FilterAnswer
from moorage.plugins.claims.extended import ExtendedPart, NodeClaim, is_in_memory
from moorage.plugins.claims.findings import SUB_REQUESTS_MOST, OnNode
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class Search(Protocol):
    """Judges rows for an attempt (`moorage.plugins.claims.searching`)."""

    def judge(self, view: NodeView) -> FilterAnswer | None:
        """Return the answer for the rows of a view; None if every row passes."""
        ...

    def on(self, row: int) -> OnNode | None:
        """Return the allocations on a row; None for a row that did not pass."""
        ...

    def scores(self, rows: NDArray[np.int64], more: int) -> NDArray[np.int64]:
        """Return int64, (rows,): points for alternatives, and `more` on each row that passed."""
        ...


class PodClaim(msgspec.Struct):
    """One claim of the pod during an attempt.

    Parameters
    ----------
    claim
        The newest version of the claim; PreBind replaces it.
    uid
        Uid under which an allocation that is not written yet is kept.
    special
        Whether the claim is the special claim for extended resources.
    reachable
        The nodes that can reach the allocation; None for every node.
    shared
        The allocation that another member of the pod's group got in the same attempt.
    allocation
        The allocation from Reserve, which PreBind writes; None if the API has an allocation.
    """

    claim: ResourceClaim
    uid: str
    special: bool = False
    reachable: NodeMatcher | None = None
    shared: AllocationResult | None = None
    allocation: AllocationResult | None = None

    @property
    def is_allocated(self) -> bool:
        """Whether the API shows an allocation."""
        return self.claim.status.allocation is not None


class Attempt:
    """The claims of a pod in one attempt.

    Parameters
    ----------
    snapshot
        The cluster to which the rows of the attempt belong.
    claims
        The claims of the pod's spec in order, then the special claim.
    extended
        The pod's requests of extended resources, while its special claim is only in memory.

    Attributes
    ----------
    unavailable
        Indexes of claims that at least one node could not reach.
    search
        The search that judges nodes; None without claims to check.
    reserved
        The node that Reserve was called for, and the findings there; None before Reserve.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        claims: Sequence[PodClaim] = (),
        *,
        extended: ExtendedPart | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.claims = list(claims)
        self.extended = extended
        self.unavailable: dict[int, None] = {}
        self.search: Search | None = None
        self.reserved: tuple[str, OnNode] | None = None

    @property
    def special(self) -> PodClaim | None:
        """The special claim for extended resources; None without one."""
        last = self.claims[-1] if self.claims else None
        return last if last is not None and last.special else None

    @property
    def left_over(self) -> ResourceClaim | None:
        """The special claim that an earlier attempt left; None without one."""
        special = self.special
        return None if special is None or is_in_memory(special.claim) else special.claim

    @property
    def has_own(self) -> bool:
        """Whether the pod's spec names claims."""
        return any(not each.special for each in self.claims)

    @property
    def unallocated(self) -> list[PodClaim]:
        """The claims without an allocation in the API, in order."""
        return [each for each in self.claims if not each.is_allocated]

    def demands_for(self, special: NodeClaim | None) -> list[ResourceClaim]:
        """Return the claims to allocate, with this form of the special claim."""
        return [
            special.claim if each.special and special is not None else each.claim
            for each in self.unallocated
            if each.shared is None
        ]

    def results_on(self, node_name: str) -> list[AllocationResult]:
        """Return the allocation of each unallocated claim on a node that passed Filter."""
        return self._results(self._on(node_name))

    def reserve(self, node_name: str) -> list[AllocationResult]:
        """Choose a node; return its results, as `results_on`."""
        found = self._on(node_name)
        self.reserved = None if found is None else (node_name, found)
        return self._results(found)

    def _on(self, node_name: str) -> OnNode | None:
        row = self.snapshot.row_of(node_name)
        return None if row is None or self.search is None else self.search.on(row)

    def _results(self, on_node: OnNode | None) -> list[AllocationResult]:
        new = iter(() if on_node is None else on_node.results)
        results = [each.shared or next(new, None) for each in self.unallocated]
        return [each for each in results if each is not None]

    def special_on(self, node_name: str) -> NodeClaim | None:
        """Return the special claim on the node that was reserved; None without such a claim."""
        reserved = self.reserved
        return None if reserved is None or reserved[0] != node_name else reserved[1].special

    def on_node(self, one: PodClaim, node_name: str) -> ResourceClaim:
        """Return a claim with the requests that the reserved node serves."""
        special = self.special_on(node_name)
        return one.claim if special is None or not one.special else special.claim

    def scores(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64, (rows,): the scores for requests with alternatives."""
        if self.search is None:
            return np.zeros(len(rows), np.int64)
        return self.search.scores(rows, sum(map(_score_of, self.claims)))


def _score_of(one: PodClaim) -> int:
    """Return the score that an already allocated claim adds on every node."""
    allocation = one.claim.status.allocation or one.shared
    if allocation is None:
        return 0
    used = {result.request for result in allocation.devices.results}
    return sum(
        SUB_REQUESTS_MOST - index
        for request in one.claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in used
    )


def with_allocation(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """Return a claim with an allocation."""
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
