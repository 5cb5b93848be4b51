"""The allocator of one scheduling cycle: claims and nodes in, allocations out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.rng import Random
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.cel import EFFORT
from moorage.plugins.claims.devices.contract import (
    AllocationTimeoutError,
    NodeAllocationError,
    NodeFacts,
)
from moorage.plugins.claims.devices.counters import PoolCounters
from moorage.plugins.claims.devices.grouping import Question, Signatures, question
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.requests import Demand, compile_claim
from moorage.plugins.claims.devices.results import build_results
from moorage.plugins.claims.devices.search import AllocationInputs, NodeSearch, Solution

INVALID_POOLS: Final = "invalid resource pools were encountered"
"""kube-scheduler's message for a node with such pools where nothing was allocated."""


class Allocator:
    """Allocates while offered and allocated devices do not change.

    Parameters
    ----------
    allocated
        Devices allocated to other claims, pending allocations included.
    inventory
        Slices of the cluster; its feature gates apply.
    find_class
        Returns the DeviceClass of a name, or None.
    rng
        Random stream for share ids.
    clock, timeout_seconds
        Time limit of the search on one node; 0 for no limit.
    """

    def __init__(
        self,
        allocated: AllocatedState,
        inventory: Inventory,
        find_class: Callable[[str], DeviceClass | None],
        *,
        rng: Random,
        clock: Clock,
        timeout_seconds: float = 0,
    ) -> None:
        inventory.trim()
        EFFORT.begin_attempt()
        self.inventory = inventory
        self.allocated = allocated
        self._find_class = find_class
        self._rng = rng
        self._clock = clock
        self._timeout_ns = round(timeout_seconds * NS_PER_SECOND)
        self._counters = PoolCounters(allocated)

    def allocate(
        self, node: NodeFacts, claims: Sequence[ResourceClaim]
    ) -> list[AllocationResult] | None:
        """Return the allocations on the node, or None if not all claims can be allocated.

        Raises
        ------
        AllocationError
            A claim, class or selector cannot be used; upstream's text. It ends the cycle.
        NodeAllocationError
            Nothing fits on this node and the node has invalid pools; upstream's text.
        AllocationTimeoutError
            The search took too long.
        """
        demands = self.compile(claims)
        view = self.inventory.view(node)
        solution = self.search(view, demands, self.timer(node))
        if solution is not None:
            return build_results(view, node.name, demands, solution, self._rng)
        if view.has_invalid_pool:
            raise NodeAllocationError(INVALID_POOLS)
        return None

    def allocate_nodes(
        self, nodes: Sequence[NodeFacts], demands: Sequence[Demand]
    ) -> list[tuple[NodeView, Solution | None]]:
        """Answer for many nodes; nodes with the same free devices share one search.

        Raises
        ------
        AllocationError, AllocationTimeoutError
            As `allocate`, for the first node in order with the error.
        """
        signatures = self.signatures(question(demands))
        known: dict[tuple[object, ...], Solution | None] = {}
        answers = []
        for node in nodes:
            check_time = self.timer(node)
            view = self.inventory.view(node)
            key = signatures.signature_of(view, check_time)
            if key not in known:
                known[key] = self.search(view, demands, check_time)
            answers.append((view, known[key]))
        return answers

    def compile(self, claims: Sequence[ResourceClaim]) -> list[Demand]:
        """Compile claims.

        Raises
        ------
        AllocationError
            As `compile_claim`.
        """
        features = self.inventory.features
        return [compile_claim(claim, self._find_class, features) for claim in claims]

    def signatures(self, properties: Question) -> Signatures:
        """Return the signatures of nodes for claims with this question."""
        return Signatures(properties, self.inventory, self.allocated, self._counters)

    def search(
        self, view: NodeView, demands: Sequence[Demand], check_time: Callable[[], None]
    ) -> Solution | None:
        """Search the pools of one node.

        Raises
        ------
        AllocationError, AllocationTimeoutError
            As `allocate`.
        """
        features = self.inventory.features
        around = AllocationInputs(self.allocated, self._counters, features, check_time)
        return NodeSearch(view, demands, around).run()

    def results(
        self, node: NodeFacts, demands: Sequence[Demand], solution: Solution
    ) -> list[AllocationResult]:
        """Return the allocation of each claim, in order, that a solution means on a node.

        Raises
        ------
        AllocationError
            A slice has a node selector that cannot be expressed in the claim's.
        """
        return build_results(self.inventory.view(node), node.name, demands, solution, self._rng)

    def timer(self, node: NodeFacts) -> Callable[[], None]:
        """Start the time limit of a node; the result raises AllocationTimeoutError behind it."""
        if not self._timeout_ns:
            return _never
        deadline_ns = self._clock.monotonic_ns() + self._timeout_ns

        def check() -> None:
            if self._clock.monotonic_ns() >= deadline_ns:
                raise AllocationTimeoutError(
                    f"node {node.name}: timed out trying to allocate devices"
                )

        return check


def _never() -> None:
    """Never time out."""
