"""Offered and allocated devices, kept up to date between attempts.

The records are built for the first pod with claims, so a cluster without claims has no cost.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.config.feature_gates import FeatureGates
from moorage.framework.handle import Handle
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import Features
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.snapshot.claim_table import ClaimTable, Key, allocation_of


class Holdings:
    """The devices allocated to claims, pending allocations included.

    Parameters
    ----------
    claims
        The claims.
    consumable_capacity
        The feature gate.
    """

    def __init__(self, claims: ClaimTable, *, consumable_capacity: bool) -> None:
        self._claims = claims
        self._by_capacity = consumable_capacity
        self._counted: dict[Key, AllocationResult] = {}
        self._held = self._empty()
        self._shown_at = self._newer_at = -1

    def now(self) -> AllocatedState:
        """Return the currently allocated devices; the caller may add to the result."""
        self._follow()
        return self._with_under_way(self._held.copy())

    def without(self, given_back: Callable[[ResourceClaim], bool]) -> AllocatedState:
        """Return the allocated devices but for those of some claims.

        Parameters
        ----------
        given_back
            Whether the devices of a claim do not count.
        """
        held = self._empty()
        for claim in self._claims.all():
            if claim.status.allocation is not None and not given_back(claim):
                held.add(claim.status.allocation)
        return self._with_under_way(held)

    def _with_under_way(self, held: AllocatedState) -> AllocatedState:
        for under_way in self._claims.under_way():
            # An allocation that is written, and not yet shown by the watch, counts once.
            written = self._claims.get(under_way.namespace, under_way.name)
            if written is None or written.status.allocation is None:
                held.add(allocation_of(under_way))
        return held

    def _empty(self) -> AllocatedState:
        return AllocatedState(consumable_capacity=self._by_capacity)

    def _follow(self) -> None:
        shown, newer = self._claims.shown_log, self._claims.log
        changed = None if self._shown_at < 0 else shown.since(self._shown_at)
        more = None if self._newer_at < 0 else newer.since(self._newer_at)
        self._shown_at, self._newer_at = shown.position, newer.position
        if changed is None or more is None:
            self._held, self._counted = self._empty(), {}
            keys = [(claim.namespace, claim.name) for claim in self._claims.all()]
        else:
            keys = [*changed, *more]
        for key in keys:
            self._count(key)

    def _count(self, key: Key) -> None:
        claim = self._claims.get(*key)
        held = None if claim is None else claim.status.allocation
        before = self._counted.pop(key, None)
        if before is not None:
            self._held.remove(before)
        if held is not None:
            self._held.add(held)
            self._counted[key] = held


class Books:
    """The devices of the cluster, offered and allocated.

    Parameters
    ----------
    handle
        Listers of slices, classes and claims, and the stream for share ids.
    filter_timeout_seconds
        Time limit of the search on one node; 0 for no limit.
    """

    def __init__(self, handle: Handle, *, filter_timeout_seconds: float) -> None:
        self._handle = handle
        self._timeout_seconds = filter_timeout_seconds
        self._features = features_of(handle.gates)
        self._slices = handle.snapshot.listers.resource_slices
        self._inventory = self._offered()
        self._slices_at = self._slices.log.position
        by_capacity = self._features.consumable_capacity
        self._holdings = Holdings(handle.snapshot.claims, consumable_capacity=by_capacity)
        self._rng = handle.streams.stream("shares of devices")

    def allocator(self, given_back: Callable[[ResourceClaim], bool] | None = None) -> Allocator:
        """Return an allocator for one cycle.

        Parameters
        ----------
        given_back
            Whether the devices of a claim do not count as allocated; None where all count.
        """
        self._follow_slices()
        holdings = self._holdings
        return Allocator(
            holdings.now() if given_back is None else holdings.without(given_back),
            self._inventory,
            self._handle.snapshot.listers.device_classes.get,
            rng=self._rng,
            clock=self._handle.clock,
            timeout_seconds=self._timeout_seconds,
        )

    def _offered(self) -> Inventory:
        return Inventory(self._slices.all(), features=self._features)

    def _follow_slices(self) -> None:
        log = self._slices.log
        changed = log.since(self._slices_at)
        self._slices_at = log.position
        if changed is None:
            self._inventory = self._offered()
            return
        for _, name in changed:
            found = self._slices.get(name)
            if found is None:
                self._inventory.remove(name)
            else:
                self._inventory.put(found)


def features_of(gates: FeatureGates) -> Features:
    """Return the features of the allocator that feature gates switch."""
    return Features(
        admin_access=gates("DRAAdminAccess"),
        consumable_capacity=gates("DRAConsumableCapacity"),
        device_binding=gates("DRADeviceBindingConditions"),
        device_taints=gates("DRADeviceTaints"),
        partitionable_devices=gates("DRAPartitionableDevices"),
        prioritized_list=gates("DRAPrioritizedList"),
    )
