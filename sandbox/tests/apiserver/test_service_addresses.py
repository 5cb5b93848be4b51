"""Scope: IPAddress objects follow the services, and ranges wait until none of theirs is taken."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.apiserver.bootstrap import bootstrap
from sandbox.tests.apiserver.harness import MERGE, Cluster

NETWORKING = "/apis/networking.k8s.io/v1"
ADDRESSES = f"{NETWORKING}/ipaddresses"
RANGES = f"{NETWORKING}/servicecidrs"
SERVICES = "/api/v1/namespaces/default/services"
FIRST = "10.96.0.1"
FULL = "failed to allocate a serviceIP: range is full"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def started() -> Cluster:
    cluster = Cluster(bootstrapped=False)
    bootstrap(cluster.server, authority_certificate=b"PEM")
    return cluster


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def address(name: str) -> dict[str, Any]:
    parent = {"group": "example.com", "resource": "things", "name": "mine"}
    return {"metadata": {"name": name}, "spec": {"parentRef": parent}}


def cidr(name: str, *cidrs: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}


async def test_the_address_of_the_api_servers_service_has_an_object():
    found = await started().ok("GET", f"{ADDRESSES}/{FIRST}")
    assert found["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert found["spec"] == {
        "parentRef": {"name": "kubernetes", "namespace": "default", "resource": "services"}
    }


async def test_a_table_of_addresses_tells_their_services():
    found = await started().ok("GET", ADDRESSES, accept=TABLE)
    assert [each["name"] for each in found["columnDefinitions"]] == ["Name", "ParentRef"]
    assert [row["cells"][:2] for row in found["rows"]] == [[FIRST, "services/default/kubernetes"]]


async def test_an_address_comes_and_goes_with_its_service():
    cluster = started()
    made = await cluster.ok("POST", SERVICES, service())
    assert await cluster.names(ADDRESSES) == sorted([FIRST, made["spec"]["clusterIP"]])
    await cluster.ok("DELETE", f"{SERVICES}/web")
    assert await cluster.names(ADDRESSES) == [FIRST]


async def test_an_address_goes_with_the_namespace_of_its_service():
    cluster = started()
    await cluster.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    await cluster.ok("POST", "/api/v1/namespaces/team/services", service())
    await cluster.ok("DELETE", "/api/v1/namespaces/team")
    assert await cluster.names(ADDRESSES) == [FIRST]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"clusterIP": "None"}, id="a headless service"),
        pytest.param(
            {"type": "ExternalName", "externalName": "example.com"}, id="a name of outside"
        ),
    ],
)
async def test_a_service_without_an_address_has_no_object(spec):
    cluster = started()
    await cluster.ok("POST", SERVICES, service(**spec))
    assert await cluster.names(ADDRESSES) == [FIRST]


async def test_a_rehearsed_service_takes_no_address():
    cluster = started()
    await cluster.ok("POST", SERVICES, service(), query={"dryRun": "All"})
    assert await cluster.names(ADDRESSES) == [FIRST]


async def test_an_address_follows_the_type_of_its_service():
    cluster = started()
    await cluster.ok("POST", SERVICES, service(clusterIP="10.96.0.9"))
    outside = {"spec": {"type": "ExternalName", "externalName": "x.y", "clusterIP": None}}
    changed = {"spec": {**outside["spec"], "clusterIPs": None}}
    await cluster.ok("PATCH", f"{SERVICES}/web", changed, content_type=MERGE)
    assert await cluster.names(ADDRESSES) == [FIRST]
    back = {"spec": {"type": "ClusterIP", "externalName": None}}
    found = await cluster.ok("PATCH", f"{SERVICES}/web", back, content_type=MERGE)
    assert await cluster.names(ADDRESSES) == sorted([FIRST, found["spec"]["clusterIP"]])


async def test_a_deleted_address_of_a_service_is_made_again():
    cluster = started()
    before = await cluster.ok("GET", f"{ADDRESSES}/{FIRST}")
    await cluster.ok("DELETE", f"{ADDRESSES}/{FIRST}")
    after = await cluster.ok("GET", f"{ADDRESSES}/{FIRST}")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        pytest.param(FIRST, "provided IP is already allocated", id="the address of a service"),
        pytest.param("10.96.3.3", "provided IP is already allocated", id="a client's address"),
        pytest.param(
            "192.0.2.1",
            "the provided network does not match the current range",
            id="an address of no range",
        ),
        pytest.param(
            "10.96.0.0",
            "provided IP 10.96.0.0 is not in the valid range",
            id="the first address of a range",
        ),
    ],
)
async def test_a_service_does_not_get_an_address_that_is_not_free(wanted, why):
    cluster = started()
    await cluster.ok("POST", ADDRESSES, address("10.96.3.3"))
    status, found = await cluster.call("POST", SERVICES, service(clusterIP=wanted))
    assert (status, found["message"]) == (
        422,
        f'Service "web" is invalid: spec.clusterIPs: Invalid value: ["{wanted}"]: '
        f"failed to allocate IP {wanted}: {why}",
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"clusterIP": "web"},
            'spec.clusterIPs[0]: Invalid value: "web": must be a valid IP address, '
            "(e.g. 10.9.8.7 or 2001:db8::ffff)",
            id="a word",
        ),
        pytest.param(
            {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.8"]},
            'spec.clusterIPs: Invalid value: ["10.96.0.8"]: first value must match `clusterIP`',
            id="two addresses that differ",
        ),
        pytest.param(
            {"clusterIPs": ["10.96.0.8"]},
            'spec.clusterIPs: Invalid value: ["10.96.0.8"]: must be empty when `clusterIP` is '
            "not specified",
            id="the list alone",
        ),
    ],
)
async def test_an_address_of_a_service_has_its_form(spec, message):
    status, found = await started().call("POST", SERVICES, service(**spec))
    assert (status, found["message"]) == (422, f'Service "web" is invalid: {message}')


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param([" "], "first value must match", id="no address in place of the first"),
        pytest.param(["ADDRESS", " "], "must be a valid IP address", id="no address as the second"),
    ],
)
async def test_a_changed_service_keeps_the_form_of_its_addresses(changed, message):
    cluster = started()
    made = await cluster.ok("POST", SERVICES, service())
    own = made["spec"]["clusterIP"]
    made["spec"]["clusterIPs"] = [own if each == "ADDRESS" else each for each in changed]
    status, answer = await cluster.call("PUT", f"{SERVICES}/web", made)
    assert status == 422
    assert message in answer["message"]
    assert await cluster.names(ADDRESSES) == sorted([FIRST, own])


async def test_a_service_gets_the_only_free_address_of_a_small_range():
    cluster = started()
    await cluster.ok("POST", RANGES, cidr("small", "192.0.2.0/30"))
    for taken in ("192.0.2.1", "192.0.2.2"):
        await cluster.ok("POST", SERVICES, service(f"s{taken[-1]}", clusterIP=taken))
    # The default range terminates: it waits for the address of the service `kubernetes`.
    await cluster.ok("DELETE", f"{RANGES}/kubernetes")
    status, found = await cluster.call("POST", SERVICES, service())
    assert (status, found["message"]) == (500, f"Internal error occurred: {FULL}")
    await cluster.ok("DELETE", f"{SERVICES}/s2")
    assert (await cluster.ok("POST", SERVICES, service()))["spec"]["clusterIP"] == "192.0.2.2"


async def test_a_range_is_ready_and_protected():
    cluster = started()
    for name in ("kubernetes", "more"):
        if name == "more":
            await cluster.ok("POST", RANGES, cidr(name, "192.0.2.0/24"))
        found = await cluster.ok("GET", f"{RANGES}/{name}")
        assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
        (told,) = found["status"]["conditions"]
        assert (told["type"], told["status"]) == ("Ready", "True")


async def test_a_range_without_addresses_goes_at_once():
    cluster = started()
    await cluster.ok("POST", RANGES, cidr("more", "192.0.2.0/24"))
    await cluster.ok("DELETE", f"{RANGES}/more")
    assert await cluster.names(RANGES) == ["kubernetes"]


async def test_a_range_waits_for_the_addresses_of_services():
    cluster = started()
    await cluster.ok("POST", RANGES, cidr("more", "192.0.2.0/24"))
    await cluster.ok("POST", SERVICES, service(clusterIP="192.0.2.7"))
    await cluster.ok("DELETE", f"{RANGES}/more")
    (told,) = (await cluster.ok("GET", f"{RANGES}/more"))["status"]["conditions"]
    assert (told["type"], told["status"], told["reason"]) == ("Ready", "False", "Terminating")
    refused = await cluster.call("POST", SERVICES, service("late", clusterIP="192.0.2.8"))
    assert refused[0] == 422
    await cluster.ok("DELETE", f"{SERVICES}/web")
    assert await cluster.names(RANGES) == ["kubernetes"]


async def test_a_range_does_not_wait_where_another_range_has_its_addresses():
    cluster = started()
    await cluster.ok("POST", RANGES, cidr("more", "192.0.2.0/24"))
    await cluster.ok("POST", SERVICES, service(clusterIP="192.0.2.7"))
    await cluster.ok("DELETE", f"{RANGES}/more")
    assert await cluster.names(RANGES) == ["kubernetes", "more"]
    await cluster.ok("POST", RANGES, cidr("wide", "192.0.2.0/23"))
    assert await cluster.names(RANGES) == ["kubernetes", "wide"]


@pytest.mark.parametrize(
    ("cidrs", "status"),
    [
        pytest.param(["192.0.2.0/24", "2001:db8::/64"], 200, id="another family is added"),
        pytest.param(["192.0.3.0/24"], 422, id="the range changes"),
        pytest.param(["192.0.3.0/24", "2001:db8::/64"], 422, id="both"),
    ],
)
async def test_a_range_stays_what_it_is(cidrs, status):
    cluster = started()
    await cluster.ok("POST", RANGES, cidr("more", "192.0.2.0/24"))
    change = {"spec": {"cidrs": cidrs}}
    found, _ = await cluster.call("PATCH", f"{RANGES}/more", change, content_type=MERGE)
    assert found == status


async def test_the_finalizer_of_a_range_comes_back():
    cluster = started()
    gone = {"metadata": {"finalizers": None}}
    await cluster.ok("PATCH", f"{RANGES}/kubernetes", gone, content_type=MERGE)
    found = await cluster.ok("GET", f"{RANGES}/kubernetes")
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
