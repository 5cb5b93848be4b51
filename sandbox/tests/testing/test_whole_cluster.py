"""Server, client, agents and scheduler together, in virtual time; every wait is measured in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.api.meta import ObjectReference
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

NODES_3 = [
    node_manifest("n1", labels={"disk": "ssd"}),
    node_manifest("n2"),
    node_manifest("n3", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
]
# Far below the five minutes after which the scheduler looks at every pod again by itself, and the
# half minute between two looks for such pods: what happens within it was woken by an event.
SOON = 15.0

Scenario = Callable[[VirtualCluster], Awaitable[None]]


def play(
    scenario: Scenario,
    *,
    nodes: Sequence[Manifest] = NODES_3,
    around: Callable[[Transport], Transport] | None = None,
) -> VirtualCluster:
    """Run a scenario in a new cluster."""
    clock = ManualClock()
    cluster: list[VirtualCluster] = []

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, around=around) as made:
            cluster.append(made)
            await scenario(made)

    run_virtual(main(), clock)
    return cluster[0]


class Faults:
    """A transport that answers some calls itself: the first binds get the answers scripted."""

    def __init__(
        self, inner: Transport, script: list[Answer | TransportError | str | float]
    ) -> None:
        self.inner = inner
        self.script = script
        self.binds = 0

    async def request(self, call: Call) -> Answer:
        if call.path.endswith("/binding"):
            self.binds += 1
            if self.script:
                fault = self.script.pop(0)
                if fault == "lost":
                    # It happens, but nobody hears of it.
                    await self.inner.request(call)
                    raise TransportError("no answer")
                if isinstance(fault, TransportError):
                    raise fault
                if isinstance(fault, float):
                    await aio.sleep(fault)
                if isinstance(fault, Answer):
                    return fault
        return await self.inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


def test_pods_of_every_kind_find_their_places_and_run() -> None:
    pods = [
        pod_manifest("plain", cpu="500m", memory="64Mi"),
        pod_manifest("careless"),
        pod_manifest("selective", node_selector={"disk": "ssd"}),
        pod_manifest("tolerant", node_selector={"kubernetes.io/hostname": "n3"},
                     tolerations=[{"key": "gpu", "operator": "Exists"}]),
        pod_manifest("port-1", host_ports=[80]),
        pod_manifest("port-2", host_ports=[80]),
        pod_manifest("large", cpu="3"),
        pod_manifest("critical", priorityClassName="system-cluster-critical", cpu="100m"),
        pod_manifest("short", restartPolicy="Never",
                     annotations={"moorage.dev/run-seconds": "5"}),
        pod_manifest("impossible", cpu="64"),
    ]  # fmt: skip

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*pods)
        names = [each["metadata"]["name"] for each in pods[:-2]]
        await cluster.until(lambda: all(cluster.phase_of(name) == "Running" for name in names))
        await cluster.until(lambda: cluster.phase_of("short") == "Succeeded")
        assert cluster.seconds < SOON
        assert cluster.node_of("selective") == "n1"
        assert cluster.node_of("tolerant") == "n3"
        assert {cluster.node_of("port-1"), cluster.node_of("port-2")} == {"n1", "n2"}
        untolerant = [name for name in names if name != "tolerant"]
        assert "n3" not in {cluster.node_of(name) for name in untolerant}
        assert cluster.node_of("impossible") == ""
        status, reason, message = cluster.condition_of("impossible")
        text = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith(text)
        events = await cluster.events("impossible")
        # Perhaps more than one: a pod that ends makes room, and every pod is tried again.
        assert {(e["type"], e["reason"], e["message"]) for e in events} == {
            ("Warning", "FailedScheduling", message)
        }
        placed = await cluster.events("plain", reason="Scheduled")
        where = cluster.node_of("plain")
        assert [e["message"] for e in placed] == [f"Successfully assigned default/plain to {where}"]
        assert cluster.condition_of("plain")[0] == "True"

    play(scenario)


def test_a_new_node_that_fits_wakes_the_pod_that_waits_for_it() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("big", cpu="64"))
        await cluster.until(lambda: cluster.condition_of("big")[0] == "False")
        # Long enough for backoff to be over, so that only an event can bring the pod back.
        await cluster.until(lambda: cluster.seconds > 20, seconds=40)
        before = cluster.scheduler.facts.decisions
        await cluster.play([node_manifest("n4", cpu="128")])
        woken = cluster.seconds
        await cluster.until(lambda: cluster.phase_of("big") == "Running")
        assert cluster.node_of("big") == "n4"
        assert cluster.seconds - woken < 3
        # One decision: the node that came is not tried twice, and nothing polled meanwhile.
        assert cluster.scheduler.facts.decisions - before == 1

    play(scenario)


def test_a_node_that_does_not_fit_wakes_nobody() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("big", cpu="64"))
        await cluster.until(lambda: cluster.condition_of("big")[0] == "False")
        before = cluster.scheduler.facts.decisions
        await cluster.play([node_manifest("n4", cpu="2")])
        start = cluster.seconds
        await cluster.until(lambda: cluster.seconds - start > SOON)
        assert cluster.scheduler.facts.decisions == before

    # Without the tainted node, whose rejection any node without taints could cure.
    play(scenario, nodes=NODES_3[:2])


def test_room_that_a_deleted_pod_leaves_is_taken_by_one_that_waits() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("first", cpu="3"))
        await cluster.until(lambda: cluster.phase_of("first") == "Running")
        await cluster.create_objects(pod_manifest("second", cpu="3"))
        await cluster.until(lambda: cluster.condition_of("second")[0] == "False")
        await cluster.client.delete(PODS, "first", namespace="default")
        deleted = cluster.seconds
        await cluster.until(lambda: cluster.phase_of("second") == "Running")
        assert cluster.node_of("second") == "n1"
        assert cluster.stored_pod("first") is None
        assert cluster.seconds - deleted < SOON

    play(scenario, nodes=NODES_3[:1])


def test_a_taint_taken_away_and_a_gate_opened_let_pods_go_on() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            pod_manifest("waiting"), pod_manifest("gated", gates=["example.com/g"])
        )
        await cluster.until(lambda: cluster.condition_of("waiting")[0] == "False")
        assert cluster.condition_of("gated")[1] == "SchedulingGated"
        await cluster.patch_object(NODES, "n3", {"spec": {"taints": None}})
        await cluster.until(lambda: cluster.node_of("waiting") == "n3", seconds=SOON)
        assert cluster.node_of("gated") == ""
        opened = {"spec": {"schedulingGates": None}}
        await cluster.patch_object(PODS, "gated", opened, namespace="default")
        await cluster.until(lambda: cluster.node_of("gated") == "n3", seconds=SOON)

    play(scenario, nodes=NODES_3[2:])


def test_a_pod_deleted_while_it_is_being_bound_leaves_nothing_behind() -> None:
    faults: list[Faults] = []

    def around(inner: Transport) -> Transport:
        faults.append(Faults(inner, [0.5]))
        return faults[0]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("brief", cpu="3"))
        await cluster.until(lambda: faults[0].binds == 1)
        # Its binding is on the way for half a second.
        await cluster.client.delete_pod(_reference("brief"), grace_seconds=0)
        assert cluster.stored_pod("brief") is None
        await cluster.until(lambda: cluster.scheduler.facts.bind_failures == 1)
        # Its room is free again: a pod that needs all of it fits.
        await cluster.create_objects(pod_manifest("next", cpu="3500m"))
        await cluster.until(lambda: cluster.phase_of("next") == "Running", seconds=SOON)
        cache = cluster.scheduler.core.cache
        cache.validate()
        assert (cache.counts().pods, cache.counts().assumed_pods) == (1, 0)
        assert cluster.scheduler.facts.bound == 1

    play(scenario, nodes=NODES_3[:1], around=around)


def test_pods_of_a_deleted_node_stay_and_new_ones_go_elsewhere() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            pod_manifest("old", node_selector={"kubernetes.io/hostname": "n1"})
        )
        await cluster.until(lambda: cluster.phase_of("old") == "Running")
        await cluster.delete_node("n1")
        await cluster.create_objects(*[pod_manifest(f"new-{i}") for i in range(4)])
        names = [f"new-{i}" for i in range(4)]
        await cluster.until(lambda: all(cluster.node_of(name) for name in names), seconds=SOON)
        assert {cluster.node_of(name) for name in names} == {"n2"}
        assert cluster.node_of("old") == "n1"

    play(scenario)


def test_a_new_image_is_reported_as_taken_in_by_the_node() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        changed = {"containers": [{"name": "main", "image": "registry.example/app:2"}]}
        await cluster.patch_object(PODS, "p", {"spec": changed}, namespace="default")

        def observed() -> tuple[str, set[int]]:
            status = (cluster.stored_pod("p") or {})["status"]
            conditions = status["conditions"]
            seen = {each["observedGeneration"] for each in conditions if each["type"] == "Ready"}
            return status["containerStatuses"][0]["image"], seen

        await cluster.until(lambda: observed() == ("registry.example/app:2", {2}), seconds=SOON)
        assert cluster.phase_of("p") == "Running"

    play(scenario)


def _status(code: int, reason: str, message: str) -> Answer:
    body = f'{{"kind":"Status","code":{code},"reason":"{reason}","message":"{message}"}}'
    return Answer(code, {}, body.encode())


@pytest.mark.parametrize(
    ("fault", "binds"),
    [
        pytest.param(_status(409, "Conflict", "try again"), 2, id="a conflict"),
        pytest.param(_status(500, "InternalError", "disk full"), 2, id="an internal error"),
        pytest.param(TransportError("no answer"), 2, id="a timeout that never reached the server"),
        pytest.param("lost", 1, id="a lost answer: the pod is looked at, not bound twice"),
    ],
)
def test_a_bind_that_fails_is_tried_again(fault: Any, binds: int) -> None:
    faults: list[Faults] = []

    def around(inner: Transport) -> Transport:
        faults.append(Faults(inner, [fault]))
        return faults[0]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p", cpu="1"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running", seconds=SOON)
        assert faults[0].binds == binds

    play(scenario, around=around)


def test_a_pod_that_cannot_be_read_does_not_stop_the_others() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        broken = pod_manifest("broken")
        record = {
            **broken,
            "metadata": {**broken["metadata"], "uid": "u-broken"},
            "spec": {**broken["spec"], "schedulerName": "default-scheduler", "priority": "high"},
        }
        # A server would not let this in; it got there by an older version, or a bug.
        cluster.server.store.put("pods", record, {})
        await cluster.create_objects(pod_manifest("fine"))
        await cluster.until(lambda: cluster.phase_of("fine") == "Running", seconds=SOON)
        assert cluster.node_of("broken") == ""

    play(scenario)


def test_the_same_seed_gives_the_same_placements_at_the_same_moments() -> None:
    seen = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*[pod_manifest(f"p{i}", cpu="100m") for i in range(20)])
        await cluster.until(lambda: all(cluster.placements().values()))
        seen.append((cluster.seconds, cluster.placements()))

    play(scenario)
    play(scenario)
    assert seen[0] == seen[1]


def _reference(name: str) -> ObjectReference:
    return ObjectReference(namespace="default", name=name)
