"""A service that changes its type: what the old type had been given goes, unless it was changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError
from scheduler.tests.kinds.builders import KINDS, World, create_errors, created, named

PORTS = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
ADDRESSED = {
    "clusterIP",
    "clusterIPs",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "ports",
    "sessionAffinity",
    "type",
}
NAMED = {"externalName", "ports", "sessionAffinity", "type"}


def changed(kind: str, becomes: str, **fields: Any) -> Obj:
    """The spec of a service after `kubectl patch` with a type and these fields."""
    spec = {"type": kind, "ports": copy.deepcopy(PORTS)}
    old = created("services", named("services", spec=spec))
    new = copy.deepcopy(old)
    new["spec"] |= {"type": becomes} | fields
    KINDS["services"].default(new)
    KINDS["services"].prepare_update(new, old, subresource=None, ctx=World())
    errors = KINDS["services"].validate(new, old, subresource=None)
    assert [error.message for error in errors] == []
    found: Obj = new["spec"]
    return found


@pytest.mark.parametrize(
    ("kind", "becomes", "fields", "left"),
    [
        pytest.param("NodePort", "ClusterIP", {}, ADDRESSED, id="ports of nodes go"),
        pytest.param("LoadBalancer", "ClusterIP", {}, ADDRESSED, id="a balancer goes"),
        pytest.param(
            "LoadBalancer",
            "NodePort",
            {},
            ADDRESSED | {"externalTrafficPolicy"},
            id="a balancer goes, ports of nodes stay",
        ),
        pytest.param(
            "NodePort",
            "ClusterIP",
            {"externalIPs": ["192.0.2.1"]},
            ADDRESSED | {"externalIPs", "externalTrafficPolicy"},
            id="addresses outside still have a policy",
        ),
        pytest.param(
            "NodePort",
            "ExternalName",
            {"externalName": "example.com"},
            NAMED,
            id="a name has no address",
        ),
    ],
)
def test_a_change_of_type_removes_the_fields_of_the_old_type(kind, becomes, fields, left):
    spec = changed(kind, becomes, **fields)
    assert set(spec) == left
    on_nodes = becomes == "NodePort"
    assert ["nodePort" in port for port in spec["ports"]] == [on_nodes, on_nodes]


def test_an_external_name_service_gets_a_cluster_ip_with_its_new_type():
    spec = created(
        "services",
        named("services", spec={"type": "ExternalName", "externalName": "x.y", "ports": PORTS}),
    )
    new = copy.deepcopy(spec)
    new["spec"]["type"] = "ClusterIP"
    KINDS["services"].default(new)
    KINDS["services"].prepare_update(new, spec, subresource=None, ctx=World())
    assert new["spec"]["clusterIP"].startswith("10.96.")


def test_node_ports_need_a_service_type_that_has_them():
    ports = [{"port": 80, "nodePort": 30080}]
    assert create_errors("services", named("services", spec={"ports": ports})) == [
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"
    ]


def on_nodes(name: str, *ports: int) -> Obj:
    listed = [
        {"name": f"p{index}", "port": 80 + index, "nodePort": port}
        for index, port in enumerate(ports)
    ]
    return named("services", name, spec={"type": "NodePort", "ports": listed})


RANGE = "The range of valid ports is 30000-32767"


@pytest.mark.parametrize(
    ("ports", "detail"),
    [
        pytest.param((30080,), "provided port is already allocated", id="of another service"),
        pytest.param(
            (1024,), f"provided port is not in the valid range. {RANGE}", id="out of the range"
        ),
    ],
)
def test_a_node_port_has_to_be_free(ports, detail):
    world = World(("services", on_nodes("first", 30080)))
    with pytest.raises(StatusError) as refused:
        created("services", on_nodes("second", *ports), world)
    message = f"spec.ports[0].nodePort: Invalid value: {ports[0]}: {detail}"
    assert str(refused.value) == f'Service "second" is invalid: {message}'


LOW, HIGH = range(30000, 30086), range(30086, 32768)


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        pytest.param((), HIGH, id="the high part of the range"),
        pytest.param(HIGH[1:], HIGH[:1], id="the last free port of the high part"),
        pytest.param(HIGH, LOW, id="the low part, where the high part is full"),
        pytest.param((*LOW[:-1], *HIGH), LOW[-1:], id="the last free port of all"),
    ],
)
def test_a_service_that_asks_for_no_port_gets_one_of(taken, expected):
    made = created("services", on_nodes("web", 0), World(("services", on_nodes("first", *taken))))
    assert made["spec"]["ports"][0]["nodePort"] in expected


def test_without_a_free_node_port_there_is_no_service():
    world = World(("services", on_nodes("first", *LOW, *HIGH[1:])))
    with pytest.raises(StatusError) as refused:
        created("services", on_nodes("web", 0, 0), world)
    assert str(refused.value).endswith("failed to allocate a nodePort: range is full")


def test_a_service_keeps_its_node_ports_and_may_use_one_twice():
    first = created("services", on_nodes("first", 30080, 30080))
    world = World(("services", first))
    new = copy.deepcopy(first)
    KINDS["services"].prepare_update(new, first, subresource=None, ctx=world)
    assert [each["nodePort"] for each in new["spec"]["ports"]] == [30080, 30080]
