"""The search: devices for all requests of all claims on one node, the first solution found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim
from moorage.base.clock import Clock
from moorage.base.rng import Random
from moorage.plugins.devices.allocated import AllocatedState
from moorage.plugins.devices.contract import Features, NodeFacts
from moorage.plugins.devices.inventory import Inventory


class NodeAllocation:
    """The answer for one node; nodes with the same devices share the search behind it."""

    @property
    def is_allocated(self) -> bool:
        """Whether every claim gets its devices on this node."""
        raise NotImplementedError("the allocator is not built yet")

    @property
    def reason(self) -> str | None:
        """What kube-scheduler says of this node in particular, where nothing was allocated."""
        raise NotImplementedError("the allocator is not built yet")

    @property
    def chosen(self) -> tuple[tuple[int | None, ...], ...]:
        """For each claim and each of its requests the index of the sub-request that was chosen.

        None for a request without alternatives. Empty where nothing was allocated.
        """
        raise NotImplementedError("the allocator is not built yet")

    def results(self) -> list[AllocationResult]:
        """Build the allocation of each claim, in the order asked; drawn share ids are kept."""
        raise NotImplementedError("the allocator is not built yet")


class Allocator:
    """Allocates for one scheduling cycle: what is allocated and offered does not change meanwhile.

    Parameters
    ----------
    allocated
        What other claims hold, allocations on their way to the API included.
    inventory
        Slices of the cluster.
    find_class
        Returns the DeviceClass of a name, or None.
    rng
        Share ids are drawn from it.
    features
        Feature gates.
    clock, timeout_seconds
        How long the search on one node may take; 0 means as long as it needs.
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
        features: Features = Features(),  # noqa: B008  (frozen)
    ) -> None:
        raise NotImplementedError("the allocator is not built yet")

    def allocate(
        self, node: NodeFacts, claims: Sequence[ResourceClaim]
    ) -> list[AllocationResult] | None:
        """Return what each claim gets on the node, or None where they cannot all be allocated.

        Raises
        ------
        AllocationError
            A claim, class or selector cannot be used; upstream's text. It ends the cycle.
        NodeAllocationError
            Nothing fits here and the node has invalid pools; upstream's text.
        AllocationTimeoutError
            The search took too long.
        """
        raise NotImplementedError("the allocator is not built yet")

    def allocate_nodes(
        self, nodes: Sequence[NodeFacts], claims: Sequence[ResourceClaim]
    ) -> list[NodeAllocation]:
        """Answer for many nodes; those with the same devices, equally free, share one search.

        Raises
        ------
        AllocationError, AllocationTimeoutError
            As `allocate`, of the first node in order that meets it.
        """
        raise NotImplementedError("the allocator is not built yet")
