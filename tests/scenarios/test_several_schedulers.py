"""Several schedulers at once on one API server, and somebody who binds without asking any of them.

Two moorage schedulers under names of their own, node agents that refuse what does not fit, and a
foreign binder, in virtual time. The server is the arbiter; who lost finds another place. Replicas
of one scheduler, which take turns, are in ``scheduler/tests/service/test_replicas.py``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from moorage.api.codec import decode
from moorage.api.meta import ObjectReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.client.writes import Client
from moorage.config.load import parse_config
from moorage.nodeshapes.templates import complete
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage.state.compare import compare
from moorage_lab.bench.soak.load import SoakLoad
from moorage_lab.bench.soak.plan import SchedulerEnd, SoakPlan, SoakReport, soak_config
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_loop import run_virtual

ONE, TWO = "soak-one", "soak-two"


class Line(InProcessTransport):
    """A connection to the server that notes who sent which binding, and what was answered."""

    def __init__(
        self, server: ApiServer, name: str, log: list[tuple[str, str, int]], seconds: float = 0.001
    ) -> None:
        super().__init__(server, latency_seconds=seconds)
        self.name = name
        self.log = log

    async def request(self, call: Call) -> Answer:
        answer = await super().request(call)
        if call.path.endswith("/binding"):
            uid = msgspec.json.decode(call.whole_body)["metadata"]["uid"]
            self.log.append((uid, self.name, answer.status))
        return answer


class World:
    """A server, two schedulers, and a connection for everybody else."""

    def __init__(self, clock: ManualClock, seed: int = 1) -> None:
        self.clock = clock
        self.seed = seed
        self.streams = Streams(seed)
        self.server = ApiServer(served_kinds(), clock=clock, streams=self.streams)
        bootstrap(self.server)
        self.bindings: list[tuple[str, str, int]] = []
        foreign = Line(self.server, "foreign", self.bindings)
        self.client = Client(foreign, rng=self.streams.stream("test"))
        self.schedulers: dict[str, Scheduler] = {}
        self.failures: list[BaseException] = []
        self.tasks = TaskOwner(lambda _name, error: self.failures.append(error))

    async def start(self, *names: str, latency_seconds: float = 0.001) -> None:
        for number, name in enumerate(names):
            scheduler = scheduler_over(
                Line(self.server, name, self.bindings, latency_seconds),
                parse_config(soak_config(name)),
                in_tree_registry(),
                clock=self.clock,
                streams=Streams(self.seed + number),
                host=name,
            )
            self.schedulers[name] = scheduler
            self.tasks.spawn(scheduler.run(), name=name)
            await scheduler.ready.wait()

    async def play(self, *nodes: Manifest) -> None:
        templates = [complete(node) for node in nodes]
        agents = NodeAgents(self.client, templates, clock=self.clock, streams=self.streams)
        self.tasks.spawn(agents.run(), name="agents")
        await agents.registered.wait()

    async def create(self, name: str, scheduler: str, *, cpu: str) -> ObjectReference:
        manifest = pod_manifest(name, cpu=cpu, schedulerName=scheduler)
        made: Any = await self.client.create(PODS, manifest, namespace="default")
        return ObjectReference(namespace="default", name=name, uid=made["metadata"]["uid"])

    def objects(self, plural: str, kind: type[Any]) -> list[Any]:
        return [
            decode(kind, msgspec.json.encode(each.decode()))
            for each in self.server.store.shelf(plural).records("")
        ]

    def pods(self) -> dict[str, Pod]:
        return {pod.name: pod for pod in self.objects("pods", Pod)}

    def agrees(self, name: str) -> bool:
        """Whether a scheduler believes what the server has: not what its watch told it."""
        core = self.schedulers[name].core
        core.cache.validate()
        core.queue.validate()
        return compare(
            core.cache,
            core.queue,
            self.objects("pods", Pod),
            self.objects("nodes", Node),
            responsible=lambda pod: pod.spec.scheduler_name == name,
        ).empty

    def conflicts(self, name: str) -> int:
        return sum(who == name and code == 409 for _, who, code in self.bindings)

    def bound_more_than_once(self) -> list[str]:
        accepted = Counter(uid for uid, _, code in self.bindings if code == 201)
        return [uid for uid, times in accepted.items() if times > 1]


def play(scenario: Callable[[World], Coroutine[Any, Any, None]], *, seed: int = 1) -> World:
    """Run a scenario; whatever happened in it, belief and server agree at its end."""
    clock = ManualClock()
    made: list[World] = []

    async def main() -> None:
        world = World(clock, seed)
        made.append(world)
        try:
            await scenario(world)
            assert world.failures == []
            assert world.bound_more_than_once() == []
            assert [name for name in world.schedulers if not world.agrees(name)] == []
        finally:
            await world.tasks.cancel_all()
            world.server.close()

    run_virtual(main(), clock)
    return made[0]


def test_each_places_its_own_pods_and_counts_those_of_the_other() -> None:
    async def scenario(world: World) -> None:
        await world.play(node_manifest("n1", cpu="4"), node_manifest("n2", cpu="4"))
        await world.start(ONE, TWO)
        # Four fill a node: placed without looking at the other's, they would not all fit.
        for number in range(8):
            await world.create(f"p{number}", (ONE, TWO)[number % 2], cpu="1")
            await aio.sleep(2)
        pods = world.pods().values()
        assert [pod.status.phase for pod in pods] == ["Running"] * 8
        assert {who for _, who, _ in world.bindings} == {ONE, TWO}

    play(scenario)


def test_two_that_want_the_same_room_are_told_apart_by_the_kubelet() -> None:
    """Neither knows of the other's choice; who comes second is refused, and its successor fits."""

    async def scenario(world: World) -> None:
        await world.play(node_manifest("n1", cpu="4"))
        await world.start(ONE, TWO)
        await asyncio.gather(world.create("a", ONE, cpu="3"), world.create("b", TWO, cpu="3"))
        await aio.sleep(5)
        found = {pod.status.phase: pod for pod in world.pods().values()}
        assert sorted(found) == ["Failed", "Running"]
        loser = found["Failed"]
        assert (loser.status.reason, loser.spec.node_name) == ("OutOfcpu", "n1")
        # What failed takes no room: the one that replaces it waits for room, and gets it.
        await world.create("c", loser.spec.scheduler_name, cpu="3")
        await aio.sleep(5)
        assert world.pods()["c"].status.conditions[0].reason == "Unschedulable"
        await world.play(node_manifest("n2", cpu="4"))
        await aio.sleep(5)
        assert world.pods()["c"].spec.node_name == "n2"

    play(scenario)


def test_a_pod_that_somebody_else_bound_meanwhile_is_left_to_him() -> None:
    async def scenario(world: World) -> None:
        await world.play(node_manifest("n1", cpu="4"), node_manifest("n2", cpu="2"))
        await world.start(ONE, TWO, latency_seconds=0.02)
        pod = await world.create("a", ONE, cpu="1500m")
        await world.client.bind(pod, node_name="n2")
        await aio.sleep(30)
        assert world.pods()["a"].spec.node_name == "n2"
        assert [(who, code) for _, who, code in world.bindings] == [("foreign", 201), (ONE, 409)]
        # The room it was believed to take on n1 is free for both, that on n2 is taken.
        for name, scheduler in (("b", ONE), ("c", TWO)):
            await world.create(name, scheduler, cpu="2")
            await aio.sleep(2)
        assert {pod.spec.node_name for name, pod in world.pods().items() if name != "a"} == {"n1"}

    play(scenario)


def test_room_taken_by_a_foreign_binding_is_seen_by_both() -> None:
    async def scenario(world: World) -> None:
        await world.play(node_manifest("n1", cpu="4"))
        await world.start(ONE, TWO)
        foreign = await world.create("f", "nobody", cpu="3")
        await world.client.bind(foreign, node_name="n1")
        await aio.sleep(2)
        for name, scheduler in (("a", ONE), ("b", TWO)):
            await world.create(name, scheduler, cpu="2")
        await aio.sleep(5)
        reasons = {name: pod.status.conditions[0].reason for name, pod in world.pods().items()}
        assert (reasons["a"], reasons["b"]) == ("Unschedulable", "Unschedulable")
        await world.client.delete_pod(foreign, grace_seconds=0)
        await aio.sleep(15)
        placed = {name: pod.spec.node_name for name, pod in world.pods().items()}
        assert placed == {"a": "n1", "b": "n1"}

    play(scenario)


SMALL = SoakPlan(
    nodes=14,
    pods=130,
    pods_per_second=20.0,
    stolen_share=0.25,
    groups=2,
    stall_seconds=400.0,
)


@pytest.mark.parametrize("seed", range(2))
def test_everything_at_once_and_every_pod_runs_or_was_told_why(seed: int) -> None:
    """The bounded form of ``make soak``."""
    reports: list[SoakReport] = []

    async def scenario(world: World) -> None:
        load = SoakLoad(world.client, SMALL, clock=world.clock, streams=Streams(seed))
        await load.start()
        await world.start(*SMALL.schedulers, latency_seconds=0.003)
        report = await load.run()
        await load.stop()
        ends = [
            SchedulerEnd(name=name, conflicts=world.conflicts(name), agrees=world.agrees(name))
            for name in world.schedulers
        ]
        reports.append(msgspec.structs.replace(report, schedulers=tuple(ends)))

    play(scenario, seed=seed)
    (report,) = reports
    print("\n".join(report.as_lines()))  # noqa: T201 - told by pytest -s, and when it fails
    assert report.faults == []
    assert (report.pods, report.nodes) == (SMALL.pods, SMALL.nodes)
    impossible = sum(SMALL.is_impossible(slot) for slot in range(SMALL.pods))
    assert (report.running, report.explained) == (SMALL.pods - impossible, impossible)
    # It was no walk in the park: all that can go wrong did.
    assert report.refused["OutOfcpu"] > 0
    assert report.evacuated > 0
    assert report.replaced == sum(report.refused.values()) + report.evacuated
    assert all(end.conflicts > 0 for end in report.schedulers)
