"""Partitionable devices: counters of a pool that its devices are cut from."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import ResourceSlice
from moorage.plugins.claims.devices.contract import Features
from scheduler.tests.plugins.claims.devices.builders import (
    N2,
    allocation,
    allocator,
    claim,
    device,
    exactly,
    found,
    slice_,
)

INVALID = "invalid resource pools were encountered"
FEW = {"key": "k", "effect": "NoSchedule"}


def counters(name: str = "whole", memory: str = "10Gi", **more: str) -> dict[str, Any]:
    held = {"memory": memory, **more}
    return {"name": name, "counters": {key: {"value": value} for key, value in held.items()}}


def part(
    name: str, memory: str = "4Gi", counter_set: str = "whole", **fields: Any
) -> dict[str, Any]:
    consumed = {"counterSet": counter_set, "counters": {"memory": {"value": memory}}}
    return device(name, consumesCounters=[consumed], **fields)


def pool(
    *devices: dict[str, Any], sets: list[dict[str, Any]] | None = None, **fields: Any
) -> list[ResourceSlice]:
    """A pool of two slices: counters, and devices."""
    return [
        slice_("s0", sharedCounters=sets or [counters()], count=2),
        slice_("s1", *devices, count=2, **fields),
    ]


@pytest.mark.parametrize(
    ("slices", "held", "request_", "expected"),
    [
        pytest.param(
            pool(part("a"), part("b"), part("c")),
            [],
            exactly(count=2),
            [["r=a", "r=b"]],
            id="devices consume the counters of their pool",
        ),
        pytest.param(
            pool(part("a"), part("b"), part("c")),
            [],
            exactly(count=3),
            None,
            id="no device is allocated when the counters are used up",
        ),
        pytest.param(
            pool(part("a"), part("b"), part("c")),
            [allocation({"device": "c"})],
            exactly(count=2),
            None,
            id="allocated devices consume their counters",
        ),
        pytest.param(
            pool(part("a", "8Gi"), part("b", "6Gi"), part("c")),
            [],
            exactly(count=2),
            [["r=b", "r=c"]],
            id="a device is given back with its counters for devices that fit together",
        ),
        pytest.param(
            pool(part("a", "8Gi"), part("b", "8Gi", "other"), sets=[counters(), counters("other")]),
            [],
            exactly(count=2),
            [["r=a", "r=b"]],
            id="counter sets are independent",
        ),
        pytest.param(
            pool(
                part("a", "2Gi"),
                part("b", "9Gi", "other"),
                part("c"),
                sets=[counters(), counters("other", "8Gi")],
            ),
            [allocation({"device": "b"})],
            exactly(),
            None,
            id="a pool with a counter below zero gives nothing",
        ),
        pytest.param(
            pool(device("a"), part("b", "20Gi")),
            [],
            exactly(),
            [["r=a"]],
            id="a device without counters needs none",
        ),
        pytest.param(
            pool(part("a"), part("b", counter_set="none")),
            [],
            exactly(),
            INVALID,
            id="a device with an unknown counter set makes the pool invalid",
        ),
        pytest.param(
            pool(part("a"), sets=[counters(), counters()]),
            [],
            exactly(),
            INVALID,
            id="a counter set listed twice makes the pool invalid",
        ),
        pytest.param(
            pool(
                device(
                    "a", consumesCounters=[{"counterSet": "whole", "counters": {"x": {"value": 1}}}]
                )
            ),
            [],
            exactly(),
            INVALID,
            id="a device with an unknown counter makes the pool invalid",
        ),
        pytest.param(
            pool(part("a", allowMultipleAllocations=True), part("b", "7Gi")),
            [],
            exactly(count=2),
            None,
            id="the first share of a device consumes its counters",
        ),
    ],
)
def test_counters(slices, held, request_, expected):
    assert found(allocator(slices, held=held), claim(request_)) == expected


def test_devices_on_other_nodes_consume_the_same_counters():
    split = [
        slice_("s0", sharedCounters=[counters()], count=3),
        slice_("s1", part("a", "6Gi"), count=3),
        slice_("s2", part("b", "6Gi"), count=3, nodeName="n2"),
    ]
    assert found(allocator(split), claim(exactly())) == [["r=a"]]
    taken = allocator(split, held=[allocation({"device": "b"})])
    assert found(taken, claim(exactly())) is None


def test_pools_of_one_name_have_counters_of_their_own_for_each_driver():
    two = [
        *pool(part("a", "8Gi")),
        slice_("t0", sharedCounters=[counters()], driver="x.example.com", count=2),
        slice_("t1", part("b", "8Gi"), part("c", "8Gi"), driver="x.example.com", count=2),
    ]
    assert found(allocator(two), claim(exactly(count=2))) == [["r=a", "r=b"]]
    assert found(allocator(two), claim(exactly(count=3))) is None


def test_later_shares_of_a_device_consume_no_counters():
    shared = part("a", "8Gi", allowMultipleAllocations=True, capacity={"memory": "4Gi"})
    asked = exactly("r0", capacity={"memory": "1Gi"}), exactly("r1", capacity={"memory": "1Gi"})
    assert found(allocator(pool(shared)), claim(*asked)) == [["r0=a", "r1=a"]]
    held = [allocation({"device": "a", "shareID": "x", "consumedCapacity": {"memory": "1Gi"}})]
    assert found(allocator(pool(shared), held=held), claim(*asked)) == [["r0=a", "r1=a"]]


def test_without_the_feature_devices_that_need_counters_are_not_used():
    off = allocator(pool(part("a"), device("b")), features=Features(partitionable_devices=False))
    assert found(off, claim(exactly())) == [["r=b"]]
    assert found(off, claim(exactly(count=2))) is None


def test_counters_are_for_all_nodes():
    far = [
        slice_("s0", sharedCounters=[counters()], count=2),
        slice_("s1", part("a"), count=2, nodeName="n2"),
    ]
    assert found(allocator(far), claim(exactly()), node=N2) == [["r=a"]]
