"""Random pools, claims and books, small and full of near misses; each from one seed.

Drawn from a seeded stream and not by hypothesis, which needs milliseconds for so many small parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.devices import AllocationResult, ResourceClaim, ResourceSlice
from moorage.base.rng import Random, Streams
from moorage.plugins.claims.devices.contract import NodeFacts
from scheduler.tests.plugins.claims.devices.builders import (
    allocation,
    claim,
    device,
    exactly,
    first_of,
    slice_,
)

NODES = [NodeFacts(f"n{i}", {"zone": "ab"[i % 2]}) for i in range(4)]
SELECTORS: dict[str, Callable[[int | None], bool]] = {
    "true": lambda x: True,
    'device.attributes["gpu.example.com"].?x.orValue(0) == 1': lambda x: x == 1,
    'has(device.attributes["gpu.example.com"].x)': lambda x: x is not None,
}
"""Expressions, and what they say of a device whose attribute x has this value."""

TAINT = {"key": "k", "effect": "NoSchedule"}
IN_ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [IN_ZONE_A]}]}


class World:
    """Slices, claims to allocate, and what other claims hold.

    Parameters
    ----------
    seed
        Everything follows from it.
    is_plain
        Leaves out what the naive reference does not know: pools that cannot be used, all devices
        under a constraint, and several devices of one request under distinctAttribute.
    """

    def __init__(self, seed: int, *, is_plain: bool = False) -> None:
        self._rng: Random = Streams(seed).stream("world")
        self._is_plain = is_plain
        self.slices = self.draw_slices()
        self.held = [found for part in self.slices for found in self._held(part)]
        self.claims = [self._claim(f"c{i}") for i in range(self._rng.choice([1, 1, 2]))]

    def draw_slices(self) -> list[ResourceSlice]:
        """Pools of nodes, mostly of one kind, of a zone, and of everybody."""
        found: list[ResourceSlice] = []
        usual = self._devices()
        for node in NODES[: self._rng.randint(2, 4)]:
            mine = self._devices() if self._one_in(4) else usual
            found += self._pool(f"p-{node.name}", mine, nodeName=node.name)
        if self._one_in(4):
            found += self._pool("p-zone", self._devices(), nodeSelector=ZONE_A)
        if self._one_in(4):
            found += self._pool("p-all", self._devices(), allNodes=True)
        return found

    def _one_in(self, count: int) -> bool:
        return self._rng.randrange(count) == 0

    def _odd(self, count: int) -> bool:
        return not self._is_plain and self._one_in(count)

    def _devices(self) -> list[dict[str, Any]]:
        made = [self._device(f"d{i}") for i in range(self._rng.randint(3, 6))]
        return [*made, made[0]] if self._odd(10) else made

    def _pool(self, name: str, made: list[dict[str, Any]], **where: Any) -> list[ResourceSlice]:
        whole = {"name": "whole", "counters": {"slots": {"value": "4"}}}
        count = 3 if self._odd(12) else 2
        return [
            slice_(f"{name}-counters", sharedCounters=[whole], pool=name, count=count, **where),
            slice_(f"{name}-devices", *made, pool=name, count=count, **where),
        ]

    def _device(self, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if not self._one_in(4):
            fields["attributes"] = {"x": self._rng.randrange(3)}
        if self._one_in(2):
            fields["capacity"] = {"memory": self._rng.choice(["1Gi", "3Gi"])}
            fields["allowMultipleAllocations"] = self._one_in(2)
        if self._one_in(6):
            fields["taints"] = [TAINT]
        if self._one_in(3):
            counters = {"slots": {"value": str(self._rng.randint(1, 2))}}
            fields["consumesCounters"] = [{"counterSet": "whole", "counters": counters}]
        return device(name, **fields)

    def _held(self, part: ResourceSlice) -> list[AllocationResult]:
        share = {"shareID": "1", "consumedCapacity": {"memory": "1Gi"}}
        return [
            allocation(
                {
                    "pool": part.spec.pool.name,
                    "device": each.name,
                    **(share if each.allow_multiple_allocations else {}),
                }
            )
            for each in part.spec.devices
            if self._one_in(5)
        ]

    def _claim(self, name: str) -> ResourceClaim:
        constraints = []
        if self._one_in(4):
            kind = "distinctAttribute" if self._one_in(2) else "matchAttribute"
            constraints.append({kind: "gpu.example.com/x"})
        may_be_all = not (self._is_plain and constraints)
        one_by_one = self._is_plain and any("distinctAttribute" in each for each in constraints)
        counts = [1] if one_by_one else [1, 1, 1, 2, 3]
        wanted = [
            self._request(f"r{i}", counts, may_be_all) for i in range(self._rng.choice([1, 1, 2]))
        ]
        if self._one_in(3):
            subs = [self._request(f"s{i}", counts, may_be_all) for i in range(2)]
            wanted.append(first_of("f", *subs))
        return claim(*wanted, name=name, constraints=constraints)

    def _request(self, name: str, counts: list[int], may_be_all: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._one_in(6):
            fields["capacity"] = {"memory": self._rng.choice(["1Gi", "2Gi"])}
        if self._one_in(3):
            fields["tolerations"] = [{"operator": "Exists"}]
        if may_be_all and self._one_in(8):
            fields["mode"] = "All"
        expression = self._rng.choice(list(SELECTORS))
        return exactly(name, self._rng.choice(counts), expression, **fields)
