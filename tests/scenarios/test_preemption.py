"""Waves of preemptors on a whole sandbox: budgets kept by the controller, faults, an autoscaler.

Told in virtual time and, but for the last, over HTTPS. What single decisions choose is for the
tests of the plugin; one preemption step by step is in scheduler/tests/service.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import ApiError, TransportError
from moorage.base.rng import Random, Streams
from moorage.client.requests import Selection
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.client.writes import Client
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.controllers.disruption import DisruptionController
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from tests.scenarios.over_https import OverHttps, run_scenario

Scenario = Callable[[VirtualCluster], Awaitable[None]]


def priority(name: str, value: int, **fields: Any) -> Manifest:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}


CLASSES = [priority("low", -5), priority("high", 1000)]


def low(name: str, *, app: str = "", cpu: str = "2", **fields: Any) -> Manifest:
    labels = {"app": app} if app else None
    return pod_manifest(name, cpu=cpu, priorityClassName="low", labels=labels, **fields)


def high(name: str, *, cpu: str = "2", **fields: Any) -> Manifest:
    return pod_manifest(name, cpu=cpu, priorityClassName="high", **fields)


def budget(name: str, selector: Any, least: int | str) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": least, "selector": selector},
    }


def of_app(app: str) -> Manifest:
    return {"matchLabels": {"app": app}}


class Seen:
    """What the API showed of pods, from a watch: nominations, and who was marked for eviction."""

    def __init__(self) -> None:
        self.nominated: dict[str, list[str]] = {}
        self.bound: dict[str, str] = {}
        self.marked: dict[str, str] = {}
        self.gone: set[str] = set()

    async def follow(self, client: Client) -> None:
        while True:
            try:
                async for event in client.watch(PODS, Selection()):
                    if event["type"] != "BOOKMARK":
                        self._note(event)
            except (ApiError, TransportError):
                await aio.sleep(0.01)

    def _note(self, event: Any) -> None:
        pod = event["object"]
        name, status = pod["metadata"]["name"], pod.get("status", {})
        if event["type"] == "DELETED":
            self.gone.add(name)
        if node_name := pod["spec"].get("nodeName"):
            self.bound[name] = node_name
        nominated = status.get("nominatedNodeName", "")
        known = self.nominated.setdefault(name, [])
        if nominated and [nominated] != known[-1:]:
            known.append(nominated)
        for each in status.get("conditions") or []:
            if each["type"] == "DisruptionTarget" and each["status"] == "True":
                self.marked[name] = each["reason"]


class Faulty:
    """A transport that loses or refuses a share of the calls that evict.

    A lost call may have been acted upon or not: the caller cannot know.
    """

    def __init__(self, inner: Transport, rng: Random, share: float) -> None:
        self.inner = inner
        self.rng = rng
        self.share = share
        self.faults = 0
        self.unknown = 0
        """Calls that were acted upon, of which the caller does not know it."""

    async def request(self, call: Call) -> Answer:
        evicting = "/pods/low" in call.path and call.method in ("PATCH", "DELETE")
        if not evicting or self.rng.random() >= self.share:
            return await self.inner.request(call)
        self.faults += 1
        kind = self.rng.randrange(5)
        if kind == 0:
            raise TransportError("the connection was dropped before the call")
        if kind == 1:
            await self.inner.request(call)
            self.unknown += 1
            raise TransportError("the connection was dropped before the answer")
        code = (409, 429, 500)[kind - 2]
        text = b'{"kind":"Status","status":"Failure","message":"fault","code":%d}' % code
        return Answer(code, {}, text)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


def play(
    scenario: Scenario,
    *,
    nodes: Sequence[Manifest],
    https: bool,
    around: Callable[[Transport], Transport] | None = None,
    classes: Sequence[Manifest] = CLASSES,
    kept: bool = True,
    config: LoadedConfiguration | None = None,
) -> None:
    """Run a scenario in a cluster, whose budgets are kept unless told otherwise."""
    made_by = OverHttps if https else VirtualCluster

    async def main(clock: Clock) -> None:
        controllers = (DisruptionController,) if kept else ()
        async with made_by(
            clock, nodes=nodes, around=around, config=config, controllers=controllers
        ) as cluster:
            await cluster.create_objects(*classes)
            await scenario(cluster)
            cluster.scheduler.core.queue.validate()

    run_scenario(main, https=https)


@asynccontextmanager
async def watched(cluster: VirtualCluster) -> AsyncIterator[Seen]:
    seen, tasks = Seen(), TaskOwner()
    tasks.spawn(seen.follow(cluster.client), name="seen")
    try:
        yield seen
    finally:
        await tasks.cancel_all()


async def running(cluster: VirtualCluster, *names: str, seconds: float = 60.0) -> None:
    await cluster.until(
        lambda: all(cluster.phase_of(name) == "Running" for name in names), seconds=seconds
    )


def allowed(cluster: VirtualCluster, name: str) -> int:
    record = cluster.server.store.shelf("poddisruptionbudgets.policy").get(("default", name))
    assert record is not None
    return int(record.decode()["status"].get("disruptionsAllowed", 0))


def nominated(cluster: VirtualCluster, name: str) -> str:
    return str((cluster.stored_pod(name) or {}).get("status", {}).get("nominatedNodeName") or "")


# -- waves -----------------------------------------------------------------------------------------


def test_a_wave_lands_where_it_was_nominated_and_leaves_protected_pods_alone(https: bool):
    """Ten full nodes, half of the pods protected; as many preemptors as there are others."""
    protected = [f"low-kept-{i}" for i in range(10)]
    others = [f"low-{i}" for i in range(10)]
    wave = [f"high-{i}" for i in range(10)]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(budget("kept", of_app("kept"), 10))
        grace: dict[str, Any] = {"terminationGracePeriodSeconds": 5}
        stop = {"moorage.dev/stop-seconds": "3"}
        for kept, other in zip(protected, others, strict=True):
            await cluster.create_objects(
                low(kept, app="kept"), low(other, annotations=stop, **grace)
            )
        await running(cluster, *protected, *others)
        async with watched(cluster) as seen:
            began = cluster.seconds
            await cluster.create_objects(*[high(name) for name in wave])
            await running(cluster, *wave)
            await cluster.until(lambda: seen.bound.keys() >= set(wave))
        assert cluster.seconds - began >= 3  # victims stopped in peace
        assert seen.marked == dict.fromkeys(others, "PreemptionByScheduler")
        assert seen.gone == set(others)
        assert [cluster.phase_of(name) for name in protected] == ["Running"] * 10
        landed = {name: [cluster.node_of(name)] for name in wave}
        # Nominated once; over HTTPS a busy machine may stand still for longer than a pod waits.
        times = 1 if https else 0
        assert {name: seen.nominated[name][-times:] for name in wave} == landed
        await cluster.until(lambda: len(cluster.scheduler.core.queue.nominator) == 0)

    play(scenario, https=https, nodes=[node_manifest(f"n{i}") for i in range(10)])


def test_a_budget_is_broken_only_where_nothing_else_makes_room(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(budget("all", {}, 2))
        await cluster.create_objects(low("low-a", app="a"), low("low-b", app="a"))
        await running(cluster, "low-a", "low-b")
        await cluster.until(lambda: allowed(cluster, "all") == 0)
        async with watched(cluster) as seen:
            await cluster.create_objects(high("high"))
            await running(cluster, "high")
            await cluster.until(lambda: "high" in seen.bound)
        assert len(seen.gone) == 1

    play(scenario, https=https, nodes=[node_manifest("n1")])


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        pytest.param(budget("b", of_app("nobody"), 1), True, id="a budget that matches nobody"),
        pytest.param(budget("b", None, 1), True, id="a budget without a selector"),
        pytest.param(budget("b", {}, 2), True, id="an empty selector protects nobody here"),
        pytest.param(budget("b", of_app("a"), 1), False, id="a budget whose status nobody keeps"),
    ],
)
def test_odd_budgets_keep_nobody_from_his_place(odd: Manifest, kept: bool, https: bool) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(low("low-a", app="a"), low("low-b", app="a"), odd)
        await running(cluster, "low-a", "low-b")
        await cluster.create_objects(high("high"))
        await running(cluster, "high")
        assert sum(cluster.stored_pod(name) is None for name in ("low-a", "low-b")) == 1

    play(scenario, https=https, nodes=[node_manifest("n1")], kept=kept)


def test_a_preemptor_deleted_midway_frees_its_nomination_for_the_next(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        stop = {"moorage.dev/stop-seconds": "8"}
        await cluster.create_objects(low("low-a", cpu="4", annotations=stop))
        await running(cluster, "low-a")
        await cluster.create_objects(high("first", cpu="4"))
        await cluster.until(lambda: nominated(cluster, "first") == "n1")
        await cluster.client.delete(PODS, "first", namespace="default")
        await cluster.until(lambda: cluster.stored_pod("first") is None)
        await cluster.until(lambda: len(cluster.scheduler.core.queue.nominator) == 0)
        await cluster.create_objects(low("next", cpu="4"))
        await running(cluster, "next")
        assert cluster.stored_pod("low-a") is None

    play(scenario, https=https, nodes=[node_manifest("n1")])


@pytest.mark.parametrize(
    ("seed", "https"), [*((seed, False) for seed in range(6)), (0, True), (1, True)]
)
def test_a_wave_lands_whatever_happens_to_the_calls(seed: int, https: bool):
    """Nobody is lost: every low pod runs or was evicted, and for each preemptor but one goes."""
    lows = [f"low-{i}" for i in range(16)]
    wave = [f"high-{i}" for i in range(10)]
    faulty: list[Faulty] = []

    def around(inner: Transport) -> Transport:
        faulty.append(Faulty(inner, Streams(seed).stream("faults"), 0.4))
        return faulty[0]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*[low(name) for name in lows])
        await running(cluster, *lows)
        async with watched(cluster) as seen:
            await cluster.create_objects(*[high(name) for name in wave])
            await running(cluster, *wave, seconds=300)
            await cluster.until(lambda: seen.bound.keys() >= set(wave))
        left = [name for name in lows if cluster.phase_of(name) == "Running"]
        assert faulty[0].faults
        evicted = len(lows) - len(left)
        # An attempt may come before the watch has shown an eviction that nobody was told of.
        assert len(wave) <= evicted <= len(wave) + (faulty[0].unknown if https else 0)
        assert set(left) | seen.gone == set(lows)
        assert not set(left) & seen.gone
        await cluster.until(lambda: len(cluster.scheduler.core.queue.nominator) == 0)

    play(scenario, https=https, nodes=[node_manifest(f"n{i}") for i in range(8)], around=around)


# -- priority classes ------------------------------------------------------------------------------


def test_priority_comes_from_classes_and_never_means_waiting(https: bool):
    classes = [
        priority("plain", 10, globalDefault=True),
        priority("patient", 5000, preemptionPolicy="Never"),
        priority("high", 1000),
    ]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("plain", cpu="4"))
        await running(cluster, "plain")
        found: Any = cluster.stored_pod("plain")
        assert (found["spec"]["priority"], found["spec"]["priorityClassName"]) == (10, "plain")
        await cluster.create_objects(pod_manifest("patient", cpu="4", priorityClassName="patient"))
        await cluster.until(lambda: cluster.condition_of("patient")[1] == "Unschedulable")
        assert cluster.condition_of("patient")[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        )
        assert cluster.phase_of("plain") == "Running"
        # Who preempts gets the place, though who waits has more priority and comes first after.
        await cluster.create_objects(high("high", cpu="4"))
        await cluster.until(lambda: cluster.stored_pod("plain") is None)
        await running(cluster, "patient")
        await cluster.create_objects(
            pod_manifest(
                "critical",
                namespace="kube-system",
                cpu="4",
                priorityClassName="system-cluster-critical",
            )
        )
        await cluster.until(lambda: cluster.phase_of("critical", "kube-system") == "Running")
        assert cluster.stored_pod("patient") is None

    play(scenario, https=https, nodes=[node_manifest("n1")], classes=classes)


# -- an autoscaler ---------------------------------------------------------------------------------


class Autoscaler:
    """Adds a node whenever a pod is unschedulable and hopes for no node."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.added: list[str] = []
        self.asked_by: dict[str, None] = {}

    async def run(self) -> None:
        while True:
            for key in self.cluster.placements():
                name = key.partition("/")[2]
                unschedulable = self.cluster.condition_of(name)[:2] == ("False", "Unschedulable")
                if not unschedulable or nominated(self.cluster, name) or name in self.asked_by:
                    continue
                self.asked_by[name] = None
                self.added.append(f"new-{len(self.added)}")
                await self.cluster.play([node_manifest(self.added[-1])])
            await aio.sleep(0.5)


def test_an_autoscaler_adds_nodes_for_those_who_wait_and_for_nobody_else(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        scaler, tasks = Autoscaler(cluster), TaskOwner()
        tasks.spawn(scaler.run(), name="autoscaler")
        try:
            await cluster.create_objects(low("low-a", cpu="3"))
            await running(cluster, "low-a")
            # Gated, and placed at once: neither asks for a node.
            await cluster.create_objects(
                low("gated", cpu="3", gates=["wait"]), low("low-b", cpu="1")
            )
            await running(cluster, "low-b")
            await aio.sleep(3)
            assert scaler.added == []
            assert cluster.condition_of("gated")[:2] == ("False", "SchedulingGated")
            # Preempts: has a nomination from the moment it is unschedulable, so no node is added.
            await cluster.create_objects(high("high", cpu="3"))
            await running(cluster, "high")
            assert scaler.added == []
            assert cluster.condition_of("high")[0] == "True"
            assert nominated(cluster, "high") == ""
            # Waits: nobody may go for it.
            await cluster.create_objects(low("low-c", cpu="3"))
            await running(cluster, "low-c")
            assert (scaler.added, list(scaler.asked_by)) == (["new-0"], ["low-c"])
            assert cluster.node_of("low-c") == "new-0"
            assert cluster.condition_of("low-c")[0] == "True"
        finally:
            await tasks.cancel_all()

    play(scenario, https=https, nodes=[node_manifest("n1")])


def test_condition_and_nomination_appear_in_one_write(https: bool):
    """So that an autoscaler never sees a preemptor without its nomination."""
    shown: list[tuple[str, str]] = []

    async def follow(cluster: VirtualCluster) -> None:
        async for event in cluster.client.watch(PODS, Selection()):
            pod: Any = event["object"]
            for each in pod["status"].get("conditions") or []:
                if pod["metadata"]["name"] == "high" and each["type"] == "PodScheduled":
                    told = each["status"], pod["status"].get("nominatedNodeName", "")
                    shown.extend([told] if [told] != shown[-1:] else [])

    async def scenario(cluster: VirtualCluster) -> None:
        tasks = TaskOwner()
        tasks.spawn(follow(cluster), name="follow")
        try:
            await cluster.create_objects(low("low-a", cpu="3"))
            await running(cluster, "low-a")
            await cluster.create_objects(high("high", cpu="3"))
            await running(cluster, "high")
        finally:
            await tasks.cancel_all()

    play(scenario, https=https, nodes=[node_manifest("n1")])
    assert shown == [("False", "n1"), ("True", "")]


# -- toleration ------------------------------------------------------------------------------------

_TOLERATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    postFilter:
      enabled: [{name: PreemptionToleration}]
      disabled: [{name: DefaultPreemption}]
"""


def test_a_pod_that_tolerates_preemption_is_evicted_at_once_or_after_its_time():
    domain = "preemption-toleration.scheduling.x-k8s.io"
    patient = priority("patient", 10)
    patient["metadata"]["annotations"] = {
        f"{domain}/minimum-preemptable-priority": "1000",
        f"{domain}/toleration-seconds": "60",
    }
    classes = [*CLASSES, patient, priority("middle", 500)]

    async def scenario(cluster: VirtualCluster) -> None:
        for name in ("a", "b"):
            await cluster.create_objects(
                pod_manifest(name, cpu="1900m", priorityClassName="patient")
            )
        await cluster.create_objects(high("tiny", cpu="100m"))
        await running(cluster, "a", "b", "tiny")
        began = cluster.seconds
        await cluster.create_objects(high("high", cpu="1900m"))
        await running(cluster, "high")
        await cluster.create_objects(
            pod_manifest("middle", cpu="1900m", priorityClassName="middle")
        )
        await cluster.until(lambda: cluster.condition_of("middle")[1] == "Unschedulable")
        assert cluster.seconds - began < 60  # 1000 was enough to be let in at once, 500 is not
        assert [cluster.phase_of(name) for name in ("a", "b")].count("Running") == 1
        await aio.sleep(62)
        # Nobody wakes a pod because time has gone by; whatever is freed does.
        await cluster.client.delete(PODS, "tiny", namespace="default")
        await running(cluster, "middle")
        assert cluster.stored_pod("a") is None
        assert cluster.stored_pod("b") is None

    nodes = [node_manifest("n1")]
    play(scenario, https=False, nodes=nodes, classes=classes, config=parse_config(_TOLERATION))
