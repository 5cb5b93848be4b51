"""Extended resources that devices provide: the device class, and the special claim."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.claims.extended import ExtendedPart, special_claim
from moorage.plugins.resources.device_classes import IMPLICIT_CLASS_PREFIX, DeviceClassNames
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import node, pod, rejections
from scheduler.tests.plugins.claims.builders import device_class, devices, offered
from scheduler.tests.plugins.claims.test_dynamic_resources import Asked


def test_fit_leaves_resources_a_node_does_not_offer_to_devices():
    """NodeResourcesFit and DynamicResources agree on who provides an extended resource."""
    gpu = "example.com/gpu"
    snapshot = devices(
        device_class(resource=gpu),
        offered("a", "a0"),
        nodes=(
            node("a"),
            node("plugin", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10", gpu: "1"}),
            node("bare"),
        ),
    )
    wanted = pod(requests={gpu: "1"})
    fit = rejections("NodeResourcesFit", snapshot, wanted)
    assert fit == {}
    assert Asked(snapshot, wanted).filtered() == {"bare": "cannot allocate all claims"}
    two = pod(requests={gpu: "2"})
    assert set(rejections("NodeResourcesFit", snapshot, two)) == {"plugin"}
    other = pod(requests={gpu: "1", "example.com/fpga": "1"})
    assert set(rejections("NodeResourcesFit", snapshot, other)) == {"a", "plugin", "bare"}
    assert Asked(snapshot, other).filtered() == dict.fromkeys(
        ("a", "plugin", "bare"), "cannot fit resource"
    )


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([], None, id="no device class exists"),
        pytest.param(
            [device_class("x", resource="r.example/a")], None, id="the class names another resource"
        ),
        pytest.param(
            [
                device_class("old", resource="example.com/gpu", made="2026-01-01T00:00:00Z"),
                device_class("new", resource="example.com/gpu", made="2026-01-02T00:00:00Z"),
            ],
            "new",
            id="the newest of several classes",
        ),
        pytest.param(
            [device_class(name, resource="example.com/gpu") for name in ("b", "a", "c")],
            "a",
            id="the first by name of equally old classes",
        ),
    ],
)
def test_the_device_class_of_an_extended_resource(classes, expected):
    lister = devices(*classes).listers.device_classes
    names = DeviceClassNames(lister)
    found = names.find("example.com/gpu")
    assert (found and found.name) == expected
    for each in classes:
        implicit = names.find(f"{IMPLICIT_CLASS_PREFIX}{each.name}")
        assert implicit is not None
        assert implicit.name == each.name
        lister.remove(each)
    assert names.find("example.com/gpu") is None


def container(name: str, count: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": "1", "z.io/g": str(count)}}, **fields}


@pytest.mark.parametrize(
    ("inits", "containers", "requests", "mappings"),
    [
        pytest.param(
            [],
            [container("a", 2), container("b", 0), container("c", 1)],
            {"container-0-request-1": 2, "container-2-request-1": 1},
            ["a container-0-request-1", "c container-2-request-1"],
            id="each container has devices of its own",
        ),
        pytest.param(
            [container("i", 3), container("j", 5)],
            [container("a", 2), container("b", 2)],
            {"container-1-request-1": 1, "container-2-request-1": 2, "container-3-request-1": 2},
            [
                "a container-2-request-1",
                "b container-3-request-1",
                "i container-2-request-1",
                "i container-3-request-1",
                "j container-2-request-1",
                "j container-3-request-1",
                "j container-1-request-1",
            ],
            id="init containers share devices with later containers; the greatest one counts",
        ),
        pytest.param(
            [container("s", 1, restartPolicy="Always"), container("i", 2)],
            [container("a", 1)],
            {"container-0-request-1": 1, "container-1-request-1": 1, "container-2-request-1": 1},
            [
                "s container-0-request-1",
                "a container-2-request-1",
                "i container-2-request-1",
                "i container-1-request-1",
            ],
            id="an init container does not share devices with an earlier sidecar",
        ),
    ],
)
def test_the_special_claim_asks_for_what_containers_need_at_one_time(
    inits, containers, requests, mappings
):
    wanted = pod(initContainers=inits, containers=containers)
    lister = devices(device_class(resource="z.io/g")).listers.device_classes
    info = PodInfo(wanted)
    part = ExtendedPart(info, special_claim(info, ()), DeviceClassNames(lister))
    found = part.on_node(("z.io/g",))
    asked = found.claim.spec.devices.requests
    assert {each.name: each.exactly and each.exactly.count for each in asked} == requests
    assert [each.name for each in asked] == sorted(requests)
    assert [f"{each.container_name} {each.request_name}" for each in found.mappings] == mappings
