"""A naive allocator, straight from section 4 of the spec: try everything in order, check it whole.

Knows a count of devices, all devices, alternatives, taints, matchAttribute, devices in use and
shared capacity; not counters, policies, distinctAttribute and admin access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from moorage.api.devices import AllocationResult, Device, ResourceClaim, ResourceSlice
from moorage.api.quantity import parse_quantity
from moorage.plugins.claims.devices.contract import NodeFacts
from tests.plugins.claims.devices.worlds import SELECTORS

Taken = tuple[int, str, Any, "Offer"]
"""Claim, name in the result, what was asked, device."""


class Offer(NamedTuple):
    pool: str
    device: Device

    @property
    def x(self) -> int | None:
        found = self.device.attributes.get("x")
        return None if found is None else found.int_


def allocate_naively(
    slices: Sequence[ResourceSlice],
    held: Sequence[AllocationResult],
    node: NodeFacts,
    claims: Sequence[ResourceClaim],
) -> list[list[str]] | None:
    """Return for each claim ``request=pool/device``, or None."""
    offers = [
        Offer(part.spec.pool.name, each)
        for part in sorted(slices, key=lambda part: (part.spec.pool.name, part.name))
        if _sees(node, part)
        for each in part.spec.devices
    ]
    used = [result for one in held for result in one.devices.results]
    wanted = [(i, request) for i, one in enumerate(claims) for request in one.spec.devices.requests]
    for taken in _assignments(wanted, offers, [], used, claims):
        return [
            [f"{name}={o.pool}/{o.device.name}" for index, name, _, o in taken if index == i]
            for i in range(len(claims))
        ]
    return None


def _sees(node: NodeFacts, part: ResourceSlice) -> bool:
    spec = part.spec
    in_zone = spec.node_selector is not None and node.labels["zone"] == "a"
    return spec.node_name == node.name or spec.all_nodes or in_zone


def _assignments(wanted, offers, taken, used, claims) -> Iterator[list[Taken]]:
    if not wanted:
        yield taken
        return
    (index, request), *rest = wanted
    forms = [(f"{request.name}/{sub.name}", sub) for sub in request.first_available]
    for name, asked in forms or [(request.name, request.exactly)]:
        for chosen in _choices(asked, offers, used):
            more = [*taken, *((index, name, asked, offer) for offer in chosen)]
            if _holds(more, used, claims):
                yield from _assignments(rest, offers, more, used, claims)


def _choices(asked, offers: list[Offer], used) -> Iterator[Sequence[Offer]]:
    says = [SELECTORS[each.cel.expression] for each in asked.selectors]
    matching = [offer for offer in offers if all(say(offer.x) for say in says)]
    if asked.allocation_mode == "All":
        fitting = [offer for offer in matching if _fits(asked, [asked], offer, used)]
        yield from [fitting] if fitting else []
    else:
        yield from combinations(matching, asked.count)


def _holds(taken: list[Taken], used, claims) -> bool:
    for index, _, asked, offer in taken:
        if offer.device.taints and not asked.tolerations:
            return False
        others = [other for _, _, other, same in taken if same == offer]
        whole = not offer.device.allow_multiple_allocations
        if whole and (len(others) > 1 or any(_is(offer, result) for result in used)):
            return False
        if not _fits(asked, others, offer, used):
            return False
        if claims[index].spec.devices.constraints:
            values = [each.x for number, _, _, each in taken if number == index]
            if None in values or len(set(values)) > 1:
                return False
    return True


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
