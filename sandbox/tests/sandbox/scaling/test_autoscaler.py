"""The autoscaler over a whole cluster in virtual time: server, agents, scheduler, no network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, by_kind
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.config.own import LoadedConfiguration
from moorage.nodeshapes.annotations import asks_for_agent
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.sandbox.scaling.autoscaler import Autoscaler, Rules
from moorage_sandbox.sandbox.scaling.groups import Bounds, groups_of
from moorage_sandbox.sandbox.scaling.growth import Growth, GrowthPlan
from moorage_sandbox.testing.builders import pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

FEW = Bounds(1, 4)
Scene = Callable[["Looks"], Awaitable[None]]


class Looks:
    """A cluster with an autoscaler, and the looks of a test at it."""

    def __init__(self, cluster: VirtualCluster, clock: ManualClock) -> None:
        self.cluster, self.clock, self.client = cluster, clock, cluster.client

    async def nodes(self) -> list[str]:
        found: Any = (await self.client.list(NODES))["items"]
        return sorted(each["metadata"]["name"] for each in found)

    async def node(self, name: str) -> Any:
        return await self.client.get(NODES, name)

    async def events(self, reason: str) -> list[tuple[str, str]]:
        events = by_kind("Event", "events.k8s.io/v1")
        assert events
        found: Any = (await self.client.list(events))["items"]
        return sorted(
            (each["regarding"]["name"], each["note"]) for each in found if each["reason"] == reason
        )

    async def create(self, name: str, cpu: str = "3", **fields: Any) -> None:
        await self.cluster.create_objects(pod_manifest(name, cpu=cpu, **fields))


@pytest.fixture(autouse=True)
def no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test whose cluster logs an error."""
    yield
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


def play(scene: Scene, *, bounds: Bounds = FEW, shapes: tuple[str, ...] = ("cpu=4",)) -> None:
    """Run a scene over a cluster that starts without nodes."""
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock) as cluster:
            streams, failures = Streams(2), list[BaseException]()
            tasks = aio.TaskOwner(lambda _name, error: failures.append(error))
            client = Client(InProcessTransport(cluster.server), rng=streams.stream("client"))
            rules = Rules(
                bounds=bounds,
                groups=groups_of(shapes),
                config=LoadedConfiguration(),
                registry=in_tree_registry(),
                idle_seconds=60,
            )
            agents = NodeAgents(client, [], clock=clock, streams=streams, adopt=asks_for_agent)
            tasks.spawn(agents.run(), name="agents")
            scaler = Autoscaler(client, rules, clock=clock, streams=streams)
            tasks.spawn(scaler.run(), name="autoscaler")
            try:
                await scene(Looks(cluster, clock))
                assert failures == []
            finally:
                await tasks.cancel_all()

    run_virtual(main(), clock)


def test_nodes_join_for_pending_pods_and_leave_when_empty() -> None:
    async def scene(looks: Looks) -> None:
        await aio.sleep(5)
        assert await looks.nodes() == ["node-01"]
        for name in ("a", "b", "c"):
            await looks.create(name)
        await aio.sleep(20)
        assert await looks.nodes() == ["node-01", "node-02", "node-03"]
        told = "pod triggered scale-up: [{cpu=4/b 0->1 (max: 4)} {cpu=4/c 0->1 (max: 4)}]"
        found = await looks.events("TriggeredScaleUp")
        assert [text for _, text in found] == [told, told]
        for name in ("a", "b", "c"):
            await looks.client.delete(PODS, name, namespace="default", grace_seconds=0)
        await aio.sleep(50)
        assert len(await looks.nodes()) == 3
        await aio.sleep(30)
        assert await looks.nodes() == ["node-01"]
        removed = "node removed by cluster autoscaler"
        found = await looks.events("ScaleDown")
        assert found == [("node-02", removed), ("node-03", removed)]

    play(scene)


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        pytest.param({"cpu": "5"}, "3 Insufficient cpu", id="too large for every shape"),
        pytest.param(
            {"node_selector": {"disk": "ssd"}},
            "3 node(s) didn't match Pod's node affinity/selector",
            id="a label that no shape has",
        ),
        pytest.param({}, "3 max node group size reached", id="the cluster is at its greatest size"),
    ],
)
def test_a_pod_that_no_new_node_helps_is_told_why(fields: dict[str, Any], reasons: str) -> None:
    async def scene(looks: Looks) -> None:
        await looks.create("fills", cpu="4")
        await aio.sleep(10)
        await looks.create("waits", **fields)
        await aio.sleep(30)
        assert len(await looks.nodes()) == 1
        told = [("waits", f"pod didn't trigger scale-up: {reasons}")]
        assert await looks.events("NotTriggerScaleUp") == told

    play(scene, bounds=Bounds(1, 1))


def test_the_smallest_shape_that_fits_is_taken() -> None:
    async def scene(looks: Looks) -> None:
        await looks.create("small", cpu="3")
        await looks.create("large", cpu="10")
        await aio.sleep(20)
        cpus = [
            (await looks.node(name))["status"]["capacity"]["cpu"] for name in await looks.nodes()
        ]
        assert sorted(cpus) == ["16", "4"]

    play(scene, bounds=Bounds(0, 4), shapes=("g4dn.xlarge", "cpu=16", "cpu=4"))


def test_a_node_joins_in_the_zone_that_a_pod_asks_for() -> None:
    async def scene(looks: Looks) -> None:
        zone = "topology.kubernetes.io/zone"
        await looks.create("there", node_selector={zone: "c"})
        await aio.sleep(20)
        (name,) = await looks.nodes()
        assert (await looks.node(name))["metadata"]["labels"][zone] == "c"

    play(scene, bounds=Bounds(0, 4))


def test_a_node_that_may_not_be_removed_stays() -> None:
    async def scene(looks: Looks) -> None:
        await aio.sleep(5)
        keep = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
        body = patch_body({"metadata": {"annotations": keep}})
        await looks.client.patch(NODES, "node-01", body, content_type=MERGE_PATCH)
        await looks.create("a")
        await looks.create("b")
        await aio.sleep(10)
        for name in ("a", "b"):
            await looks.client.delete(PODS, name, namespace="default", grace_seconds=0)
        await aio.sleep(200)
        assert await looks.nodes() == ["node-01"]

    play(scene)


def test_daemons_take_room_on_new_nodes_and_are_no_load() -> None:
    async def scene(looks: Looks) -> None:
        daemons = by_kind("DaemonSet", "apps/v1")
        assert daemons
        labels = {"matchLabels": {"app": "d"}}
        container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "2"}}}
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}
        body: Any = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "d"},
            "spec": {"selector": labels, "template": template},
        }
        await looks.client.create(daemons, body, namespace="default")
        await looks.create("waits", cpu="3")
        await aio.sleep(20)
        assert await looks.nodes() == []
        told = [("waits", "pod didn't trigger scale-up: 3 Insufficient cpu")]
        assert await looks.events("NotTriggerScaleUp") == told

    play(scene, bounds=Bounds(0, 4))


def test_a_plan_is_made_again_only_when_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[int] = []

    class Counted(GrowthPlan):
        def grow(self, pending: Sequence[Pod]) -> Growth:
            plans.append(len(pending))
            return super().grow(pending)

    monkeypatch.setattr("moorage_sandbox.sandbox.scaling.autoscaler.GrowthPlan", Counted)

    async def scene(looks: Looks) -> None:
        await looks.create("large", cpu="5")
        await aio.sleep(20)
        before = len(plans)
        assert 0 < before < 10
        await aio.sleep(700)  # every node sends two heartbeats
        assert plans[before:] == []
        await looks.create("larger", cpu="6")
        await aio.sleep(20)
        assert plans[-1] == 2
        before = len(plans)
        await looks.client.delete(PODS, "larger", namespace="default", grace_seconds=0)
        await aio.sleep(20)
        assert plans[before:] == [1]
        before = len(plans)
        body = patch_body({"metadata": {"labels": {"disk": "ssd"}}})
        await looks.client.patch(NODES, "node-01", body, content_type=MERGE_PATCH)
        await aio.sleep(20)
        assert plans[before:] == [1]

    play(scene)


def test_a_tainted_node_that_is_to_stay_loses_its_taint() -> None:
    async def scene(looks: Looks) -> None:
        await aio.sleep(5)
        for name in ("a", "b"):
            await looks.create(name)
        await aio.sleep(20)
        assert await looks.nodes() == ["node-01", "node-02"]
        await looks.client.delete(PODS, "b", namespace="default", grace_seconds=0)
        await aio.sleep(62)
        tainted = [(await looks.node(name))["spec"].get("taints") for name in await looks.nodes()]
        assert [each[0]["key"] for each in tainted if each] == ["ToBeDeletedByClusterAutoscaler"]
        keep = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
        body = patch_body({"metadata": {"annotations": keep}})
        await looks.client.patch(NODES, "node-02", body, content_type=MERGE_PATCH)
        await aio.sleep(20)
        assert "taints" not in (await looks.node("node-02"))["spec"]

    play(scene)


def test_nodes_of_the_least_size_come_without_pods_and_over_the_zones() -> None:
    async def scene(looks: Looks) -> None:
        await aio.sleep(10)
        zone = "topology.kubernetes.io/zone"
        found = [
            (await looks.node(name))["metadata"]["labels"][zone] for name in await looks.nodes()
        ]
        assert found == ["a", "b", "c", "a"]
        await aio.sleep(200)
        assert len(await looks.nodes()) == 4

    play(scene, bounds=Bounds(4, 6))
