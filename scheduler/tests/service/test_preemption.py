"""Preemption from the pod that does not fit to the pod that runs in its place, in virtual time.

Not covered: which victims are chosen (plugins), and budgets kept current by a controller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.api.codec import encode
from moorage.api.meta import ObjectReference
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.requests import MERGE_PATCH, create, delete, patch_body
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

Scenario = Callable[[VirtualCluster], Awaitable[None]]
# Below the half minute after which waiting pods may be looked at again without an event.
SOON = 25.0


def play(
    scenario: Scenario,
    *,
    nodes: Sequence[Manifest] = (node_manifest("n1"),),
    around: Callable[[Transport], Transport] | None = None,
) -> None:
    """Run a scenario in a new cluster with two priority classes."""
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, around=around) as cluster:
            await cluster.create_objects(
                *[priority(*each) for each in (("low", -5), ("high", 1000))]
            )
            await scenario(cluster)
            cluster.scheduler.core.queue.validate()

    run_virtual(main(), clock)


def priority(name: str, value: int) -> Manifest:
    metadata = {"name": name}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": metadata, "value": value}


def low(name: str, cpu: str = "3", **fields: Any) -> Manifest:
    return pod_manifest(name, cpu=cpu, priorityClassName="low", **fields)


def high(name: str, cpu: str = "3", **fields: Any) -> Manifest:
    return pod_manifest(name, cpu=cpu, priorityClassName="high", **fields)


def conditions(cluster: VirtualCluster, name: str) -> dict[str, tuple[str, str, str]]:
    found = cluster.stored_pod(name) or {}
    return {
        each["type"]: (each["status"], each.get("reason", ""), each.get("message", ""))
        for each in found.get("status", {}).get("conditions") or []
    }


def nominated(cluster: VirtualCluster, name: str) -> str:
    found = cluster.stored_pod(name) or {}
    return str(found.get("status", {}).get("nominatedNodeName") or "")


async def running(cluster: VirtualCluster, *names: str) -> None:
    await cluster.until(lambda: all(cluster.phase_of(name) == "Running" for name in names))


class Watched:
    """A transport that notes the calls about pods and answers some of them itself."""

    def __init__(self, inner: Transport, method: str, script: Sequence[Answer]) -> None:
        self.inner = inner
        self.method = method
        self.script = list(script)
        self.calls: list[str] = []

    async def request(self, call: Call) -> Answer:
        if "/pods/" in call.path:
            self.calls.append(f"{call.method} {call.path.partition('/pods/')[2]}")
            if call.method == self.method and self.script:
                return self.script.pop(0)
        return await self.inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


def test_a_pod_of_higher_priority_gets_the_place_of_a_lower_one() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("victim"))
        await running(cluster, "victim")
        await cluster.create_objects(high("preemptor"))
        await cluster.until(lambda: "DisruptionTarget" in conditions(cluster, "victim"))
        assert conditions(cluster, "victim")["DisruptionTarget"] == (
            "True",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        await cluster.until(lambda: nominated(cluster, "preemptor") == "n1")
        assert cluster.condition_of("preemptor") == (
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu.",
        )
        preemptor: Any = cluster.stored_pod("preemptor")
        await running(cluster, "preemptor")
        assert cluster.node_of("preemptor") == "n1"
        assert cluster.stored_pod("victim") is None
        (told,) = await cluster.events("victim", reason="Preempted")
        uid = preemptor["metadata"]["uid"]
        assert told["message"] == f"Preempted by pod {uid} on node n1"
        assert told["related"]["name"] == "preemptor"

    play(scenario)


def test_no_more_pods_are_evicted_than_needed_and_the_others_stay() -> None:
    nodes = [node_manifest(f"n{i}") for i in range(4)]
    lows = [f"low-{i}" for i in range(8)]
    highs = [f"high-{i}" for i in range(3)]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*[low(name, cpu="2") for name in lows])
        await running(cluster, *lows)
        await cluster.create_objects(*[high(name, cpu="2") for name in highs])
        await running(cluster, *highs)
        left = [name for name in lows if cluster.stored_pod(name) is not None]
        assert len(left) == 5
        assert {cluster.phase_of(name) for name in left} == {"Running"}
        assert cluster.seconds < SOON

    play(scenario, nodes=nodes)


def test_the_least_important_victim_is_deleted_last_and_all_are_marked_first() -> None:
    made: list[Watched] = []

    def around(inner: Transport) -> Transport:
        made.append(Watched(inner, "", ()))
        return made[0]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(priority("middle", 10))
        await cluster.create_objects(pod_manifest("m", cpu="2", priorityClassName="middle"))
        await running(cluster, "m")
        await cluster.create_objects(low("l", cpu="2"))
        await running(cluster, "l")
        made[0].calls.clear()
        await cluster.create_objects(high("preemptor", cpu="4"))
        await running(cluster, "preemptor")
        about_victims = [call for call in made[0].calls if "preemptor" not in call]
        assert about_victims == ["PATCH m/status", "DELETE m", "PATCH l/status", "DELETE l"]

    play(scenario, around=around)


REFUSED = Answer(500, {}, b'{"kind":"Status","reason":"Unknown","message":"no","code":500}')


@pytest.mark.parametrize("failures", [1, 3])
def test_a_refused_eviction_is_tried_again_a_second_later_without_another_event(
    failures: int,
) -> None:
    made: list[Watched] = []

    def around(inner: Transport) -> Transport:
        made.append(Watched(inner, "DELETE", [REFUSED] * failures))
        return made[0]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("victim"))
        await running(cluster, "victim")
        began = cluster.seconds
        await cluster.create_objects(high("preemptor"))
        await running(cluster, "preemptor")
        assert made[0].calls.count("DELETE victim") == failures + 1
        assert failures <= cluster.seconds - began < SOON
        assert len(await cluster.events("victim", reason="Preempted")) == 1

    play(scenario, around=around)


class Replacing(Watched):
    """A transport before whose first DELETE another pod gets the name of the victim."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner, "DELETE", ())
        self.replaced = False

    async def request(self, call: Call) -> Answer:
        if call.method == "DELETE" and call.path.endswith("/pods/victim") and not self.replaced:
            self.replaced = True
            gone = delete(PODS, "victim", namespace="default", grace_seconds=0)
            again = {**low("victim"), "kind": "Pod", "apiVersion": "v1"}
            await self.inner.request(gone)
            made = await self.inner.request(create(PODS, encode(again), namespace="default"))
            assert made.status == 201
        return await super().request(call)


def test_a_pod_that_got_the_name_of_a_victim_is_left_alone() -> None:
    """A StatefulSet makes a pod of the same name again as soon as the victim is gone.

    Seed 4 of quotas: the new pod was deleted, though it had no node.
    """

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("victim"))
        await running(cluster, "victim")
        await cluster.create_objects(high("preemptor"))
        await running(cluster, "preemptor")
        found = cluster.stored_pod("victim")
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"]
        assert "DisruptionTarget" not in conditions(cluster, "victim")
        assert await cluster.events("victim", reason="Preempted") == []

    play(scenario, around=Replacing)


def test_a_preemptor_deleted_while_victims_stop_leaves_its_place_to_others() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        slow = {"moorage.dev/stop-seconds": "5"}
        await cluster.create_objects(low("victim", annotations=slow))
        await running(cluster, "victim")
        await cluster.create_objects(high("preemptor"))
        await cluster.until(lambda: nominated(cluster, "preemptor") == "n1")
        await cluster.create_objects(low("heir"))
        await cluster.client.delete_pod(ObjectReference(namespace="default", name="preemptor"))
        await running(cluster, "heir")
        assert cluster.stored_pod("victim") is None
        assert len(cluster.scheduler.core.queue.nominator) == 0

    play(scenario)


def test_lower_nominations_of_the_node_are_cleared() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        slow = {"moorage.dev/stop-seconds": "8"}
        await cluster.create_objects(priority("middle", 10))
        await cluster.create_objects(low("a", cpu="2", annotations=slow), low("b", cpu="2"))
        await running(cluster, "a", "b")
        await cluster.create_objects(pod_manifest("hopeful", cpu="2", priorityClassName="middle"))
        await cluster.until(lambda: nominated(cluster, "hopeful") == "n1")
        await cluster.create_objects(high("preemptor", cpu="4"))
        await cluster.until(lambda: nominated(cluster, "preemptor") == "n1")
        await cluster.until(lambda: nominated(cluster, "hopeful") == "")
        await running(cluster, "preemptor")
        assert cluster.node_of("hopeful") == ""

    play(scenario)


def test_a_pod_that_never_preempts_waits() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("resident"))
        await running(cluster, "resident")
        await cluster.create_objects({**priority("polite", 5000), "preemptionPolicy": "Never"})
        await cluster.create_objects(pod_manifest("p", cpu="3", priorityClassName="polite"))
        await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
        assert cluster.condition_of("p")[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: not eligible due to preemptionPolicy=Never."
        )
        assert nominated(cluster, "p") == ""
        assert cluster.phase_of("resident") == "Running"

    play(scenario)


def test_a_preemptor_is_held_at_the_gate_while_its_victims_are_told() -> None:
    class Slow(Watched):
        async def request(self, call: Call) -> Answer:
            if call.method == "DELETE" and "/pods/" in call.path:
                await aio.sleep(3)
            return await super().request(call)

    async def scenario(cluster: VirtualCluster) -> None:
        queue = cluster.scheduler.core.queue
        await cluster.create_objects(low("a", cpu="2"), low("b", cpu="2"), low("c", cpu="1"))
        await running(cluster, "a", "b")
        await cluster.create_objects(high("preemptor", cpu="4"))
        await cluster.until(lambda: nominated(cluster, "preemptor") == "n1")
        before = cluster.scheduler.facts.decisions
        # A change that would bring the preemptor back, were it not for the gate.
        allocatable = {"status": {"allocatable": {"cpu": "5"}}}
        await cluster.client.patch(
            NODES, "n1", patch_body(allocatable), content_type=MERGE_PATCH, subresource="status"
        )
        await cluster.until(lambda: queue.pending().gated != ())
        (held,) = queue.pending().gated
        assert held.pod.key == ("default", "preemptor")
        assert held.gating_plugin == "DefaultPreemption"
        assert cluster.scheduler.facts.decisions <= before + 1  # of the small pod that fits now
        await running(cluster, "preemptor")
        assert cluster.seconds < SOON

    play(scenario, around=lambda inner: Slow(inner, "", ()))


@pytest.mark.parametrize("every", [2, 3])
def test_a_wave_of_preemptors_lands_though_calls_fail_now_and_then(every: int) -> None:
    nodes = [node_manifest(f"n{i}") for i in range(10)]
    lows = [f"low-{i}" for i in range(20)]
    highs = [f"high-{i}" for i in range(12)]

    class Flaky(Watched):
        """Answers every so many writes about pods by an error."""

        writes = 0

        async def request(self, call: Call) -> Answer:
            if "/pods/low" in call.path and call.method in ("PATCH", "DELETE"):
                self.writes += 1
                if self.writes % every == 0:
                    status = (409, 429, 500)[self.writes // every % 3]
                    return Answer(status, {}, REFUSED.body.replace(b"500", b"%d" % status))
            return await super().request(call)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*[low(name, cpu="2") for name in lows])
        await running(cluster, *lows)
        await cluster.create_objects(*[high(name, cpu="2") for name in highs])
        await cluster.until(
            lambda: all(cluster.phase_of(name) == "Running" for name in highs), seconds=120
        )
        left = [name for name in lows if cluster.phase_of(name) == "Running"]
        assert len(left) == len(lows) - len(highs)
        assert len(cluster.scheduler.core.queue.nominator) == 0

    play(scenario, nodes=nodes, around=lambda inner: Flaky(inner, "", ()))
