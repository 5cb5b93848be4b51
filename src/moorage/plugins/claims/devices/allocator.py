"""The allocator of one scheduling cycle: claims and nodes in, allocations out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.rng import Random
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.contract import (
    AllocationTimeoutError,
    NodeAllocationError,
    NodeFacts,
)
from moorage.plugins.claims.devices.counters import PoolCounters
from moorage.plugins.claims.devices.grouping import Signatures
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.requests import Demand, compile_claim
from moorage.plugins.claims.devices.results import build_results
from moorage.plugins.claims.devices.search import NodeSearch, Solution, Surroundings

_INVALID_POOLS = "invalid resource pools were encountered"

_Build: TypeAlias = Callable[[NodeView, str, Solution], list[AllocationResult]]


class NodeAllocation:
    """The answer for one node; nodes with equal signatures share one search.

    Made by `Allocator`.
    """

    __slots__ = ("_build", "_node", "_results", "_solution", "_view", "reason")

    def __init__(
        self, solution: Solution | None, node: NodeFacts, view: NodeView, build: _Build
    ) -> None:
        self._solution = solution
        self._node = node
        self._view = view
        self._build = build
        self._results: list[AllocationResult] | None = None
        self.reason = _INVALID_POOLS if solution is None and view.has_invalid_pool else None
        """kube-scheduler's message for this node, if nothing was allocated."""

    @property
    def is_allocated(self) -> bool:
        """Whether every claim gets its devices on this node."""
        return self._solution is not None

    @property
    def chosen(self) -> tuple[tuple[int | None, ...], ...]:
        """For each claim and each of its requests, the index of the chosen sub-request.

        The index is None for a request without alternatives. The tuple is empty without allocation.
        """
        return () if self._solution is None else self._solution.chosen

    def results(self) -> list[AllocationResult]:
        """Return the allocation of each claim, in order; built on the first call.

        Raises
        ------
        AllocationError
            A slice has a node selector that cannot be expressed in the claim's.
        """
        assert self._solution is not None, "nothing was allocated on this node"
        if self._results is None:
            self._results = self._build(self._view, self._node.name, self._solution)
        return self._results


class Allocator:
    """Allocates during one cycle, in which offered and allocated devices do not change.

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
        self._inventory = inventory
        self._allocated = allocated
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
        demands = self._compile(claims)
        view = self._inventory.view(node)
        solution = self._search(node, view, demands)
        if solution is not None:
            return build_results(view, node.name, demands, solution, self._rng)
        if view.has_invalid_pool:
            raise NodeAllocationError(_INVALID_POOLS)
        return None

    def allocate_nodes(
        self, nodes: Sequence[NodeFacts], claims: Sequence[ResourceClaim]
    ) -> list[NodeAllocation]:
        """Answer for many nodes; nodes with the same free devices share one search.

        Raises
        ------
        AllocationError, AllocationTimeoutError
            As `allocate`, for the first node in order with the error.
        """
        demands = self._compile(claims)
        signatures = Signatures(demands, self._inventory, self._allocated, self._counters)
        known: dict[tuple[object, ...], Solution | None] = {}
        answers = []

        def build(view: NodeView, node_name: str, solution: Solution) -> list[AllocationResult]:
            return build_results(view, node_name, demands, solution, self._rng)

        for node in nodes:
            view = self._inventory.view(node)
            key = signatures.of(view)
            if key not in known:
                known[key] = self._search(node, view, demands)
            answers.append(NodeAllocation(known[key], node, view, build))
        return answers

    def _compile(self, claims: Sequence[ResourceClaim]) -> list[Demand]:
        features = self._inventory.features
        return [compile_claim(claim, self._find_class, features) for claim in claims]

    def _search(
        self, node: NodeFacts, view: NodeView, demands: Sequence[Demand]
    ) -> Solution | None:
        around = Surroundings(
            self._allocated, self._counters, self._inventory.features, self._timer(node)
        )
        return NodeSearch(view, demands, around).run()

    def _timer(self, node: NodeFacts) -> Callable[[], None]:
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
