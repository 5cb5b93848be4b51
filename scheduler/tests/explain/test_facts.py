"""The words about a cause name the part that is at fault, not its neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import explained, waiting
from scheduler.tests.explain.planted_devices import device_class, offered, resource_claim
from scheduler.tests.explain.planted_volumes import claim, volume

ZONE = "topology.kubernetes.io/zone"
NODES = [node_manifest(f"n{index}", labels={ZONE: "a"}) for index in range(2)]


def _pod(**fields: Any) -> Manifest:
    return waiting("p", **fields)


def _volume(name: str) -> dict[str, Any]:
    return {"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}}


@pytest.mark.parametrize(
    ("manifests", "fact"),
    [
        pytest.param(
            [_pod(node_selector={ZONE: "a", "disk": "ssd"})],
            "its nodeSelector disk=ssd (no node has the label disk)",
            id="of two selectors the selector that no node matches",
        ),
        pytest.param(
            [
                claim("near", volumeName="near"),
                volume("near", of="near", labels={ZONE: "a"}),
                claim("far", volumeName="far"),
                volume("far", of="far", labels={ZONE: "b"}),
                _pod(volumes=[_volume("near"), _volume("far")]),
            ],
            f"its claim far, whose volume far is in {ZONE} b",
            id="of two claims the claim whose volume is elsewhere",
        ),
        pytest.param(
            [
                device_class(),
                resource_claim("one"),
                resource_claim("many", count=9),
                offered("n0"),
                offered("n1"),
                _pod(
                    resourceClaims=[
                        {"name": "a", "resourceClaimName": "one"},
                        {"name": "b", "resourceClaimName": "many"},
                    ]
                ),
            ],
            "its resource claim many (device class gpu), which asks for more devices than these "
            "nodes offer (it asks for 9, one of these nodes has 1 at most)",
            id="of two resource claims the claim that asks for too much",
        ),
    ],
)
def test_only_the_part_at_fault_is_named(manifests: list[Manifest], fact: str) -> None:
    assert [each.fact for each in explained(*NODES, *manifests).causes] == [fact]


def test_several_causes_are_told_with_their_nodes() -> None:
    """A comma inside a fact does not run into the number of nodes."""
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    nodes = [node_manifest("a", taints=[taint]), node_manifest("b", cpu="1")]
    assert explained(*nodes, _pod(cpu="2")).sentence == (
        "never fits here, not even on an empty node: on 1 node because of the taint "
        "dedicated=db:NoSchedule, which it does not tolerate; on 1 more because of cpu (it "
        "requests 2, the largest of these nodes has 1)"
    )
