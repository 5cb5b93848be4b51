"""The search on one node: devices for every request of every claim, the first solution found.

The search is depth first. A step takes a device, or all devices of a request, and starts the next
step. If the next step fails, the step gives its devices back. Steps are generators on an explicit
stack, so a claim of many devices needs no deep recursion.

Rules mirrored: kubernetes v1.36.3 ``structured/internal/incubating/allocator_incubating.go``. A
rejected device leaves no trace: its counters and its place in the constraints are free again.
v1.36.2 kept them for the rest of the search. In a request for all devices, the capacity that the
claim's other requests consume is checked last, because a constraint that fails first is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.capacity import consumption
from moorage.plugins.claims.devices.contract import AllocationError, Features
from moorage.plugins.claims.devices.counters import CounterLedger, PoolCounters
from moorage.plugins.claims.devices.offered import OfferedDevice
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.requests import RESULTS_MAX, Alternative, Demand, claim_text
from moorage.plugins.claims.devices.selecting import (
    ConstraintState,
    FaultAt,
    Judgement,
    begin_constraint,
    is_tainted,
    judgement,
    raise_fault,
)


class Pick(NamedTuple):
    """A device taken for a request."""

    alternative: Alternative
    position: int
    """Position among the devices of the node's view."""


class Solution(NamedTuple):
    """The devices found for each claim."""

    picks: tuple[tuple[Pick, ...], ...]
    chosen: tuple[tuple[int | None, ...], ...]
    """For each request, the index of the chosen alternative; None for a single alternative."""


class AllocationInputs(NamedTuple):
    """Data that all searches of one cycle share."""

    allocated: AllocatedState
    counters: PoolCounters
    features: Features
    check_time: Callable[[], None]
    """Raises when the search has taken too long."""


Step: TypeAlias = "Iterator[Step | None]"
"""Yields the step to go on with, or None when nothing is left to do."""

_AltKey: TypeAlias = tuple[int, int, int]
"""Claim, request and alternative, each by its index."""


class _Usable(NamedTuple):
    """The devices a search may try for a request."""

    devices: list[tuple[int, Judgement]]
    """Positions with selector answers; a missing answer matters when the device is tried."""
    have_faults: bool
    """Whether trying one of these devices may end the cycle by an error of its selector."""


class NodeSearch:
    """One search, for a single use.

    Parameters
    ----------
    view
        The pools of the node.
    demands
        Claims to allocate.
    around
        Data that the cycle's searches share.
    """

    def __init__(self, view: NodeView, demands: Sequence[Demand], around: AllocationInputs) -> None:
        self._devices = view.devices
        self._view = view
        self._demands = demands
        self._around = around
        self._counters = CounterLedger(around.counters)
        self._users: dict[int, set[int]] = {}
        """Claims by the position of the whole device they take."""
        self._shares: dict[int, list[dict[str, int]]] = {}
        """Consumption of each taken share, by the device's position."""
        self._constraints = [
            [begin_constraint(c) for c in demand.constraints] for demand in demands
        ]
        self._picks: list[list[Pick]] = [[] for _ in demands]
        self._chosen = [[0 for _ in demand.requests] for demand in demands]
        self._every: dict[_AltKey, list[int]] = {}
        self._least: list[list[int]] = []
        self._candidates: dict[_AltKey, _Usable] = {}

    def run(self) -> Solution | None:
        """Return the first solution, or None.

        Raises
        ------
        AllocationError
            A selector fails, or a claim cannot be satisfied anywhere; upstream's text.
        """
        for index, demand in enumerate(self._demands):
            self._least.append(self._least_devices(index, demand))
        stack: list[Step] = [self._request(0, 0)]
        while stack:
            self._around.check_time()
            try:
                following = next(stack[-1])
            except StopIteration:
                stack.pop()
                continue
            if following is None:
                return self._solution()
            stack.append(following)
        return None

    def _solution(self) -> Solution:
        chosen = tuple(
            tuple(
                index if alternatives[index].sub_request else None
                for index, alternatives in zip(indexes, demand.requests, strict=True)
            )
            for indexes, demand in zip(self._chosen, self._demands, strict=True)
        )
        return Solution(tuple(tuple(picks) for picks in self._picks), chosen)

    # --- before the search -----------------------------------------------------------------------

    def _least_devices(self, claim: int, demand: Demand) -> list[int]:
        """Return the minimum number of devices of each request."""
        least = []
        for request, alternatives in enumerate(demand.requests):
            for index, alternative in enumerate(alternatives):
                if alternative.is_all:
                    found = self._all_matching(alternative, demand)
                    self._every[claim, request, index] = found
            sizes = (self._size((claim, request, i), a) for i, a in enumerate(alternatives))
            least.append(min(sizes))
        if sum(least) > RESULTS_MAX:
            raise AllocationError(
                f"claim {claim_text(demand.claim)}: number of requested devices {sum(least)} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
        return least

    def _size(self, key: _AltKey, alternative: Alternative) -> int:
        return len(self._every[key]) if alternative.is_all else alternative.wanted

    def _all_matching(self, alternative: Alternative, demand: Demand) -> list[int]:
        """Return the positions of all devices that a request for all devices selects."""
        where = f"claim {claim_text(demand.claim)}, request {alternative.own_name}"
        for pool in self._view.pools:
            state = "being updated" if pool.is_incomplete else "invalid" if pool.fault else ""
            if state:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.id} "
                    f"is currently {state}"
                )
        indexes = []
        for index, visible in enumerate(self._devices):
            answer = self._answer(alternative, index)
            if isinstance(answer, FaultAt):
                raise_fault(answer, alternative, visible.offered)
            if answer and visible.is_reachable and self._has_room(alternative, index):
                indexes.append(index)
        return indexes

    def _answer(self, alternative: Alternative, index: int) -> Judgement:
        self._around.check_time()
        offered = self._devices[index].offered
        if offered.device.binding_conditions and not self._around.features.device_binding:
            return False
        return judgement(offered.kind, alternative.expressions)

    # --- steps -----------------------------------------------------------------------------------

    def _request(self, claim: int, request: int) -> Step:
        """Choose an alternative of a request; after the last request, start the next claim."""
        while claim < len(self._demands) and request == len(self._demands[claim].requests):
            claim, request = claim + 1, 0
        if claim == len(self._demands):
            yield None
            return
        rest = sum(self._least[claim][request + 1 :])
        for index, alternative in enumerate(self._demands[claim].requests[request]):
            key = (claim, request, index)
            if len(self._picks[claim]) + self._size(key, alternative) + rest > RESULTS_MAX:
                continue
            self._chosen[claim][request] = index
            if alternative.is_all:
                yield self._all(key, alternative)
            else:
                yield self._some(key, alternative, alternative.wanted, 0)

    def _all(self, key: _AltKey, alternative: Alternative) -> Step:
        """Take all devices of a request at once, or none."""
        every = self._every[key]
        undos: list[Callable[[], None]] = []
        for index in every:
            undo = self._take_device(key, alternative, index)
            if undo is None:
                break
            undos.append(undo)
        if every and len(undos) == len(every):
            yield self._request(key[0], key[1] + 1)
        for undo in reversed(undos):
            undo()

    def _some(self, key: _AltKey, alternative: Alternative, wanted: int, start: int) -> Step:
        """Take one more device, after the position of the last device."""
        usable = self._usable(key, alternative)
        end = len(usable.devices)
        if not usable.have_faults:
            end -= wanted - 1  # with too few devices left, a try is useless
        for at in range(start, end):
            index, answer = usable.devices[at]
            if self._is_busy(key[0], alternative, index):
                continue
            if isinstance(answer, FaultAt):
                raise_fault(answer, alternative, self._devices[index].offered)
            undo = self._take_device(key, alternative, index)
            if undo is None:
                continue
            if wanted == 1:
                yield self._request(key[0], key[1] + 1)
            else:
                yield self._some(key, alternative, wanted - 1, at + 1)
            undo()

    def _usable(self, key: _AltKey, alternative: Alternative) -> _Usable:
        usable = self._candidates.get(key)
        if usable is None:
            devices = list(self._find_usable(alternative))
            have_faults = any(isinstance(answer, FaultAt) for _, answer in devices)
            usable = self._candidates[key] = _Usable(devices, have_faults=have_faults)
        return usable

    def _find_usable(self, alternative: Alternative) -> Iterator[tuple[int, Judgement]]:
        for index, visible in enumerate(self._devices):
            if self._is_taken(alternative, visible.offered):
                continue
            answer = self._answer(alternative, index)
            if isinstance(answer, FaultAt) or (
                answer and visible.is_reachable and self._has_room(alternative, index)
            ):
                yield index, answer

    # --- one device ------------------------------------------------------------------------------

    def _is_taken(self, alternative: Alternative, offered: OfferedDevice) -> bool:
        return not alternative.admin_access and self._around.allocated.is_taken(offered.id)

    def _is_busy(self, claim: int, alternative: Alternative, index: int) -> bool:
        """Whether this search has taken the device already."""
        users = self._users.get(index)
        if not users:
            return False
        return claim in users if alternative.admin_access else True

    def _keeps_off(self, alternative: Alternative, offered: OfferedDevice) -> bool:
        return self._around.features.device_taints and is_tainted(offered, alternative)

    def _has_room(
        self, alternative: Alternative, index: int, shares: Sequence[Mapping[str, int]] = ()
    ) -> bool:
        """Whether the requested capacity fits next to allocated and taken shares."""
        offered = self._devices[index].offered
        if not self._around.features.consumable_capacity or not offered.capacity:
            return not alternative.capacity
        taken = consumption(offered.capacity, alternative.capacity)
        if taken is None:
            return False
        before = self._around.allocated.consumed(offered.id) or {}
        return all(
            amount.nano + before.get(name, 0) + sum(share.get(name, 0) for share in shares)
            <= offered.capacity[name].total.nano
            for name, amount in taken.items()
        )

    def _take_device(
        self, key: _AltKey, alternative: Alternative, index: int
    ) -> Callable[[], None] | None:
        """Take a device if all checks pass; return the function that gives it back, or None."""
        claim, visible = key[0], self._devices[index]
        offered = visible.offered
        if self._is_taken(alternative, offered) or self._is_busy(claim, alternative, index):
            return None
        has_room = self._has_room(alternative, index, self._shares.get(index, ()))
        if not has_room and not alternative.is_all:
            return None
        if offered.consumes and not self._around.features.partitionable_devices:
            return None
        needs_counters = self._needs_counters(index)
        if needs_counters and not self._counters.take_counters(visible.pool, offered):
            return None
        bound = (
            None
            if self._keeps_off(alternative, offered)
            else self._bind(claim, alternative, offered)
        )

        def release() -> None:
            for state in bound or ():
                state.remove_last(alternative.request)
            if needs_counters:
                self._counters.give_back(visible.pool, offered)

        if bound is None or not has_room:
            release()
            return None
        self._enter(claim, alternative, index)

        def give_back() -> None:
            self._picks[claim].pop()
            if offered.shareable:
                self._shares[index].pop()
            else:
                self._users[index].remove(claim)
            release()

        return give_back

    def _needs_counters(self, index: int) -> bool:
        """Whether the device takes counters of its pool; of shares, only the first one does."""
        offered = self._devices[index].offered
        if not offered.consumes:
            return False
        is_shared = self._shares.get(index) or self._around.allocated.is_shared(offered.id)
        return not (offered.shareable and is_shared)

    def _bind(
        self, claim: int, alternative: Alternative, offered: OfferedDevice
    ) -> list[ConstraintState] | None:
        """Add the device to its constraints; return None, without changes, if a constraint fails.

        Raises
        ------
        AllocationError
            All devices are asked for, but a constraint does not hold for them.
        """
        bound: list[ConstraintState] = []
        for state in self._constraints[claim]:
            if not state.constraint.concerns(alternative):
                continue
            if state.add(alternative.request, offered):
                bound.append(state)
                continue
            if alternative.is_all:
                raise AllocationError(
                    f"claim {claim_text(self._demands[claim].claim)}, "
                    f"request {alternative.own_name}: cannot add device {offered.id} "
                    "because a claim constraint would not be satisfied"
                )
            for earlier in bound:
                earlier.remove_last(alternative.request)
            return None
        return bound

    def _enter(self, claim: int, alternative: Alternative, index: int) -> None:
        offered = self._devices[index].offered
        self._picks[claim].append(Pick(alternative, index))
        if not offered.shareable:
            self._users.setdefault(index, set()).add(claim)
            return
        taken = consumption(offered.capacity, alternative.capacity) or {}
        amounts = {name: amount.nano for name, amount in taken.items()}
        self._shares.setdefault(index, []).append(amounts)
