"""Victims that are not bound yet: taken off their node in memory, nothing of theirs is deleted.

One plugin holds every pod of low priority, at Permit or in PreBind, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Call, Transport
from moorage.config.defaults import with_defaults
from moorage.config.own import LoadedConfiguration
from moorage.config.types import (
    KubeSchedulerConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.handle import Handle
from moorage.framework.registry import PluginEntry
from moorage.framework.status import SUCCESS, Code, Status
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.test_preemption import Watched, high, low, priority

Where = Literal["permit", "pre_bind", "pre_bind and deaf", "writes"]
Scenario = Callable[[VirtualCluster, Watched], Awaitable[None]]

SOON = 20.0  # before the pods held would be let go by a timeout or a flush


class Holding:
    """Holds pods of negative priority, for half a minute at most at Permit, for ever in PreBind.

    With ``writes`` nothing is held, but the pods are nominated before their binding.
    """

    name = "Holding"
    where: Where = "permit"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._effects = handle.effects

    def permit(self, state: object, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        del state, node_name
        if self.where == "permit" and pod.priority < 0:
            return Status(Code.WAIT), 30.0
        for waiting in self._effects.waiting_pods():
            assert waiting.pending == ("Holding",)
        return SUCCESS, 0.0

    async def pre_bind(self, state: object, pod: PodInfo, node_name: str) -> Status:
        del state, node_name
        if self.where.startswith("pre_bind") and pod.priority < 0:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.where == "pre_bind":
                    raise
        return SUCCESS


class SlowReports(Watched):
    """A transport on which the first status of the victim takes ten seconds."""

    async def request(self, call: Call) -> Answer:
        if call.path.endswith("/victim/status") and "PATCH victim/status" not in self.calls:
            self.calls.append("PATCH victim/status")
            await aio.sleep(10)
            return await self.inner.request(call)
        return await super().request(call)


def play(where: Where, scenario: Scenario) -> None:
    """Run a scenario on one node of four cores, with the plugin in the default profile."""
    clock = ManualClock()
    registry = in_tree_registry()
    registry.register(PluginEntry("Holding", type("Holding", (Holding,), {"where": where})))
    enabled = PluginSet(enabled=[PluginRef(name="Holding")])
    profile = Profile(scheduler_name="default-scheduler", plugins=Plugins(multi_point=enabled))
    config = with_defaults(KubeSchedulerConfiguration(profiles=[profile]))
    made: list[Watched] = []

    def around(inner: Transport) -> Transport:
        made.append((SlowReports if where == "writes" else Watched)(inner, "", ()))
        return made[0]

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1")],
            config=LoadedConfiguration(scheduler=config),
            registry=registry,
            around=around,
        ) as cluster:
            await cluster.create_objects(
                *[priority(*each) for each in (("low", -5), ("high", 1000))]
            )
            await scenario(cluster, made[0])
            cluster.scheduler.core.queue.validate()
            cluster.scheduler.core.cache.validate()

    run_virtual(main(), clock)


async def held(cluster: VirtualCluster, *names: str) -> None:
    """Wait until these pods are assumed and nominated; none of them is bound."""
    core = cluster.scheduler.core

    def reached() -> bool:
        pods: list[Any] = [cluster.stored_pod(name) for name in names]
        return all(
            core.cache.is_assumed(pod["metadata"]["uid"])
            and pod["status"].get("nominatedNodeName") == "n1"
            for pod in pods
        )

    await cluster.until(reached)
    assert [cluster.node_of(name) for name in names] == [""] * len(names)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param("permit", "waiting on permit for pod: preempted", id="at Permit"),
        pytest.param("pre_bind", "preempted by DefaultPreemption", id="in PreBind"),
        pytest.param(
            "pre_bind and deaf",
            "preempted by DefaultPreemption",
            id="in PreBind, with a plugin that ignores cancelling",
        ),
    ],
)
def test_a_victim_that_is_not_bound_is_taken_off_in_memory(where: Where, message: str) -> None:
    async def scenario(cluster: VirtualCluster, watched: Watched) -> None:
        await cluster.create_objects(low("victim"))
        await held(cluster, "victim")
        before: Any = cluster.stored_pod("victim")
        await cluster.create_objects(high("preemptor"))
        await cluster.until(lambda: cluster.node_of("preemptor") == "n1", seconds=SOON)
        await aio.sleep(1)
        after: Any = cluster.stored_pod("victim")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert not [call for call in watched.calls if call.startswith("DELETE")]
        assert "DisruptionTarget" not in str(after["status"])
        assert "nominatedNodeName" not in after["status"]
        assert cluster.condition_of("victim")[0] == "False"
        preemptor: Any = cluster.stored_pod("preemptor")
        (told,) = await cluster.events("victim", reason="Preempted")
        uid = preemptor["metadata"]["uid"]
        assert told["message"] == (f"Preempted by pod {uid} on node n1 (in kube-scheduler memory).")
        failed = await cluster.events("victim", reason="FailedScheduling")
        assert failed[0]["message"] == message

    play(where, scenario)


def test_a_victim_that_waits_for_its_own_writes_is_taken_off_in_memory() -> None:
    async def scenario(cluster: VirtualCluster, watched: Watched) -> None:
        await cluster.create_objects(low("victim"))
        await cluster.until(lambda: "PATCH victim/status" in watched.calls)
        await cluster.create_objects(high("preemptor"))
        await cluster.until(lambda: cluster.node_of("preemptor") == "n1", seconds=5.0)
        assert watched.calls.count("PATCH victim/status") == 1  # the first has not ended
        await aio.sleep(SOON)
        assert not [call for call in watched.calls if call.startswith("DELETE")]
        assert cluster.condition_of("victim")[0] == "False"
        assert "nominatedNodeName" not in str(cluster.stored_pod("victim"))

    play("writes", scenario)


def test_waiting_victims_are_rejected_in_memory_and_bound_victims_deleted() -> None:
    async def scenario(cluster: VirtualCluster, watched: Watched) -> None:
        await cluster.create_objects(priority("middle", 10))
        await cluster.create_objects(low("waits", cpu="2"))
        await held(cluster, "waits")
        runs = {**low("runs", cpu="2")}
        runs["spec"] = {**runs["spec"], "priorityClassName": "middle"}
        await cluster.create_objects(runs)
        await cluster.until(lambda: cluster.phase_of("runs") == "Running")
        await cluster.create_objects(high("preemptor", cpu="4"))
        await cluster.until(lambda: cluster.node_of("preemptor") == "n1", seconds=SOON)
        assert cluster.stored_pod("runs") is None
        assert cluster.stored_pod("waits") is not None
        assert [call for call in watched.calls if call.startswith("DELETE")] == ["DELETE runs"]

    play("permit", scenario)


def test_a_victim_whose_binding_failed_meanwhile_is_left_alone() -> None:
    async def scenario(cluster: VirtualCluster, watched: Watched) -> None:
        await cluster.create_objects(priority("middle", 10))
        await cluster.create_objects(low("waits", cpu="2"))
        await held(cluster, "waits")
        waits: Any = cluster.stored_pod("waits")
        await cluster.create_objects(pod_manifest("runs", cpu="2", priorityClassName="middle"))
        await cluster.until(lambda: cluster.phase_of("runs") == "Running")
        await cluster.create_objects(high("preemptor", cpu="4"))
        await cluster.until(lambda: "PATCH runs/status" in watched.calls)
        waiting = cluster.scheduler.core.waiting
        assert waiting.reject(waits["metadata"]["uid"], "Holding", "no")
        await cluster.until(lambda: cluster.node_of("preemptor") == "n1", seconds=SOON)
        assert [call for call in watched.calls if call.startswith("DELETE")] == ["DELETE runs"]
        assert await cluster.events("waits", reason="Preempted") == []

    play("permit", scenario)


def test_a_victim_that_waits_no_more_when_its_turn_comes_is_deleted() -> None:
    async def scenario(cluster: VirtualCluster, watched: Watched) -> None:
        await cluster.create_objects(low("victim"))
        await held(cluster, "victim")
        victim: Any = cluster.stored_pod("victim")
        waiting = cluster.scheduler.core.waiting
        assert waiting.allow(victim["metadata"]["uid"], "Holding")
        await cluster.until(lambda: cluster.phase_of("victim") == "Running")
        await cluster.create_objects(high("preemptor"))
        await cluster.until(lambda: cluster.node_of("preemptor") == "n1", seconds=SOON)
        assert cluster.stored_pod("victim") is None
        assert "DELETE victim" in watched.calls

    play("permit", scenario)
