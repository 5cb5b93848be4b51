"""Agents against the embedded API server over real HTTP on loopback: the parts fit together.

Every rule has its own test elsewhere; here is one pod of each fate, with delays of zero.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moorage.api.resources import EVENTS, LEASES, NODES, PODS
from moorage.base import aio
from moorage.base.clock import SystemClock
from moorage.base.errors import UnauthorizedError
from moorage.base.rng import Streams
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.requests import Selection
from moorage.client.writes import Client
from moorage.nodeshapes.templates import default_nodes
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.nodeagent.agents import NodeAgents


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    """A server and the agents of two nodes."""
    clock, streams = SystemClock(), Streams(1)
    api = ApiServer(served_kinds(), clock=clock, streams=streams)
    bootstrap(api)
    http = HttpServer(api, Authenticator({"t": User("admin", ("system:masters",))}), None)
    port = await http.start()
    credentials = FixedCredentials(Credential((bearer("t"),)))
    transport = HttpTransport(ServerAccess(f"http://127.0.0.1:{port}", credentials))
    client = Client(transport, rng=streams.stream("client"))
    agents = NodeAgents(client, default_nodes(2), clock=clock, streams=streams)
    tasks = aio.TaskOwner()
    tasks.spawn(agents.run(), name="agents")
    try:
        await agents.registered.wait()
        yield client
    finally:
        await tasks.cancel_all()
        await transport.close()
        await http.stop()


def pod(name: str, *, node: str = "node-01", cpu: str = "1", **say: str) -> dict[str, Any]:
    annotations = {"start-seconds": "0", "stop-seconds": "0"} | say
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {f"moorage.dev/{key}": value for key, value in annotations.items()},
        },
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [container]},
    }


async def eventually(
    look: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool], *, tries: int = 500
) -> Any:
    """Look until what is seen is what is wanted."""
    for _ in range(tries):
        seen = await look()
        if wanted(seen):
            return seen
        await aio.sleep(0.01)
    raise AssertionError(f"never happened; the last look saw {seen}")


async def test_agents_carry_each_pod_to_its_expected_end():
    async with cluster() as client:
        nodes = await client.list(NODES)
        leases = await client.list(LEASES, Selection(namespace="kube-node-lease"))
        assert [len(each["items"]) for each in (nodes, leases)] == [2, 2]  # type: ignore[arg-type]

        pods = (
            pod("runs"),
            pod("ends", **{"run-seconds": "0"}),
            pod("refused", node="node-02", cpu="9"),
        )
        for each in pods:
            await client.create(PODS, each, namespace="default")

        async def phases() -> dict[str, str]:
            items: Any = (await client.list(PODS))["items"]
            return {item["metadata"]["name"]: item["status"]["phase"] for item in items}

        ends = {"runs": "Running", "ends": "Succeeded", "refused": "Failed"}
        await eventually(phases, lambda seen: seen == ends)

        status: Any = (await client.get(PODS, "refused", namespace="default"))["status"]
        text = "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000"
        assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {text}")
        event = await eventually(
            lambda: client.list(EVENTS), lambda seen: bool(seen["items"]), tries=200
        )
        assert event["items"][0]["note"] == text

        for name in ends:
            await client.delete(PODS, name, namespace="default")
        await eventually(phases, lambda seen: seen == {})


async def test_agents_with_wrong_credentials_say_so():
    clock, streams = SystemClock(), Streams(1)
    http = HttpServer(
        ApiServer(served_kinds(), clock=clock, streams=streams), Authenticator({}), None
    )
    port = await http.start()
    transport = HttpTransport(ServerAccess(f"http://127.0.0.1:{port}", FixedCredentials()))
    client = Client(transport, rng=streams.stream("client"))
    agents = NodeAgents(client, default_nodes(2), clock=clock, streams=streams)
    try:
        with pytest.raises(UnauthorizedError):
            await agents.run()
    finally:
        await transport.close()
        await http.stop()
