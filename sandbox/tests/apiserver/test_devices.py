"""The kinds of resource.k8s.io/v1: defaults, rules, status, and how claims look in a table."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import MERGE, STRATEGIC, Cluster

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/default/resourceclaimtemplates"
SLICES = f"{GROUP}/resourceslices"
CLASSES = f"{GROUP}/deviceclasses"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def body(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name: str = "c", *requests: dict[str, Any]) -> dict[str, Any]:
    asked = requests or ({"name": "r", "exactly": {"deviceClassName": "gpu"}},)
    return body("ResourceClaim", name, devices={"requests": list(asked)})


def part(name: str = "s", **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    whole = {"driver": "d.example", "pool": pool, "nodeName": "n", "devices": [{"name": "a"}]}
    return body("ResourceSlice", name, **{**whole, **spec})


ALLOCATION = {
    "devices": {"results": [{"request": "r", "driver": "d.example", "pool": "p", "device": "a"}]}
}


def reservation(uid: str) -> dict[str, str]:
    return {"resource": "pods", "name": uid, "uid": uid}


async def test_a_device_request_without_a_mode_asks_for_one_device():
    found = await Cluster().ok(
        "POST",
        CLAIMS,
        claim(
            "c",
            {"name": "r", "exactly": {"deviceClassName": "gpu"}},
            {"name": "s", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "t", "firstAvailable": [{"name": "u", "deviceClassName": "gpu"}]},
        ),
    )
    one = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert found["spec"]["devices"]["requests"] == [
        {"name": "r", "exactly": one},
        {"name": "s", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {"name": "t", "firstAvailable": [{"name": "u", **one}]},
    ]


GPU = {"deviceClassName": "gpu"}


@pytest.mark.parametrize(
    ("path", "sent", "fields"),
    [
        pytest.param(
            CLAIMS, claim("c", {"name": "r"}), ["spec.devices.requests[0]"], id="asks for nothing"
        ),
        pytest.param(
            CLAIMS,
            claim("c", {"name": "r", "exactly": GPU, "firstAvailable": [{"name": "x", **GPU}]}),
            ["spec.devices.requests[0]"],
            id="asks in both forms",
        ),
        pytest.param(
            CLAIMS,
            claim("c", *[{"name": "r", "exactly": GPU}] * 2),
            ["spec.devices.requests[1]"],
            id="one name twice",
        ),
        pytest.param(
            CLAIMS,
            claim("c", *[{"name": f"R{n}"} for n in range(33)]),
            ["spec.devices.requests"],
            id="too many, and nothing else is told",
        ),
        pytest.param(
            CLAIMS,
            claim("c", {"name": "r", "exactly": {**GPU, "allocationMode": "All", "count": 2}}),
            ["spec.devices.requests[0].exactly.count"],
            id="all, and how many",
        ),
        pytest.param(
            TEMPLATES,
            body("ResourceClaimTemplate", "t", spec=claim("c", {"name": "r"})["spec"]),
            ["spec.spec.devices.requests[0]"],
            id="a template that asks for nothing",
        ),
        pytest.param(SLICES, part(allNodes=True), ["spec"], id="nodes said in two ways"),
        pytest.param(SLICES, part(nodeName=None), ["spec"], id="nodes said in no way"),
        pytest.param(
            SLICES,
            part(devices=[{"name": "a"}, {"name": "a"}, {"name": "B"}]),
            ["spec.devices[2].name", "spec.devices[1]"],
            id="devices with odd names",
        ),
        pytest.param(
            SLICES,
            part(pool={"name": "", "generation": -1, "resourceSliceCount": 0}),
            ["spec.pool.name", "spec.pool.resourceSliceCount", "spec.pool.generation"],
            id="an odd pool",
        ),
    ],
)
async def test_faulty_claims_slices_and_classes_are_refused(path, sent, fields):
    code, answer = await Cluster().call("POST", path, sent)
    assert code == 422
    assert [cause["field"] for cause in answer["details"]["causes"]] == fields


def selecting(*expressions: str) -> dict[str, Any]:
    return {**GPU, "selectors": [{"cel": {"expression": each}} for each in expressions]}


GROWING = f'"{"a" * 1500}".replace("", "{"a" * 500}").replace("", "{"b" * 50}").size() > 0'
EXPRESSION = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
TOO_COMPLEX = "Forbidden: too complex, exceeds cost limit"


@pytest.mark.parametrize(
    ("path", "sent", "causes"),
    [
        pytest.param(
            CLAIMS,
            claim("c", {"name": "r", "exactly": selecting(GROWING)}),
            [(EXPRESSION, TOO_COMPLEX)],
            id="a selector of a claim",
        ),
        pytest.param(
            CLAIMS,
            claim("c", {"name": "r", "firstAvailable": [{"name": "s", **selecting(GROWING)}]}),
            [(EXPRESSION.replace("exactly", "firstAvailable[0]"), TOO_COMPLEX)],
            id="a selector of an alternative",
        ),
        pytest.param(
            TEMPLATES,
            body(
                "ResourceClaimTemplate",
                "t",
                spec={
                    "devices": {"requests": [{"name": "r", "exactly": selecting("true", GROWING)}]}
                },
            ),
            [(f"spec.{EXPRESSION}".replace("selectors[0]", "selectors[1]"), TOO_COMPLEX)],
            id="a selector of a template",
        ),
        pytest.param(
            CLASSES,
            body("DeviceClass", "k", selectors=[{"cel": {"expression": GROWING}}]),
            [("spec.selectors[0].cel.expression", TOO_COMPLEX)],
            id="a selector of a class",
        ),
        pytest.param(
            CLASSES,
            body(
                "DeviceClass",
                "k",
                selectors=[
                    {"cel": {"expression": "optional.of(1)" + ".optMap(a, a)" * 9 + ".hasValue()"}}
                ],
            ),
            [("spec.selectors[0].cel.expression", TOO_COMPLEX)],
            id="macros in macros",
        ),
        pytest.param(
            CLASSES,
            body("DeviceClass", "k", selectors=[{"cel": {"expression": f"true //{'x' * 10_240}"}}]),
            [("spec.selectors[0].cel.expression", "Too long: may not be more than 10240 bytes")],
            id="more than 10 KiB",
        ),
        pytest.param(
            CLASSES,
            body(
                "DeviceClass",
                "k",
                selectors=[{"cel": {"expression": f"true //{'x' * 10_000}{n}"}} for n in range(7)],
            ),
            [("spec", "Forbidden: all selectors together may not be more than 65536 bytes")],
            id="more than 64 KiB together",
        ),
    ],
)
async def test_selectors_that_cost_too_much_are_refused(path, sent, causes):
    pytest.importorskip("cel_expr_python")
    code, answer = await Cluster().call("POST", path, sent)
    assert code == 422
    found = [(cause["field"], cause["message"]) for cause in answer["details"]["causes"]]
    assert found == causes


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            'device.attributes["d.example"].model.matches("^a[0-9]+$")', id="an ordinary one"
        ),
        pytest.param(
            'device.driver.find("[0-9]") == "1"', id="one with a function that the runtime lacks"
        ),
        pytest.param(f"true //{'x' * 10_000}", id="a long comment"),
    ],
)
async def test_other_selectors_are_stored(expression):
    sent = body("DeviceClass", "k", selectors=[{"cel": {"expression": expression}}])
    await Cluster().ok("POST", CLASSES, sent)


async def test_a_claim_goes_from_pending_to_reserved_and_its_spec_stays():
    cluster = Cluster()
    await cluster.ok("POST", CLAIMS, {**claim(), "status": {"allocation": ALLOCATION}})
    path = f"{CLAIMS}/c"

    async def state() -> str:
        table = await cluster.ok("GET", path, accept=TABLE)
        return str(table["rows"][0]["cells"][1])

    assert await state() == "pending"
    given = {"status": {"allocation": ALLOCATION, "reservedFor": [reservation("u1")]}}
    await cluster.ok("PATCH", f"{path}/status", given, content_type=STRATEGIC)
    more = {"status": {"reservedFor": [reservation("u2")]}}
    found = await cluster.ok("PATCH", f"{path}/status", more, content_type=STRATEGIC)
    assert [each["uid"] for each in found["status"]["reservedFor"]] == ["u2", "u1"]
    assert await state() == "allocated,reserved"
    less = {"status": {"reservedFor": [{"$patch": "delete", "uid": "u1"}]}}
    found = await cluster.ok("PATCH", f"{path}/status", less, content_type=STRATEGIC)
    assert found["status"] == {"allocation": ALLOCATION, "reservedFor": [reservation("u2")]}
    code, _ = await cluster.call(
        "PATCH", path, {"spec": {"devices": {"requests": []}}}, content_type=MERGE
    )
    assert code == 422


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(
            {}, {"reservedFor": [reservation("u")]}, "status.reservedFor", id="nothing to reserve"
        ),
        pytest.param(
            {"allocation": ALLOCATION},
            {"reservedFor": [reservation(f"u{i}") for i in range(257)]},
            "status.reservedFor",
            id="too many pods",
        ),
        pytest.param(
            {"allocation": ALLOCATION},
            {"allocation": {"devices": {"results": []}}},
            "status.allocation",
            id="another allocation",
        ),
        pytest.param(
            {"allocation": ALLOCATION, "reservedFor": [reservation("u")]},
            {"allocation": None},
            "status.reservedFor",
            id="devices taken from a pod",
        ),
    ],
)
async def test_a_faulty_status_of_a_claim_is_refused(before, after, field):
    cluster = Cluster()
    await cluster.ok("POST", CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    await cluster.ok("PATCH", path, {"status": before}, content_type=MERGE)
    code, answer = await cluster.call("PATCH", path, {"status": after}, content_type=MERGE)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, field)


async def test_slices_are_selected_by_node_and_driver():
    cluster = Cluster()
    for name, node in (("a", "n1"), ("b", "n2")):
        await cluster.ok("POST", SLICES, part(name, nodeName=node))
    query = {"fieldSelector": "spec.nodeName=n2,spec.driver=d.example"}
    found = await cluster.ok("GET", SLICES, query=query)
    assert [each["metadata"]["name"] for each in found["items"]] == ["b"]
    table = await cluster.ok("GET", f"{SLICES}/b", accept=TABLE)
    assert table["rows"][0]["cells"][:4] == ["b", "n2", "d.example", "p"]
