"""Which devices a bound pod holds by its claims, and what part of each."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import ResourceClaim
from moorage.framework.insight.held_devices import HeldDevice
from moorage.plugins.claims.pod_claims import ANNOTATION, ClaimDevices
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.plugins.claims.builders import (
    allocated,
    claim,
    devices,
    offered,
    put,
    result,
    wanting,
)

OFFERED = offered("a", "g0", "g1", capacity={"memory": {"value": "40Gi"}, "slots": {"value": "8"}})
POOL = "gpu.example/a"


def held(*claims: ResourceClaim) -> list[tuple[str, str, int]]:
    info = PodInfo(pod("p", resourceClaims=wanting("c")))
    found = ClaimDevices(devices(OFFERED, *claims)).held_devices(info, node("a"))
    return [(each.pool, each.device, each.milli) for each in found]


def share(**consumed: str) -> dict[str, Any]:
    return allocated("a", result("a", "g0", shareID="s", consumedCapacity=consumed))


G0 = allocated("a", result("a", "g0"))
MINE = ("uid-default-p",)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([claim(allocation=G0, reserved=MINE)], [("g0", 1000)], id="a whole device"),
        pytest.param(
            [claim(allocation=allocated("a", result("a", "g1"), result("a", "g0")), reserved=MINE)],
            [("g1", 1000), ("g0", 1000)],
            id="two devices, as they were allocated",
        ),
        pytest.param([claim(reserved=MINE)], [], id="a claim without an allocation"),
        pytest.param([claim(allocation=G0, reserved=("uid-x",))], [], id="reserved for another"),
        pytest.param(
            [claim(allocation=G0, reserved=("uid-default-p", "uid-x"))],
            [("g0", 500)],
            id="a claim of two pods",
        ),
        pytest.param(
            [claim(allocation=allocated("a", result("a", "g0", adminAccess=True)), reserved=MINE)],
            [],
            id="admin access",
        ),
        pytest.param(
            [claim(allocation=share(memory="10Gi"), reserved=MINE)],
            [("g0", 250)],
            id="a share is the part of the capacity",
        ),
        pytest.param(
            [claim(allocation=share(memory="10Gi", slots="4"), reserved=MINE)],
            [("g0", 500)],
            id="the largest part counts",
        ),
        pytest.param(
            [claim(allocation=share(unknown="1"), reserved=MINE)],
            [("g0", 1000)],
            id="a share of a capacity that nobody knows",
        ),
        pytest.param([], [], id="the claim is gone"),
        pytest.param(
            [
                claim(
                    "special",
                    owner="uid-default-p",
                    allocation=G0,
                    reserved=MINE,
                    metadata={"annotations": {ANNOTATION: "true"}},
                )
            ],
            [("g0", 1000)],
            id="the claim of extended resources",
        ),
        pytest.param(
            [
                claim(allocation=share(memory="10Gi"), reserved=MINE),
                claim(
                    "more", owner="uid-default-p", allocation=share(memory="20Gi"), reserved=MINE
                ),
            ],
            [("g0", 750)],
            id="two shares of one device add up",
        ),
    ],
)
def test_a_pod_holds_what_its_claims_got(
    claims: list[ResourceClaim], expected: list[tuple[str, int]]
) -> None:
    assert sorted(held(*claims)) == sorted((POOL, name, milli) for name, milli in expected)


def test_new_capacities_count_at_once() -> None:
    snapshot = devices(OFFERED, claim(allocation=share(memory="10Gi"), reserved=MINE))
    info, known = (
        PodInfo(pod("p", resourceClaims=wanting("c"))),
        ClaimDevices(snapshot),
    )
    assert known.held_devices(info, node("a")) == (HeldDevice(POOL, "g0", 250),)
    put(snapshot, offered("a", "g0", capacity={"memory": {"value": "20Gi"}}))
    assert known.held_devices(info, node("a")) == (HeldDevice(POOL, "g0", 500),)
