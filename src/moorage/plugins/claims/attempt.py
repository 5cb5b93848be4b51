"""One pod's attempt as far as its claims go: which it has, which it needs, what nodes could give.

Made by PreFilter, asked by Filter and Score, filled by Reserve and published by PreBind.
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
"""The most alternatives a request may have (kubernetes v1.36 ``api/resource/v1``)."""


class Found(Protocol):
    """What was found for the claims on one node (`moorage.plugins.claims.devices.allocator`)."""

    @property
    def chosen(self) -> tuple[tuple[int | None, ...], ...]:
        """For each claim and each of its requests the index of the chosen sub-request."""
        ...

    def results(self) -> list[AllocationResult]:
        """Return the allocation of each claim, in the order asked."""
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
        Its newest version; PreBind replaces it.
    uid
        Under which its allocation is under way.
    special
        Whether it is the one for extended resources.
    reachable
        The nodes its allocation can be reached from; None for every node.
    shared
        The allocation another member of the pod's group has decided on in the same attempt.
    allocation
        Set by Reserve, to be written by PreBind; None where the API has one.
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
    """What one node can give: allocations for the claims that need one, the special claim there."""

    found: Found | None = None
    special: NodeClaim | None = None


class Attempt:
    """The claims of a pod in one attempt.

    Parameters
    ----------
    snapshot
        The cluster the rows of the attempt belong to.
    claims
        The pod's own claims in its order, then the special one.
    extended
        What the pod wants of extended resources, while its special claim is in memory.

    Attributes
    ----------
    by_node
        What nodes that passed can give, by name.
    unavailable
        Indexes of claims that some node could not reach, each once.
    search
        Judges nodes; None where there is nothing to ask.
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
        """The claim for extended resources, if there is one."""
        last = self.claims[-1] if self.claims else None
        return last if last is not None and last.special else None

    @property
    def left_over(self) -> ResourceClaim | None:
        """The special claim of an earlier attempt."""
        special = self.special
        return None if special is None or is_in_memory(special.claim) else special.claim

    @property
    def has_own(self) -> bool:
        """Whether the pod names claims itself."""
        return any(not each.special for each in self.claims)

    @property
    def unallocated(self) -> list[PodClaim]:
        """The claims without an allocation in the API, in order."""
        return [each for each in self.claims if not each.is_allocated]

    def asked_for(self, special: NodeClaim | None) -> list[ResourceClaim]:
        """Return the claims devices are to be found for, where the special one is like this."""
        return [
            special.claim if each.special and special is not None else each.claim
            for each in self.unallocated
            if each.shared is None
        ]

    def on_node(self, one: PodClaim, node_name: str) -> ResourceClaim:
        """Return a claim as a node would serve it."""
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
        """Return how well a node serves requests with alternatives: 8 for each first choice."""
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
    """Return what a claim that has its allocation already adds to the score of any node."""
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
