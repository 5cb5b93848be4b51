"""Extended resources that devices provide: the device class, and the special claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def resources_of_devices(offers: dict[str, str], wanted: list[str]) -> tuple[str, ...] | None:
    """The plain rule for one node: what devices provide there; None if the node lacks a resource.

    A class names the resources below ``c.io``.
    """
    names = []
    for name in sorted(wanted):
        if name.startswith("c.io/") and offers.get(name, "0") == "0":
            names.append(name)
        elif name not in offers:
            return None
    return tuple(names)


NAMES = ["c.io/a", "c.io/b", "other.io/c", "other.io/d"]


@settings(max_examples=50, deadline=None)
@given(
    nodes=st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["0", "1"])), min_size=1, max_size=6
    ),
    wanted=st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    data=st.data(),
)
def test_rows_are_grouped_as_each_node_by_itself_says(nodes, wanted, data):
    classes = [device_class(name[-1], resource=name) for name in NAMES[:2]]
    names = [f"n{i}" for i in range(len(nodes))]
    snapshot = devices(
        *classes, nodes=[node(n, allocatable=o) for n, o in zip(names, nodes, strict=True)]
    )
    info = PodInfo(pod(requests=dict.fromkeys(wanted, "1")))
    part = ExtendedPart(
        info, special_claim(info, ()), DeviceClassNames(snapshot.listers.device_classes)
    )
    rows = np.array(data.draw(st.permutations(range(len(nodes)))), np.int64)
    groups, lacking = part.by_resources(snapshot, rows)
    answers = dict[int, tuple[str, ...] | None]()
    for resources, positions in groups:
        answers |= dict.fromkeys(positions.tolist(), resources)
    assert [at.item(0) for _, at in groups] == sorted(at.item(0) for _, at in groups)
    for positions in lacking:
        answers |= dict.fromkeys(positions.tolist(), None)
    expected = [resources_of_devices(nodes[row], wanted) for row in rows.tolist()]
    assert [answers[position] for position in range(len(rows))] == expected
