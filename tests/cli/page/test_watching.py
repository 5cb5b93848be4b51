"""The page of a cluster that is only watched: what it answers, and that nothing is written.

Left out: the questions themselves (``scheduler/tests/service/questions``), the command
(`test_command`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.api.resources import PODS
from moorage.base.clock import ManualClock
from moorage.base.errors import MoorageError, UsageError, api_error
from moorage.cli.page.watching import watch_and_serve
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.extenders import Extender
from moorage.config.own import LoadedConfiguration
from moorage.config.types import KubeSchedulerConfiguration
from moorage.dashboard.source import Source
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

LOADED = (LoadedConfiguration(), ())


class Noting:
    """A transport that notes the calls, and whose server forbids one kind."""

    def __init__(self, inner: Transport, forbidden: str = "") -> None:
        self._inner = inner
        self._forbidden = forbidden
        self.methods: list[str] = []

    async def request(self, call: Call) -> Answer:
        self._note(call)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        self._note(call)
        return self._inner.stream(call)

    async def close(self) -> None:
        await self._inner.close()

    def _note(self, call: Call) -> None:
        self.methods.append(call.method)
        if self._forbidden and call.path.endswith(f"/{self._forbidden}"):
            raise api_error(403, "Forbidden", f"{self._forbidden} is forbidden")


def answers(
    *pods: dict[str, Any], ask: Mapping[str, Mapping[str, str]], waiting: int
) -> tuple[dict[str, Any], list[str]]:
    """Create pods, wait until some have no node, and ask; return answers and called methods."""
    clock = ManualClock()

    async def main() -> tuple[dict[str, Any], list[str]]:
        async with VirtualCluster(clock, nodes=[node_manifest("n1", cpu="4")]) as cluster:
            for pod in pods:
                await cluster.create_objects(pod)
            rejected = cluster.scheduler.core.queue.pending
            await cluster.until(lambda: len(rejected().unschedulable) == waiting)
            await cluster.until(lambda: bool(cluster.node_of("web")))
            transport = Noting(InProcessTransport(cluster.server))
            found: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

            async def serve(source: Source) -> None:
                told = {path: await source.ask(path, query) for path, query in ask.items()}
                found.set_result({path: json.loads(each.body) for path, each in told.items()})

            await watch_and_serve(transport, LOADED, clock, serve)
            return await found, transport.methods

    return run_virtual(main(), clock)


def test_pods_wait_where_their_conditions_say() -> None:
    found, methods = answers(
        pod_manifest("web", cpu="1"),
        pod_manifest("giant", cpu="500"),
        pod_manifest("gated", gates=["example.com/wait"]),
        pod_manifest("other", schedulerName="another"),
        ask={"/queue": {}},
        waiting=1,
    )
    told = found["/queue"]
    assert told["scheduling"] is False
    assert {name: size for name, size in told["sizes"].items() if size} == {
        "active": 1,
        "unschedulable": 1,
        "gated": 1,
    }
    pods = {each["name"]: (each["queue"], each.get("message", "")) for each in told["pods"]}
    queue, message = pods.pop("giant")
    assert (queue, message[:45]) == (
        "unschedulable",
        "0/1 nodes are available: 1 Insufficient cpu. ",
    )
    assert pods == {
        "gated": ("gated", "Scheduling is blocked due to non-empty scheduling gates"),
        "other": ("active", ""),
    }
    assert set(methods) == {"GET"}


def test_a_list_of_pods_that_wait_is_bounded_and_the_sizes_are_not() -> None:
    found, _ = answers(
        pod_manifest("web", cpu="1"),
        *(pod_manifest(f"giant-{number}", cpu="500") for number in range(3)),
        ask={"/queue": {"limit": "2"}},
        waiting=3,
    )
    assert (found["/queue"]["sizes"]["unschedulable"], len(found["/queue"]["pods"])) == (3, 2)


def test_nodes_and_explanations_are_told_and_attempts_are_not() -> None:
    ask = {"/cluster": {}, "/explain": {"pod": "default/giant"}, "/decisions": {}, "/records": {}}
    found, methods = answers(
        pod_manifest("web", cpu="1"), pod_manifest("giant", cpu="500"), ask=ask, waiting=1
    )
    (node,) = found["/cluster"]["nodes"].values()
    assert [each["name"] for each in node["pods"]] == ["web"]
    assert "never fits here" in found["/explain"]["explanation"]["sentence"]
    text = "attempts are not known: another scheduler decides, and this one only watches"
    assert found["/decisions"]["message"] == found["/records"]["message"] == text
    assert set(methods) == {"GET"}


def test_a_forbidden_kind_is_named_with_the_rights_that_are_needed() -> None:
    clock = ManualClock()

    async def main() -> str:
        async with VirtualCluster(clock) as cluster:
            transport = Noting(InProcessTransport(cluster.server), PODS.plural)

            async def serve(source: Source) -> None:
                raise AssertionError(f"{source} is served")

            with pytest.raises(MoorageError) as raised:
                await watch_and_serve(transport, LOADED, clock, serve)
            return str(raised.value)

    assert run_virtual(main(), clock) == (
        "the server forbids to read pods: a page needs get, list and watch on them, and no other "
        "right"
    )


async def test_a_configuration_with_extenders_is_refused() -> None:
    extender = Extender(url_prefix="http://127.0.0.1:1")
    config = LoadedConfiguration(scheduler=KubeSchedulerConfiguration(extenders=[extender]))

    async def serve(source: Source) -> None:
        raise AssertionError(f"{source} is served")

    transport: Any = None
    with pytest.raises(UsageError, match="the configuration has extenders"):
        await watch_and_serve(transport, (config, ()), ManualClock(), serve)
