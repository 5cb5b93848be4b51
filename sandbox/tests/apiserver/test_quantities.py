"""Quantities that a client sends as numbers: stored and served as texts, in every kind."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.facts import SCHEMA_PROPS, Field, definition, definition_name
from moorage.kinds.values.canonical import canonical_first
from moorage_sandbox.apiserver.served_kinds import served_kinds
from sandbox.tests.apiserver.harness import MERGE, NODES, Cluster

GROUP = "/apis/resource.k8s.io/v1"


def sample(field: Field, number: Any, known: frozenset[str] = frozenset()) -> Any:
    """Return a value in which every quantity is this number; None where there is none."""
    if field.shape in ("list", "map"):
        element = sample(field.element, number, known)
        if element is None:
            return None
        return [element] if field.shape == "list" else {"x": element}
    if field.shape == "scalar":
        return number if field.name == "Quantity" else None
    if field.name in known or field.name == SCHEMA_PROPS:
        return None
    return whole(field.name, number, known | {field.name})


def whole(name: str, number: Any, known: frozenset[str] = frozenset()) -> Any:
    found = {
        key: value
        for key, field in definition(name).fields.items()
        if (value := sample(field, number, known)) is not None
    }
    return found or None


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [leaf for part in parts for leaf in leaves(part)]
    return [value]


RESOURCES = [kind.resource for kind in served_kinds() if whole(definition_name(kind.resource), 40)]


def test_many_kinds_have_quantities():
    assert len(RESOURCES) == 27


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.qualified)
def test_every_number_of_a_kind_becomes_a_text(resource):
    obj = whole(definition_name(resource), 99999999999999999999)
    canonical_first(resource, lambda obj: None)(obj)
    assert set(leaves(obj)) == {"99999999999999999999"}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        pytest.param(40, "40", id="an integer"),
        pytest.param(1.5, "1500m", id="a fraction"),
        pytest.param(2**64, "18446744073709551616", id="a number beyond int64"),
        pytest.param("0.0001", "1m", id="a resource list has no less than a thousandth"),
    ],
)
async def test_a_number_is_stored_as_text_by_each_verb(sent, stored):
    cluster = Cluster()
    capacity = {"example.com/x": sent} if isinstance(sent, int) else {"cpu": sent}
    wanted = dict.fromkeys(capacity, stored)
    body = {"metadata": {"name": "n"}, "status": {"capacity": capacity}}
    found = await cluster.ok("POST", NODES, body)
    assert found["status"] == found["status"] | {"capacity": wanted, "allocatable": wanted}
    await cluster.ok("DELETE", f"{NODES}/n")
    await cluster.ok("POST", NODES, {"metadata": {"name": "n"}})
    patch = {"status": {"capacity": capacity}}
    found = await cluster.ok("PATCH", f"{NODES}/n/status", patch, content_type=MERGE)
    assert found["status"]["capacity"] == wanted


async def test_the_quantities_of_devices_are_texts_and_not_rounded():
    cluster = Cluster()
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    spec: dict[str, Any] = {"driver": "d.com", "allNodes": True, "pool": pool}
    for name, more in (
        ("c", {"sharedCounters": [{"name": "s", "counters": {"m": {"value": 40}}}]}),
        ("d", {"devices": [{"name": "a", "capacity": {"m": {"value": "0.0001"}}}]}),
    ):
        body = {"metadata": {"name": name}, "spec": spec | more}
        await cluster.ok("POST", f"{GROUP}/resourceslices", body)
    counters = await cluster.ok("GET", f"{GROUP}/resourceslices/c")
    assert counters["spec"]["sharedCounters"][0]["counters"]["m"] == {"value": "40"}
    devices = await cluster.ok("GET", f"{GROUP}/resourceslices/d")
    assert devices["spec"]["devices"][0]["capacity"]["m"] == {"value": "100u"}
    older = await cluster.ok("GET", "/apis/resource.k8s.io/v1beta1/resourceslices/d")
    assert older["spec"]["devices"][0]["basic"]["capacity"]["m"] == {"value": "100u"}


async def test_the_overhead_of_a_runtime_class_is_text_in_the_class_and_in_its_pods():
    cluster = Cluster()
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    body = {"metadata": {"name": "vm"}, "handler": "h", "overhead": {"podFixed": {"cpu": 3}}}
    made = await cluster.ok("POST", classes, body)
    assert made["overhead"] == {"podFixed": {"cpu": "3"}}
    spec = {"runtimeClassName": "vm", "containers": [{"name": "c", "image": "i"}]}
    pod = await cluster.ok(
        "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec}
    )
    assert pod["spec"]["overhead"] == {"cpu": "3"}
