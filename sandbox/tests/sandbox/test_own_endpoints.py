"""Where the service ``kubernetes`` points: the address of the API server, at every start."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.sandbox.own_endpoints import publish_endpoints
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerSettings
from sandbox.tests.apiserver.harness import Cluster

ENDPOINTS = "/api/v1/namespaces/default/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def client_of(cluster: Cluster) -> Client:
    transport = InProcessTransport(cluster.server, latency_seconds=0)
    return Client(transport, rng=Streams(1).stream("client"))


async def told(cluster: Cluster) -> tuple[Any, ...]:
    """Address and port in the Endpoints, and kind, address and port in the slice."""
    (subset,) = (await cluster.ok("GET", f"{ENDPOINTS}/kubernetes"))["subsets"]
    found = await cluster.ok("GET", f"{SLICES}/kubernetes")
    assert found["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    return (
        subset["addresses"][0]["ip"],
        subset["ports"][0]["port"],
        found["addressType"],
        *found["endpoints"][0]["addresses"],
        found["ports"][0]["port"],
    )


async def test_a_later_start_tells_its_own_port():
    cluster = Cluster()
    await publish_endpoints(client_of(cluster), "127.0.0.1", 4000)
    assert await told(cluster) == ("127.0.0.1", 4000, "IPv4", "127.0.0.1", 4000)
    await publish_endpoints(client_of(cluster), "127.0.0.1", 5000)
    assert await told(cluster) == ("127.0.0.1", 5000, "IPv4", "127.0.0.1", 5000)


async def test_an_address_of_ipv6_is_told_as_such():
    cluster = Cluster()
    await publish_endpoints(client_of(cluster), "::1", 4000)
    assert (await told(cluster))[2] == "IPv6"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "example.com"])
async def test_nothing_is_told_of(address):
    cluster = Cluster()
    await publish_endpoints(client_of(cluster), address, 4000)
    assert await cluster.names(SLICES) == await cluster.names(ENDPOINTS) == []


async def test_a_server_starts_where_a_policy_denies_the_endpoints(caplog):
    cluster = Cluster()
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    denies = {
        "metadata": {"name": "none"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "object.kind != 'Endpoints'", "message": "no lists"}],
        },
    }
    await cluster.ok("POST", f"{policies}ies", denies)
    binding = {"policyName": "none", "validationActions": ["Deny"]}
    await cluster.ok(
        "POST", f"{policies}ybindings", {"metadata": {"name": "none"}, "spec": binding}
    )
    await publish_endpoints(client_of(cluster), "127.0.0.1", 4000)
    assert await cluster.names(SLICES) == await cluster.names(ENDPOINTS) == []
    (line,) = caplog.messages
    assert line.startswith(
        "the endpoints of the service default/kubernetes do not tell the address of this server: "
    )
    assert "no lists" in line


async def test_a_sandbox_tells_where_it_listens():
    server = SandboxServer(ServerSettings(), clock=SystemClock())
    report = await server.start()
    try:
        record = server._api.store.shelf("endpoints").get(("default", "kubernetes"))
        assert record is not None
        (subset,) = record.decode()["subsets"]
        assert report.url == f"https://127.0.0.1:{subset['ports'][0]['port']}"
    finally:
        await server.stop()
