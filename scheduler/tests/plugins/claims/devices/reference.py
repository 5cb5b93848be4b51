"""A naive allocator, straight from section 4 of the spec: try everything in order, check it whole.

Knows a count of devices, all devices, alternatives, taints, constraints, counters, devices in use
and shared capacity; not policies and admin access, and of distinctAttribute only what it says of
requests for one device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count
from typing import Any, NamedTuple

from moorage.api.devices import AllocationResult, Device, ResourceClaim, ResourceSlice
from moorage.api.quantity import parse_quantity
from moorage.plugins.claims.devices.contract import NodeFacts
from scheduler.tests.plugins.claims.devices.worlds import SELECTORS

TRIES_MAX = 3000
"""Combinations that are looked at before a world counts as too large."""

Taken = tuple[int, str, Any, "Offer"]
"""Claim, name in the result, what was asked, device."""


class TooLargeError(Exception):
    """The world has too many combinations to try them all."""


class Offer(NamedTuple):
    pool: str
    device: Device

    @property
    def x(self) -> int | None:
        found = self.device.attributes.get("x")
        return None if found is None else found.int_

    @property
    def slots(self) -> int:
        """What the device consumes of the one counter of its pool."""
        consumed = self.device.consumes_counters
        return sum(parse_quantity(each.counters["slots"].value) for each in consumed)


class Before(NamedTuple):
    """What other claims leave."""

    used: Sequence[Any]
    spare: dict[str, int]
    """Slots that are left of each pool."""
    tries: Iterator[int]


def allocate_naively(
    slices: Sequence[ResourceSlice],
    held: Sequence[AllocationResult],
    node: NodeFacts,
    claims: Sequence[ResourceClaim],
) -> list[list[str]] | None:
    """Return for each claim ``request=pool/device``, or None.

    Raises
    ------
    TooLargeError
        Nothing was found among the first combinations.
    """
    offers = [
        Offer(part.spec.pool.name, each)
        for part in sorted(slices, key=lambda part: (part.spec.pool.name, part.name))
        if _sees(node, part)
        for each in part.spec.devices
    ]
    used = [result for one in held for result in one.devices.results]
    spare = _counters_left(slices, used)
    wanted = [(i, request) for i, one in enumerate(claims) for request in one.spec.devices.requests]
    for taken in _assignments(wanted, offers, [], Before(used, spare, count()), claims):
        return [
            [f"{name}={o.pool}/{o.device.name}" for index, name, _, o in taken if index == i]
            for i in range(len(claims))
        ]
    return None


def _sees(node: NodeFacts, part: ResourceSlice) -> bool:
    spec = part.spec
    in_zone = spec.node_selector is not None and node.labels["zone"] == "a"
    return spec.node_name == node.name or spec.all_nodes or in_zone


def _counters_left(slices: Sequence[ResourceSlice], used) -> dict[str, int]:
    """Return the slots of each pool that no allocated device consumes."""
    left: dict[str, int] = {}
    for part in slices:
        pool = part.spec.pool.name
        for counters in part.spec.shared_counters:
            left[pool] = left.get(pool, 0) + parse_quantity(counters.counters["slots"].value)
        for device in part.spec.devices:
            if any(_is(Offer(pool, device), result) for result in used):
                left[pool] = left.get(pool, 0) - Offer(pool, device).slots
    return left


def _assignments(wanted, offers, taken, before, claims) -> Iterator[list[Taken]]:
    if not wanted:
        yield taken
        return
    (index, request), *rest = wanted
    forms = [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
    for name, asked in forms or [(request.name, request.exactly)]:
        for chosen in _choices(asked, offers, before.used):
            if next(before.tries) > TRIES_MAX:
                raise TooLargeError
            more = [*taken, *((index, name, asked, offer) for offer in chosen)]
            if _holds(more, before, claims):
                yield from _assignments(rest, offers, more, before, claims)


def _choices(asked, offers: list[Offer], used) -> Iterator[Sequence[Offer]]:
    says = [SELECTORS[each.cel.expression] for each in asked.selectors]
    matching = [offer for offer in offers if all(say(offer.x) for say in says)]
    if asked.allocation_mode == "All":
        fitting = [offer for offer in matching if _fits(asked, [asked], offer, used)]
        yield from [fitting] if fitting else []
    else:
        yield from combinations(matching, asked.count)


def _holds(taken: list[Taken], before: Before, claims) -> bool:
    used = before.used
    if not _counters_suffice(taken, before):
        return False
    for index, _, asked, offer in taken:
        if offer.device.taints and not asked.tolerations:
            return False
        others = [other for _, _, other, same in taken if same == offer]
        whole = not offer.device.allow_multiple_allocations
        if whole and (len(others) > 1 or any(_is(offer, result) for result in used)):
            return False
        if not _fits(asked, others, offer, used):
            return False
        for constraint in claims[index].spec.devices.constraints:
            values = [each.x for number, _, _, each in taken if number == index]
            distinct = len(values) if constraint.distinct_attribute else 1
            if None in values or len(set(values)) != distinct:
                return False
    return True


def _counters_suffice(taken: list[Taken], before: Before) -> bool:
    """Whether the pools have enough slots; a shared device consumes its slots once."""
    needed: dict[str, int] = {}
    counted: list[Offer] = []
    for *_, offer in taken:
        if offer.slots and offer not in counted:
            counted.append(offer)
            in_use = any(_is(offer, result) for result in before.used)
            needed[offer.pool] = needed.get(offer.pool, 0) + (0 if in_use else offer.slots)
    return all(slots == 0 or slots <= before.spare[pool] for pool, slots in needed.items())


def _is(offer: Offer, result) -> bool:
    return (offer.pool, offer.device.name) == (result.pool, result.device)


def _fits(asked, together, offer: Offer, used) -> bool:
    capacity = offer.device.capacity.get("memory")
    if capacity is None:
        return asked.capacity is None
    total = parse_quantity(capacity.value)
    parts = [total if a.capacity is None else _gi(a.capacity.requests) for a in together]
    before = [_gi(result.consumed_capacity) for result in used if _is(offer, result)]
    return sum(parts) + sum(before) <= total


def _gi(amounts) -> int:
    return parse_quantity(amounts.get("memory", 0))
