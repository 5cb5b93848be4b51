"""What becomes of claims from one pod of a recorded sequence to the next."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.framework.registry import Registry
from moorage.plugins.in_tree import IN_TREE
from moorage_lab.conformance.case import Unsupported, run_case
from moorage_lab.conformance.recordings import Scenario

ASKED = {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


def pod(name: str, *claims: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [
                {"name": f"d{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)
            ],
        },
    }


def claim(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "r", **ASKED}]}},
    }


def allocated(pending: list[dict[str, Any]], claims: list[dict[str, Any]]) -> list[list[str]]:
    """Run a sequence on one node with two devices; return what each pod gets."""
    slice_spec = {
        "driver": "gpu.example.com",
        "nodeName": "n0",
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "a"}, {"name": "b"}],
    }
    node = {"cpu": "8", "memory": "8Gi", "pods": "9"}
    objects = {
        "nodes": [{"metadata": {"name": "n0"}, "status": {"allocatable": node}}],
        "deviceclasses": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "resourceslices": [{"metadata": {"name": "s0"}, "spec": slice_spec}],
        "resourceclaims": claims,
    }
    fields = {"name": "t", "family": "dra", "mode": "sequence", "defaulted": True}
    scenario = from_dict(Scenario, {**fields, "objects": objects, "pending": pending})
    told = run_case(scenario, Registry(IN_TREE))
    assert not isinstance(told, Unsupported)
    return [
        [result["device"] for one in row.get("allocation", ()) for result in one["results"]]
        for row in told["sequence"]
    ]


def test_devices_allocated_to_a_pod_are_not_given_to_the_next_pod():
    pods = [pod("p0", "c0"), pod("p1", "c1"), pod("p2", "c0"), pod("p3", "c2")]
    claims = [claim("c0"), claim("c1"), claim("c2")]
    assert allocated(pods, claims) == [["a"], ["b"], [], []]


def test_of_a_claim_that_a_pod_names_twice_the_last_allocation_stays():
    pods = [pod("p0", "c0", "c0"), pod("p1", "c1")]
    assert allocated(pods, [claim("c0"), claim("c1")]) == [["a", "b"], ["a"]]
