"""An allocation as the API writes it: devices, settings, and the nodes it can be reached from."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import to_dict
from moorage.api.devices import ResourceClaim
from moorage.plugins.claims.devices.contract import AllocationError
from scheduler.tests.plugins.claims.devices.builders import (
    N1,
    allocator,
    claim,
    class_,
    device,
    exactly,
    first_of,
    gpus,
    slice_,
)


def setting(name: str, *requests: str) -> dict[str, Any]:
    opaque = {"driver": "gpu.example.com", "parameters": {"name": name, "null": None}}
    return {"opaque": opaque, **({"requests": list(requests)} if requests else {})}


def only(slices, *classes, wanted: ResourceClaim) -> dict[str, Any]:
    (result,) = allocator(slices, *classes).allocate(N1, [wanted]) or []
    return to_dict(result)


def test_all_fields_of_a_result():
    late = slice_(
        "s1", device("a", bindingConditions=["ready"], bindingFailureConditions=["broken"])
    )
    tolerations = [{"key": "k", "operator": "Exists"}]
    asked = claim(exactly(adminAccess=True, tolerations=tolerations))
    assert only([late], wanted=asked) == {
        "devices": {
            "results": [
                {
                    "request": "r",
                    "driver": "gpu.example.com",
                    "pool": "p1",
                    "device": "a",
                    "adminAccess": True,
                    "tolerations": tolerations,
                    "bindingConditions": ["ready"],
                    "bindingFailureConditions": ["broken"],
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        },
    }


def _entry(source: str, name: str, *requests: str) -> dict[str, Any]:
    return {"source": source, **setting(name, *requests)}


@pytest.mark.parametrize(
    ("requests", "config", "expected"),
    [
        pytest.param(
            [exactly("r0")],
            [],
            [_entry("FromClass", "g1"), _entry("FromClass", "g2")],
            id="settings of a class",
        ),
        pytest.param(
            [exactly("r0"), exactly("r1", device_class="plain")],
            [],
            [_entry("FromClass", "g1", "r0"), _entry("FromClass", "g2", "r0")],
            id="settings of a class for the requests that name the class",
        ),
        pytest.param(
            [exactly("r0"), exactly("r1")],
            [],
            [_entry("FromClass", "g1"), _entry("FromClass", "g2")],
            id="settings of a class once, for all its requests",
        ),
        pytest.param(
            [first_of("r0", exactly("s0", 9), exactly("s1")), exactly("r1", device_class="plain")],
            [],
            [_entry("FromClass", "g1", "r0/s1"), _entry("FromClass", "g2", "r0/s1")],
            id="settings of the class of the chosen alternative",
        ),
        pytest.param(
            [exactly("r0", device_class="plain"), exactly("r1", device_class="plain")],
            [setting("c1"), setting("c2", "r1"), setting("c3", "r0", "r1")],
            [
                _entry("FromClaim", "c1"),
                _entry("FromClaim", "c2", "r1"),
                _entry("FromClaim", "c3"),
                _entry("FromClaim", "c3"),
            ],
            id="settings of the claim for each request that they name",
        ),
        pytest.param(
            [
                first_of("r0", exactly("s0", 9), exactly("s1", device_class="plain")),
                exactly("r1", device_class="plain"),
            ],
            [setting("c1", "r0"), setting("c2", "r0/s0"), setting("c3", "r0/s1")],
            [_entry("FromClaim", "c1", "r0"), _entry("FromClaim", "c3", "r0/s1")],
            id="no settings of the claim for an alternative that was not chosen",
        ),
        pytest.param(
            [exactly("r0")],
            [setting("c1")],
            [
                _entry("FromClass", "g1"),
                _entry("FromClass", "g2"),
                _entry("FromClaim", "c1"),
            ],
            id="settings of the class come before settings of the claim",
        ),
    ],
)
def test_settings(requests, config, expected):
    classes = (class_("gpu", config=[setting("g1"), setting("g2")]), class_("plain"))
    found = only([gpus("a", "b")], *classes, wanted=claim(*requests, config=config))
    assert found["devices"]["config"] == expected


def need(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def selecting(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


HERE = {"nodeSelectorTerms": [{"matchFields": [need("metadata.name", "n1")]}]}
ZONE, NAME = need("zone", "a", "b"), need("zone", "a")
AGAIN = need("zone", "b", "a")


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([gpus("a", "b")], HERE, id="a device of the node binds to the node"),
        pytest.param(
            [slice_("s1", device("a"), device("b"), allNodes=True)],
            None,
            id="all nodes reach the devices",
        ),
        pytest.param(
            [slice_("s1", device("a", bindsToNode=True), device("b"), allNodes=True)],
            HERE,
            id="a device with bindsToNode binds to the node",
        ),
        pytest.param(
            [slice_("s1", device("a"), device("b"), nodeSelector=selecting(ZONE))],
            selecting(ZONE),
            id="the node selector of the slice",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), pool="p1", nodeSelector=selecting(ZONE)),
                slice_("s2", device("b"), pool="p2", nodeSelector=selecting(AGAIN, NAME)),
            ],
            selecting(ZONE, NAME),
            id="the requirements of all slices, each requirement once",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), pool="p1", nodeSelector=selecting(ZONE)),
                slice_("s2", device("b"), pool="p2"),
            ],
            HERE,
            id="one device of the node binds all devices to the node",
        ),
        pytest.param(
            [
                slice_(
                    "s1",
                    device("a", nodeSelector=selecting(ZONE)),
                    device("b", allNodes=True),
                    perDeviceNodeSelection=True,
                )
            ],
            selecting(ZONE),
            id="the node selector of the device, with perDeviceNodeSelection",
        ),
    ],
)
def test_node_selector_of_an_allocation(slices, expected):
    assert only(slices, wanted=claim(exactly(count=2))).get("nodeSelector") == expected


def test_a_node_selector_of_several_terms_is_an_error():
    two = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}, {"matchExpressions": [NAME]}]}
    far = allocator([slice_("s1", device("a"), nodeSelector=two)])
    with pytest.raises(AllocationError) as caught:
        far.allocate(N1, [claim(exactly())])
    assert str(caught.value) == (
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
    )
