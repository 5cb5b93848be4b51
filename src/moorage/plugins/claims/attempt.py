"""The claims of one pod during one attempt, and the allocations found on nodes.

PreFilter creates an attempt. Filter and Score read it, Reserve sets the allocations, and PreBind
writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.api.node import Node
from moorage.api.selectors import NodeMatcher
from moorage.framework.status import Status
from moorage.plugins.claims.extended import ExtendedPart, NodeClaim, is_in_memory
from moorage.snapshot.snapshot import Snapshot

_SUB_REQUESTS_MOST = 8
"""Greatest number of alternatives of a request (kubernetes v1.36 ``api/resource/v1``)."""


class Found(Protocol):
    """The allocation found on one node (`moorage.plugins.claims.devices.allocator`)."""

    @property
    def chosen(self) -> tuple[tuple[int | None, ...], ...]:
        """For each claim and each of its requests, the index of the chosen sub-request."""
        ...

    def results(self) -> list[AllocationResult]:
        """Return the allocation of each claim, in the order of the claims."""
        ...


class Search(Protocol):
    """Judges nodes for an attempt (`moorage.plugins.claims.searching`)."""

    def judge(self, nodes: Sequence[Node]) -> list[Status]:
        """Return the status of each node."""
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


class OnNode(msgspec.Struct, frozen=True):
    """The allocations for unallocated claims on one node, and the special claim on that node."""

    found: Found | None = None
    special: NodeClaim | None = None


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
    by_node
        The allocations found on nodes that passed Filter, by node name.
    unavailable
        Indexes of claims that at least one node could not reach.
    search
        The search that judges nodes; None without claims to check.
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
        self.by_node: dict[str, OnNode] = {}
        self.unavailable: dict[int, None] = {}
        self.search: Search | None = None

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

    def asked_for(self, special: NodeClaim | None) -> list[ResourceClaim]:
        """Return the claims to allocate, with this form of the special claim."""
        return [
            special.claim if each.special and special is not None else each.claim
            for each in self.unallocated
            if each.shared is None
        ]

    def on_node(self, one: PodClaim, node_name: str) -> ResourceClaim:
        """Return a claim with the requests that a node would serve."""
        special = self.by_node.get(node_name, OnNode()).special
        return one.claim if special is None or not one.special else special.claim

    def results_on(self, node_name: str) -> list[AllocationResult]:
        """Return the allocation of each unallocated claim on a node that passed."""
        on_node = self.by_node.get(node_name, OnNode())
        new = iter(() if on_node.found is None else on_node.found.results())
        unallocated = self.unallocated
        found = [each.shared or next(new, None) for each in unallocated]
        return [each for each in found if each is not None]

    def score(self, node_name: str) -> int:
        """Return the score of a node for requests with alternatives: 8 for each first choice."""
        on_node = self.by_node.get(node_name)
        if on_node is None:
            return 0
        total = sum(
            _SUB_REQUESTS_MOST - index
            for claim in (() if on_node.found is None else on_node.found.chosen)
            for index in claim
            if index is not None
        )
        return total + sum(map(_score_of, self.claims))


def _score_of(one: PodClaim) -> int:
    """Return the score that an already allocated claim adds on every node."""
    allocation = one.claim.status.allocation or one.shared
    if allocation is None:
        return 0
    used = {result.request for result in allocation.devices.results}
    return sum(
        _SUB_REQUESTS_MOST - index
        for request in one.claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in used
    )


def with_allocation(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """Return a claim with an allocation."""
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
