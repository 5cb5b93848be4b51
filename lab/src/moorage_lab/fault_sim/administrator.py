"""The work of an administrator's tools over a while: a drain of a node, and nodes that come and go.

`kubectl drain` and a cluster autoscaler look at the cluster before each step. So they are tasks of
the simulation, not acts that a script holds ready.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from moorage.api.resources import NODES
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.transport import Call
from moorage.client.writes import Client
from moorage_lab.fault_sim.history import History, Obj, is_finished, node_of
from moorage_lab.fault_sim.invariants.write_case import is_leaving
from moorage_sandbox.testing.builders import Manifest, node_manifest

Join = Callable[[list[Manifest]], Awaitable[None]]

_AGAIN_SECONDS = 1.0
_LOOK_SECONDS = 10.0
_EMPTY_LOOKS = 3  # a node leaves when it was empty so many looks in a row
_NODES_MOST = 3


async def drain(client: Client, history: History, node: str, *, end_ns: int) -> None:
    """Cordon a node and evict its pods; try refused evictions again until the end.

    Parameters
    ----------
    client
        Verbs of the server.
    history
        Tells the pods of the node.
    node
        Name of the node.
    end_ns
        Monotonic time at which the administrator gives up, nanoseconds.
    """
    try:
        changes = patch_body({"spec": {"unschedulable": True}})
        await client.patch(NODES, node, changes, content_type=MERGE_PATCH)
    except MoorageError:
        return  # the node is gone
    while history.history_now_ns < end_ns:
        left = [pod for pod in history.on_node(node) if not is_leaving(pod)]
        if not left:
            return
        for pod in left:
            await _evict(client, pod)
        await aio.sleep(_AGAIN_SECONDS)


async def _evict(client: Client, pod: Obj) -> None:
    meta = pod["metadata"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    try:
        await client.transport.request(Call("POST", path, body=msgspec.json.encode(body)))
    except MoorageError:
        return  # the server is away; the next round tries again


class Autoscaler:
    """Adds a node while pods wait for room, and removes its nodes that stay empty.

    Parameters
    ----------
    client, history, clock
        Verbs of the server, what it holds, and the time of the loop.
    join
        Adds nodes that an agent plays.
    """

    def __init__(self, client: Client, history: History, clock: Clock, *, join: Join) -> None:
        self._client = client
        self._history = history
        self._clock = clock
        self._join = join
        self._count = 0
        self._empty: dict[str, int] = {}

    async def run(self, seconds: float) -> None:
        """Look at the cluster again and again, for so many seconds."""
        end_ns = self._clock.monotonic_ns() + round(seconds * NS_PER_SECOND)
        while self._clock.monotonic_ns() < end_ns:
            await self._look()
            await aio.sleep(_LOOK_SECONDS)

    async def _look(self) -> None:
        history = self._history
        own = [name for name in self._empty if name in history.nodes]
        if any(map(_needs_room, history.pods.values())) and len(own) < _NODES_MOST:
            self._count += 1
            name = f"auto{self._count}"
            self._empty[name] = 0
            await self._join([node_manifest(name, cpu="4", pods="20")])
            return
        for name in own:
            self._empty[name] = 0 if history.on_node(name) else self._empty[name] + 1
            if self._empty[name] >= _EMPTY_LOOKS:
                await self._remove(name)

    async def _remove(self, name: str) -> None:
        try:
            await self._client.delete(NODES, name)
        except MoorageError:
            return  # tried again at the next look


def _needs_room(pod: Obj) -> bool:
    """Return whether a pod waits because no node has room, as its condition says."""
    if node_of(pod) or is_finished(pod) or is_leaving(pod):
        return False
    conditions: list[Any] = pod.get("status", {}).get("conditions") or []
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in conditions
    )
