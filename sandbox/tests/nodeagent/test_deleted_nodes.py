"""Nodes that are deleted, and made again, while their agents run; under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage.nodeshapes.annotations import PLAYED, asks_for_agent
from moorage.nodeshapes.templates import default_nodes
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.nodeagent.pod_life import PodLife
from moorage_sandbox.testing.builders import node
from moorage_sandbox.testing.builders import pod as api_pod
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import Scene, deletion, play, pod
from sandbox.tests.nodeagent.virtual import START_NS, LoopClock, run_virtual


def made(name: str = "extra", **annotations: str) -> dict[str, Any]:
    """A node as another client creates it."""
    (template,) = default_nodes(1)
    template["metadata"] = {"name": name, "annotations": annotations or {PLAYED: "true"}}
    return template


def adopting(scene: Scene) -> MemoryApi:
    """Run agents that have no nodes of their own until the scene is over; return the server."""

    async def main() -> MemoryApi:
        api = MemoryApi()
        api.changed = asyncio.Event()
        client = Client(api, rng=Streams(1).stream("client"))
        agents = NodeAgents(client, [], clock=LoopClock(), streams=Streams(1), adopt=asks_for_agent)
        tasks = aio.TaskOwner()
        tasks.spawn(agents.run(), name="agents")
        try:
            await agents.registered.wait()
            await scene(api)
        finally:
            await tasks.cancel_all()
        return api

    return run_virtual(main())


def calls_about(api: MemoryApi, name: str) -> list[str]:
    return [call for call in api.calls if f"/{name}" in call]


def test_nothing_is_written_about_a_deleted_node():
    async def scene(api: MemoryApi) -> None:
        await aio.sleep(20)
        api._delete(("nodes", "", "node-01"))
        api._delete(("leases", "kube-node-lease", "node-01"))
        await aio.sleep(1)
        before = len(calls_about(api, "node-01"))
        assert before > 0
        await aio.sleep(900)  # three heartbeats
        assert len(calls_about(api, "node-01")) == before

    api = play(scene)
    names = {name for plural, _, name in api.objects if plural in {"nodes", "leases"}}
    assert names == {"node-02"}


def test_pods_of_a_deleted_node_still_stop_in_order():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"stop-seconds": "5"}))
        await aio.sleep(10)
        api._delete(("nodes", "", "node-01"))
        await aio.sleep(10 - asyncio.get_running_loop().time() % 10)
        now = asyncio.get_running_loop().time()
        api.change("pods", "default", "web", deletion(seconds=now, grace=30))
        await aio.sleep(4)
        assert ("pods", "default", "web") in api.objects
        await aio.sleep(2)
        assert ("pods", "default", "web") not in api.objects

    play(scene)


@pytest.mark.parametrize("adopted", [False, True])
def test_a_node_made_again_under_its_name_is_played_again(adopted):
    async def scene(api: MemoryApi) -> None:
        name = "extra" if adopted else "node-01"
        if adopted:
            api.put("nodes", made())
            await aio.sleep(5)
        api._delete(("nodes", "", name))
        api._delete(("leases", "kube-node-lease", name))
        await aio.sleep(30)
        api.put("nodes", made(name) if adopted else made(name, other="value"))
        await aio.sleep(15)
        assert ("leases", "kube-node-lease", name) in api.objects
        conditions = api.get("nodes", name, "")["status"]["conditions"]
        assert {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in conditions}.items()
        api.put("pods", pod(node=name))
        await aio.sleep(5)
        assert api.get("pods", "web")["status"]["phase"] == "Running"

    if adopted:
        adopting(scene)
    else:
        play(scene)


def test_an_adopted_node_that_is_deleted_at_once_is_not_created_again():
    async def scene(api: MemoryApi) -> None:
        for number in range(50):
            api.put("nodes", made(f"extra-{number}"))
        for number in range(50):
            api._delete(("nodes", "", f"extra-{number}"))
        await aio.sleep(60)

    api = adopting(scene)
    assert not [key for key in api.objects if key[0] in {"nodes", "leases"}]
    assert not [call for call in api.calls if call.startswith("POST") and "/nodes" in call]


def test_a_deleted_node_is_forgotten_with_its_last_pod():
    life = PodLife({"n": node("n")})
    web = api_pod("web", node_name="n")
    life.on_pod(web, now_ns=START_NS)
    life.remove_node("n")
    assert life.plays("n")
    life.on_gone(web)
    assert not life.plays("n")
    assert life.on_pod(api_pod("later", node_name="n"), now_ns=START_NS) == []
