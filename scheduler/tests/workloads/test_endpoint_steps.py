"""What is behind a service: endpoints, slices and the older list, given what the watches showed.

Whole ways from a pod to its endpoint are in test_endpoints.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.workloads.endpoint_steps import (
    Endpoints,
    EndpointSlice,
    labels,
    mirrored,
    places,
    pod_endpoints,
    port_list,
    slices,
    subsets,
)
from moorage.workloads.objects import ViewedPod, Whole

HTTP = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}
OPEN = {"publishNotReadyAddresses": True}


def service(*ports: dict[str, Any], **spec: Any) -> Whole:
    return from_dict(Whole, {"metadata": {"name": "web"}, "spec": {"ports": list(ports), **spec}})


def pod(
    number: int, *, ready: bool = True, ports: Any = (), names: Any = (), **status: Any
) -> ViewedPod:
    conditions = [{"type": "Ready", "status": str(ready)}]
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if status.pop("leaving", "") else {}
    return from_dict(
        ViewedPod,
        {
            "metadata": {"name": f"p{number}", "namespace": "d", "uid": f"u{number}", **deleted},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "m", "ports": list(ports)}],
                **dict(zip(("hostname", "subdomain"), names, strict=False)),
            },
            "status": {"podIP": f"10.0.0.{number}", "conditions": conditions, **status},
        },
    )


def numbered(first: int, last: int) -> list[ViewedPod]:
    return [pod(number) for number in range(first, last)]


@pytest.mark.parametrize(
    ("given", "of", "expected", "listed"),
    [
        pytest.param(pod(1), service(), (True, True, False), "addresses", id="a ready pod"),
        pytest.param(
            pod(1, ready=False),
            service(),
            (False, False, False),
            "notReadyAddresses",
            id="a pod that is not ready",
        ),
        pytest.param(
            pod(1, leaving=True),
            service(),
            (False, True, True),
            None,
            id="a ready pod that is being deleted serves, and the older list leaves it out",
        ),
        pytest.param(
            pod(1, ready=False, leaving=True),
            service(**OPEN),
            (True, False, True),
            "addresses",
            id="every pod is ready where addresses are published before",
        ),
        pytest.param(pod(1, podIP=""), service(), None, None, id="a pod without an address"),
        pytest.param(
            pod(1, phase="Succeeded"), service(**OPEN), None, None, id="a pod that has ended"
        ),
    ],
)
def test_the_conditions_of_an_endpoint(given, of, expected, listed):
    found = places(of, [given])
    told = slices([], pod_endpoints(found, {}))[0].endpoints
    assert [tuple(each["conditions"].values()) for each in told] == [expected] * bool(expected)
    sets, _ = subsets(found, published=of.spec.get("publishNotReadyAddresses") is True)
    assert [each for one in sets for each in one] == [listed] * bool(listed)


def test_an_endpoint_names_its_pod_node_and_zone():
    (found,) = slices([], pod_endpoints(places(service(), [pod(1)]), {"n1": "z1"}))
    assert found.endpoints == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": "n1",
            "targetRef": {"kind": "Pod", "namespace": "d", "name": "p1", "uid": "u1"},
            "zone": "z1",
        }
    ]


SELF = {"nodeName": "n1", "targetRef": {"kind": "Pod", "namespace": "d", "name": "p1", "uid": "u1"}}


@pytest.mark.parametrize(
    ("given", "of", "expected"),
    [
        pytest.param(
            pod(1, names=("db-0", "web")), service(), {"hostname": "db-0"}, id="a pod of its name"
        ),
        pytest.param(pod(1, names=("db-0", "other")), service(), {}, id="the name of another"),
        pytest.param(pod(1, names=("db-0", "")), service(), {}, id="a pod of no service"),
        pytest.param(pod(1, names=("", "web")), service(), {}, id="a pod without a hostname"),
        pytest.param(
            pod(1, ready=False, names=("db-0", "web")),
            service(),
            {"hostname": "db-0"},
            id="a pod that is not ready",
        ),
        pytest.param(
            pod(1, leaving=True, names=("db-0", "web")),
            service(**OPEN),
            {"hostname": "db-0"},
            id="a pod that is being deleted",
        ),
    ],
)
def test_an_endpoint_has_the_hostname_of_a_pod_whose_subdomain_is_the_service(given, of, expected):
    found = places(of, [given])
    ((endpoint,),) = [each.endpoints for each in slices([], pod_endpoints(found, {}))]
    conditions = endpoint.pop("conditions")
    assert endpoint == {"addresses": ["10.0.0.1"], **SELF, **expected}
    (subset,), _ = subsets(found, published=of.spec.get("publishNotReadyAddresses") is True)
    part = "addresses" if conditions["ready"] else "notReadyAddresses"
    assert subset == {part: [{"ip": "10.0.0.1", **SELF, **expected}]}


def test_a_mirrored_endpoint_has_the_hostname_of_its_address():
    given = {"subsets": [{"addresses": [{"ip": "10.1.2.3", "hostname": "db-0"}]}]}
    groups = mirrored(from_dict(Endpoints, given))
    expected = {"addresses": ["10.1.2.3"], "conditions": {"ready": True}, "hostname": "db-0"}
    assert groups == {(): [expected]}


def test_a_new_hostname_leaves_an_endpoint_in_its_slice():
    known = [stored("a", [pod(1)]), stored("b", [pod(2)])]
    new = [pod(1), pod(2, names=("db-0", "web"))]
    told = slices(known, pod_endpoints(places(service(), new), {}))
    assert [
        (each.known and each.known.name, [point.get("hostname") for point in each.endpoints])
        for each in told
    ] == [("a", [None]), ("b", ["db-0"])]


ZONE = {"forZones": [{"name": "z1"}]}
NODE = {"forNodes": [{"name": "n1"}]}


@pytest.mark.parametrize(
    ("distribution", "zones", "given", "expected"),
    [
        pytest.param("", {"n1": "z1"}, pod(1), None, id="no wish"),
        pytest.param("PreferClose", {"n1": "z1"}, pod(1), ZONE, id="the zone, by its older name"),
        pytest.param("PreferSameZone", {"n1": "z1"}, pod(1), ZONE, id="the zone"),
        pytest.param("PreferSameZone", {}, pod(1), None, id="a node without a zone"),
        pytest.param("PreferSameNode", {"n1": "z1"}, pod(1), ZONE | NODE, id="the node"),
        pytest.param("PreferSameNode", {}, pod(1), NODE, id="the node alone"),
        pytest.param(
            "PreferSameNode", {"n1": "z1"}, pod(1, ready=False), None, id="a pod that is not ready"
        ),
        pytest.param("Elsewhere", {"n1": "z1"}, pod(1), None, id="an unknown wish"),
    ],
)
def test_the_hints_of_an_endpoint(distribution, zones, given, expected):
    (found,) = slices([], pod_endpoints(places(service(), [given]), zones, distribution))
    assert [each.get("hints") for each in found.endpoints] == [expected]


NAMED = [{"name": "web", "containerPort": 9090}, {"name": "dns", "containerPort": 53}]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        pytest.param([HTTP], [("http", 8080, "TCP")], id="a number"),
        pytest.param([{"port": 80}], [("", 80, "TCP")], id="the port of the service itself"),
        pytest.param(
            [HTTP | {"targetPort": "web"}], [("http", 9090, "TCP")], id="a name of the pod's ports"
        ),
        pytest.param(
            [HTTP, HTTP | {"name": "dns", "targetPort": "dns", "protocol": "UDP"}],
            [("http", 8080, "TCP")],
            id="a name that is there for another protocol only",
        ),
        pytest.param([], [], id="a headless service without ports"),
    ],
)
def test_the_ports_of_endpoints(ports, expected):
    found = places(service(*ports), [pod(1, ports=NAMED)])
    told = port_list(slices([], pod_endpoints(found, {}))[0].ports)
    assert [(each["name"], each["port"], each["protocol"]) for each in told] == expected
    (subset,), _ = subsets(found, published=False)
    listed = [(each.get("name", ""), each["port"]) for each in subset.get("ports", [])]
    assert listed == [each[:2] for each in expected]


def stored(name: str, pods: list[ViewedPod], *ports: dict[str, Any]) -> EndpointSlice:
    (made,) = slices([], pod_endpoints(places(service(*ports), pods), {}))
    content = {"endpoints": made.endpoints, "ports": port_list(made.ports)}
    return from_dict(EndpointSlice, {"metadata": {"name": name}, **content})


def brief(known: list[EndpointSlice], pods: list[ViewedPod], *ports: dict[str, Any]) -> list[Any]:
    """Name and addresses of each wanted slice."""
    return [
        (each.known.name if each.known else "new", len(each.endpoints))
        for each in slices(known, pod_endpoints(places(service(*ports), pods), {}))
    ]


@pytest.mark.parametrize(
    ("known", "pods", "expected"),
    [
        pytest.param([], [], [("new", 0)], id="no pods: one empty slice"),
        pytest.param([stored("a", [])], [], [("a", 0)], id="the empty slice stays"),
        pytest.param(
            [],
            numbered(0, 201),
            [("new", 100), ("new", 100), ("new", 1)],
            id="a hundred endpoints a slice",
        ),
        pytest.param(
            [stored("a", numbered(0, 100)), stored("b", numbered(100, 150))],
            numbered(10, 170),
            [("a", 100), ("b", 60)],
            id="new endpoints fill slices that have room",
        ),
        pytest.param(
            [stored("a", numbered(0, 3)), stored("b", numbered(3, 6))],
            numbered(3, 6),
            [("b", 3)],
            id="a slice whose pods are gone goes",
        ),
        pytest.param(
            [stored("a", numbered(0, 3)), stored("b", numbered(0, 3))],
            numbered(0, 3),
            [("a", 3)],
            id="of two slices with the same pods one stays",
        ),
    ],
)
def test_the_slices_of_a_service(known, pods, expected):
    assert brief(known, pods) == expected


def test_pods_with_other_ports_are_in_slices_of_their_own():
    named = HTTP | {"targetPort": "web"}
    others = [pod(number, ports=NAMED) for number in (1, 2)]
    assert brief([], [*numbered(3, 6), *others], named) == [("new", 3), ("new", 2)]


def test_the_older_list_has_at_most_a_thousand_addresses():
    pods = [pod(0, ready=False), *numbered(1, 1001)]
    (subset,), told = subsets(places(service(), pods), published=False)
    assert (len(subset["addresses"]), "notReadyAddresses" in subset) == (1000, False)
    assert told == {"endpoints.kubernetes.io/over-capacity": "truncated"}


def test_labels_are_those_of_the_service_and_say_whether_it_is_headless():
    made = from_dict(
        Whole,
        {
            "metadata": {"labels": {"app": "web", "service.kubernetes.io/headless": "x"}},
            "spec": {"clusterIP": "None"},
        },
    )
    assert labels(made, {"a": "b"}) == {
        "app": "web",
        "service.kubernetes.io/headless": "",
        "a": "b",
    }
    assert labels(service(), {"a": "b"}) == {"a": "b"}
