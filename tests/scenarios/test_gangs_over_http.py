"""A gang over real HTTP: server, nodes and controllers of a sandbox, and a scheduler beside it.

What gangs do is told in ``test_gangs.py``; here only that the parts as the sandbox starts them find
each other over the wire: labels, watch of the custom resource, its status, and what kubectl prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import load_kubeconfig
from moorage.client.transport import Call
from moorage.client.writes import Client
from moorage.nodeshapes.templates import complete
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerSettings
from tests.scenarios.gangs import coscheduling, nodes, of_object, pod_group

QUICK = {"moorage.dev/start-seconds": "0.05", "moorage.dev/stop-seconds": "0.05"}
PATH = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def member(name: str, group: str) -> dict[str, Any]:
    made = of_object(name, of=group)
    made["metadata"]["annotations"] = QUICK
    return made


def test_two_gangs_for_three_places_one_after_the_other(tmp_path: Path):
    templates = [complete(each) for each in nodes(3)]
    clock = SystemClock()

    async def main() -> None:
        server = SandboxServer(
            ServerSettings(nodes=templates, seed=1, custom_kinds=["podgroups"]), clock=clock
        )
        (tmp_path / "kubeconfig").write_text((await server.start()).kubeconfig)
        kubeconfig = load_kubeconfig([tmp_path / "kubeconfig"], must_exist=True)
        assert kubeconfig is not None
        access = kubeconfig.access("", clock=clock)
        tasks, ready = TaskOwner(), asyncio.Event()
        transport = open_transport(access, clock=clock)
        own = open_transport(access, clock=clock)
        client = Client(transport, rng=Streams(1).stream("test"))
        scheduler = scheduler_over(
            own,
            coscheduling(),
            in_tree_registry(),
            clock=clock,
            streams=Streams(1),
            host="scenario",
        )

        async def until(reached: Callable[[dict[str, list[Any]]], bool]) -> None:
            async with asyncio.timeout(30):
                while not reached(await table()):
                    await aio.sleep(0.05)

        async def table() -> dict[str, list[Any]]:
            """Return what ``kubectl get podgroups.scheduling.x-k8s.io`` prints, but for the age."""
            answer = await transport.request(Call("GET", PATH, accept=TABLE))
            shown: Any = msgspec.json.decode(answer.body)
            names = [each["name"] for each in shown["columnDefinitions"]]
            assert names == ["Name", "Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"]
            return {row["cells"][0]: row["cells"][1:-1] for row in shown["rows"]}

        try:
            tasks.spawn(server.play_nodes(ready.set), name="nodes")
            tasks.spawn(scheduler.run(), name="scheduler")
            await ready.wait()
            await scheduler.ready.wait()
            for group in ("a", "b"):
                body = pod_group(group, least=2)
                await client.create(COSCHEDULING_POD_GROUPS, body, namespace="default")
                for i in range(2):
                    await client.create(PODS, member(f"{group}{i}", group), namespace="default")
            await until(lambda shown: shown["a"][:3] == ["Running", 2, 2])
            assert (await table())["b"][0] == "Scheduling"
            for i in range(2):
                await client.delete(PODS, f"a{i}", namespace="default")
            await until(lambda shown: shown["b"][:3] == ["Running", 2, 2])
        finally:
            await tasks.cancel_all()
            await own.close()
            await transport.close()
            await server.stop()

    asyncio.run(main())
