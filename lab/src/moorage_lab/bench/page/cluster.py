"""A cluster of some size whose scheduler serves the page, and a viewer who has logged in.

The API server is ``moorage up --no-scheduler``, the scheduler is ``moorage run --dashboard``; each
is a process of its own. The pods that fill the nodes are created with a node, so nothing is
scheduled before the measurement begins.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from moorage.api.resources import NAMESPACES, NODES, PODS
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.auth import Credential, FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from moorage.client.writes import Client
from moorage_lab.bench.processes import Child, open_harness
from moorage_lab.bench.server_run import create_all
from moorage_lab.bench.workload import CreateNodes, CreatePods, default_node, default_pod

_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_ALL_SEEN_SECONDS: Final = 120.0
_TEAMS: Final = 5
_PAGE = re.compile(r"page at (http://\S+/login\?token=\S+)")


class PageCluster:
    """A running cluster with a page.

    Parameters
    ----------
    client
        The verbs of its API server.
    scheduler
        The scheduler's process.

    Attributes
    ----------
    scheduler
        The scheduler's process.
    """

    def __init__(self, client: Client, scheduler: Child) -> None:
        self._client = client
        self.scheduler = scheduler

    async def login_link(self) -> str:
        """Return the newest login link, waiting for the first one.

        Raises
        ------
        MoorageError
            The scheduler ended, or printed no link for a minute.
        """
        waited = 0.0
        while waited < _START_SECONDS:
            self.scheduler.raise_if_ended()
            if found := _PAGE.findall(self.scheduler.output()):
                return str(found[-1])
            await aio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        raise MoorageError(f"the scheduler printed no login link for {_START_SECONDS:.0f} s")

    async def create_pod(self, number: int) -> None:
        """Create a pod without a node."""
        pod = default_pod("arriving")(number)
        await self._client.create(PODS, pod, namespace=pod["metadata"]["namespace"])


@asynccontextmanager
async def page_cluster(
    *,
    nodes: int,
    pods: int,
    clock: Clock,
    streams: Streams,
    progress: Callable[[str], None] = lambda line: None,
) -> AsyncIterator[PageCluster]:
    """Start the processes, fill the cluster, end the processes.

    Parameters
    ----------
    nodes, pods
        Size of the cluster; the pods stand on the nodes in turn.
    progress
        Called with a message at every step.

    Raises
    ------
    MoorageError
        A process ended early or did not start.
    """
    async with open_harness(clock) as harness:
        client = Client(harness.open_transport(), rng=streams.stream("bench/client"))
        progress(f"{nodes} nodes, {pods} pods")
        await _fill(client, nodes, pods)
        flags = ("--secure-port", "0", "--dashboard=127.0.0.1:0", "--seed", str(streams.seed))
        scheduler = harness.scheduler(*flags)
        await scheduler.start()
        yield PageCluster(client, scheduler)


async def _fill(client: Client, nodes: int, pods: int) -> None:
    for number in range(_TEAMS):
        name = {"metadata": {"name": f"team-{number}"}}
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **name})
    await create_all(client, NODES, CreateNodes(nodes, default_node))

    def placed(index: int) -> dict[str, Any]:
        pod = default_pod("init")(index)
        pod["metadata"]["namespace"] = f"team-{index * 7 % _TEAMS}"
        pod["spec"]["nodeName"] = default_node(index % nodes)["metadata"]["name"]
        return pod

    await create_all(client, PODS, CreatePods(pods, placed))


class Viewer:
    """Somebody who has logged in, and may look at the page several times at once.

    Parameters
    ----------
    server
        The address of the page.
    cookie
        The value of the Cookie header.

    Attributes
    ----------
    received
        Bytes of changes received so far, by all looks together.
    """

    def __init__(self, server: str, cookie: str) -> None:
        credential = Credential((("Cookie", cookie),))
        access = ServerAccess(server, FixedCredentials(credential))
        self._transport = HttpTransport(access, user_agent="moorage-bench")
        self.received = 0

    async def state(self) -> bytes:
        """Return everything that the page shows.

        Raises
        ------
        MoorageError
            The page refuses.
        """
        return await self._read_path("/page/v1/state")

    async def all_counted(self, pods: int) -> None:
        """Wait until the scheduler counts as many pods on nodes; the page need not look for that.

        Raises
        ------
        MoorageError
            It does not come so far in two minutes.
        """
        count, waited = 0, 0.0
        while waited < _ALL_SEEN_SECONDS:
            cluster = msgspec.json.decode(
                await self._read_path("/moorage/v1/cluster"), type=_Cluster
            )
            count = sum(len(node.pods) for node in cluster.nodes.values())
            if count == pods:
                return
            await aio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        raise MoorageError(f"the scheduler counts {count} pods on nodes, not {pods}")

    async def follow(self) -> None:
        """Receive changes until cancelled; begin anew where the page says so."""
        while True:
            state = msgspec.json.decode(await self.state(), type=_State)
            call = Call("GET", "/page/v1/changes", (("since", str(state.version)),))
            async with self._transport.stream(call) as lines:
                async for line in lines:
                    self.received += len(line) + 1

    async def _read_path(self, path: str) -> bytes:
        answer = await self._transport.request(Call("GET", path, timeout_seconds=60.0))
        if answer.status != 200:
            raise MoorageError(f"the page answers {answer.status}: {answer.body[:200]!r}")
        return answer.body

    async def close(self) -> None:
        """Leave."""
        await self._transport.close()


async def logged_in(link: str) -> Viewer:
    """Follow a login link.

    Raises
    ------
    MoorageError
        The link was used before.
    """
    parts = urlsplit(link)
    server = f"{parts.scheme}://{parts.netloc}"
    transport = HttpTransport(ServerAccess(server, FixedCredentials()))
    try:
        answer = await transport.request(Call("GET", f"{parts.path}?{parts.query}"))
    finally:
        await transport.close()
    if answer.status != 200:
        raise MoorageError(f"the page answers {answer.status} to its login link")
    return Viewer(server, answer.headers["set-cookie"].partition(";")[0])


class _Node(msgspec.Struct):
    pods: list[msgspec.Raw] = []


class _Cluster(msgspec.Struct):
    nodes: dict[str, _Node] = {}


class _State(msgspec.Struct):
    version: int = 0
