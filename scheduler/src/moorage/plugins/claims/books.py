"""Offered and allocated devices, kept up to date between attempts.

The records are built for the first pod with claims, so a cluster without claims has no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.config.feature_gates import FeatureGates
from moorage.config.gate_table import FRACTIONAL_CAPACITY
from moorage.framework.handle import Handle
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import Features
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.rows import DeviceRows
from moorage.plugins.claims.tainted_slices import TaintedSlices
from moorage.snapshot.claim_table import ClaimTable, Key, allocation_of


class _Pending(NamedTuple):
    """An allocation under way; None while the claim shows an allocation, which counts once."""

    key: Key
    allocation: AllocationResult | None


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
        self._allocations: dict[Key, AllocationResult] = {}
        self._pending: dict[str, _Pending] = {}
        self._pending_of: dict[Key, dict[str, None]] = {}
        """Uids of allocations under way, by the claim's key; special claims share a key."""
        self._state = self._empty()
        self._logs = (claims.shown_log, claims.log)
        self._positions: tuple[int, ...] = (-1, -1, -1)

    def now(self) -> AllocatedState:
        """Return the currently allocated devices.

        The result goes on following the claims with each call, and is a new object where it had to
        be built anew.
        """
        self._follow()
        return self._state

    def without(self, given_back: Callable[[ResourceClaim], bool] | None) -> AllocatedState:
        """Return the allocated devices but for those of some claims; a new object.

        Parameters
        ----------
        given_back
            Whether the devices of a claim do not count; None where all count.
        """
        self._follow()
        state = self._empty()
        for claim in self._claims.all_claims():
            if claim.status.allocation is None:
                continue
            if given_back is None or not given_back(claim):
                state.add(claim.status.allocation)
        for pending in self._pending.values():
            if pending.allocation is not None:
                state.add(pending.allocation)
        return state

    def _empty(self) -> AllocatedState:
        return AllocatedState(consumable_capacity=self._by_capacity)

    def _follow(self) -> None:
        (shown, newer), under_way = self._logs, self._claims.under_way_log
        before = self._positions
        self._positions = (shown.position, newer.position, under_way.position)
        if self._positions == before:
            return
        logs = zip((shown, newer), before, strict=False)
        changed = [None if at < 0 else log.since(at) for log, at in logs]
        begun = None if before[2] < 0 else under_way.since(before[2])
        if changed[0] is None or changed[1] is None or begun is None:
            self._state, self._allocations = self._empty(), {}
            self._pending, self._pending_of = {}, {}
            keys = [(claim.namespace, claim.name) for claim in self._claims.all_claims()]
            uids = list(self._claims.under_way_uids())
        else:
            keys = [*changed[0], *changed[1]]
            uids = [*begun, *(uid for key in keys for uid in self._pending_of.get(key, ()))]
        self._exchange(keys, uids)

    def _exchange(self, keys: Iterable[Key], uids: Iterable[str]) -> None:
        """Count the allocations of some claims again, and of some allocations under way."""
        removed: list[AllocationResult | None] = []
        added: list[AllocationResult | None] = []
        for key in keys:
            claim = self._claims.get(*key)
            allocation = None if claim is None else claim.status.allocation
            removed.append(self._allocations.pop(key, None))
            added.append(allocation)
            if allocation is not None:
                self._allocations[key] = allocation
        for uid in uids:
            removed.append(self._end_pending(uid))
            added.append(self._begin_pending(uid))
        self._state.exchange(filter(None, removed), filter(None, added))

    def _end_pending(self, uid: str) -> AllocationResult | None:
        """Forget an allocation under way; return it if it was counted."""
        before = self._pending.pop(uid, None)
        if before is None:
            return None
        same_key = self._pending_of[before.key]
        del same_key[uid]
        if not same_key:
            del self._pending_of[before.key]
        return before.allocation

    def _begin_pending(self, uid: str) -> AllocationResult | None:
        """Note an allocation that is under way now; return it if it counts."""
        now = self._claims.find_under_way(uid)
        if now is None:
            return None
        key = now.claim.namespace, now.claim.name
        # An allocation that is written, and not yet shown by the watch, counts once.
        written = self._claims.get(*key)
        is_written = written is not None and written.status.allocation is not None
        allocation = None if is_written else allocation_of(now.claim)
        self._pending[uid] = _Pending(key, allocation)
        self._pending_of.setdefault(key, {})[uid] = None
        return allocation


def holdings_of(claims: ClaimTable, *, consumable_capacity: bool) -> Holdings:
    """Return the devices allocated to claims, followed once for all plugins that ask.

    Parameters
    ----------
    claims, consumable_capacity
        As for `Holdings`.
    """
    key = Holdings, consumable_capacity
    holdings = claims.followers.get(key)
    if holdings is None:
        holdings = claims.followers[key] = Holdings(claims, consumable_capacity=consumable_capacity)
    assert isinstance(holdings, Holdings), "the key names the class"
    return holdings


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
        self._slices = TaintedSlices(handle.snapshot.listers)
        self._inventory = self._offered()
        by_capacity = self._features.consumable_capacity
        self._holdings = holdings_of(handle.snapshot.claims, consumable_capacity=by_capacity)
        self._rng = handle.streams.stream("shares of devices")
        self.rows = DeviceRows(handle.snapshot.table)
        """The answers for all rows, of allocators for which all devices count."""

    def allocator(self, given_back: Callable[[ResourceClaim], bool] | None = None) -> Allocator:
        """Return an allocator, good until the next change of a slice or a claim.

        Parameters
        ----------
        given_back
            Whether the devices of a claim do not count as allocated; None where all count.
        """
        holdings = self._holdings
        held = holdings.now() if given_back is None else holdings.without(given_back)
        return self.allocator_beside(held)

    def state_without(self, given_back: Callable[[ResourceClaim], bool] | None) -> AllocatedState:
        """Return the allocated devices but for those of some claims, to be added to."""
        return self._holdings.without(given_back)

    def allocator_beside(self, state: AllocatedState) -> Allocator:
        """Return an allocator next to some allocated devices."""
        self._follow_slices()
        return Allocator(
            state,
            self._inventory,
            self._handle.snapshot.listers.device_classes.get,
            rng=self._rng,
            clock=self._handle.clock,
            timeout_seconds=self._timeout_seconds,
        )

    def _offered(self) -> Inventory:
        return Inventory(self._slices.every(), features=self._features)

    def _follow_slices(self) -> None:
        changed = self._slices.changes()
        if changed is None:
            self._inventory = self._offered()
            return
        for name, slice_ in changed.items():
            if slice_ is None:
                self._inventory.remove(name)
            else:
                self._inventory.put_slice(slice_)


def features_of(gates: FeatureGates) -> Features:
    """Return the features of the allocator that feature gates switch."""
    return Features(
        admin_access=gates("DRAAdminAccess"),
        consumable_capacity=gates("DRAConsumableCapacity"),
        device_binding=gates("DRADeviceBindingConditions"),
        device_taints=gates("DRADeviceTaints"),
        fractional_capacity=gates(FRACTIONAL_CAPACITY),
        partitionable_devices=gates("DRAPartitionableDevices"),
        prioritized_list=gates("DRAPrioritizedList"),
    )
