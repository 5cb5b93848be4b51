"""Several replicas of one scheduler: one places pods, another takes over, no pod is bound by two.

Left out: the rules of the lease itself (``test_leader``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import LeaseLostError, NotLeadingError, TransportError
from moorage.base.rng import Streams
from moorage.client.guard import GuardedTransport, WriteGuard
from moorage.client.transport import Answer, Call, LineStream
from moorage.client.writes import Client
from moorage.config.own import LoadedConfiguration
from moorage.nodeshapes.templates import complete
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_loop import run_virtual


class Line(InProcessTransport):
    """A replica's connection: can be cut, and notes the writes that reach the server."""

    cut = False
    lag_seconds = 0.0
    slow_seconds = 0.0
    name = ""
    log: list[tuple[float, str, str]]
    clock: ManualClock

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.lost: list[str] = []
        """Paths of writes that were handed over while the line was cut."""

    async def request(self, call: Call) -> Answer:
        write = call.method != "GET" and "/leases" not in call.path
        if self.cut:
            if write:
                self.lost.append(call.path)
            raise TransportError("cut off")
        if write:
            self.log.append((self.clock.monotonic_ns() / NS_PER_SECOND, self.name, call.path))
        answer = await super().request(call)
        if write:
            await aio.sleep(self.slow_seconds)
        return answer

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with super().stream(call) as lines:
            yield Late(lines, self) if call.path.endswith("/pods") else lines


class Late:
    """The lines of a stream, each after the lag of its connection."""

    def __init__(self, inner: LineStream, line: Line) -> None:
        self._inner = inner
        self._line = line
        self.status = inner.status
        self.headers = inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._inner:
            await aio.sleep(self._line.lag_seconds)
            yield line


class World:
    """A server with a node, and replicas of the default scheduler."""

    def __init__(self, clock: ManualClock, *, delayed: bool = False) -> None:
        self.clock = clock
        self.streams = Streams(1)
        self.server = ApiServer(served_kinds(), clock=clock, streams=self.streams)
        bootstrap(self.server)
        self.client = Client(InProcessTransport(self.server), rng=self.streams.stream("test"))
        self.tasks = TaskOwner()
        self.ended: dict[str, str] = {}
        self.written: list[tuple[float, str, str]] = []
        self.running: dict[str, asyncio.Task[None]] = {}
        default = LoadedConfiguration()
        self.config = LoadedConfiguration(
            msgspec.structs.replace(default.scheduler, delay_cache_until_active=delayed)
        )

    @property
    def seconds(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_SECOND

    def start(self, name: str) -> tuple[Scheduler, Line]:
        line = Line(self.server)
        line.name, line.log, line.clock = name, self.written, self.clock
        scheduler = scheduler_over(
            line,
            self.config,
            in_tree_registry(),
            clock=self.clock,
            streams=Streams(1),
            host=name,
        )
        self.running[name] = self.tasks.spawn(self._run(name, scheduler), name=name)
        return scheduler, line

    async def _run(self, name: str, scheduler: Scheduler) -> None:
        try:
            await scheduler.run()
        except LeaseLostError:
            self.ended[name] = "lease lost"

    async def stop(self, name: str) -> None:
        self.running[name].cancel()
        await asyncio.wait([self.running[name]])

    async def create(self, *names: str) -> None:
        for name in names:
            await self.client.create(PODS, pod_manifest(name, cpu="1m"), namespace="default")

    async def until_bound(self, count: int, *, seconds: float) -> None:
        end = self.seconds + seconds
        while len(self.binders()) < count:
            assert self.seconds < end, (self.binders(), self.ended)
            await aio.sleep(0.05)

    def binders(self) -> dict[str, list[str]]:
        """Who sent a binding for each pod, in order."""
        found: dict[str, list[str]] = {}
        for _, who, path in self.written:
            if path.endswith("/binding"):
                found.setdefault(path.split("/")[-2], []).append(who)
        return found


def play(scenario: Callable[[World], Coroutine[Any, Any, None]], *, delayed: bool = False) -> None:
    clock = ManualClock()

    async def main() -> None:
        world = World(clock, delayed=delayed)
        try:
            node = complete(node_manifest("n1"))
            agents = NodeAgents(world.client, [node], clock=clock, streams=world.streams)
            world.tasks.spawn(agents.run(), name="agents")
            await agents.registered.wait()
            await scenario(world)
        finally:
            await world.tasks.cancel_all()
            world.server.close()

    run_virtual(main(), clock)


def test_the_replica_with_the_lease_binds_and_the_other_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        world.start("one")
        await aio.sleep(1)
        world.start("two")
        await world.create("a", "b", "c")
        await aio.sleep(30)
        assert world.binders() == {"a": ["one"], "b": ["one"], "c": ["one"]}
        assert {who for _, who, _ in world.written} == {"one"}

    play(scenario)


@pytest.mark.parametrize("delayed", [False, True], ids=["watching", "delayCacheUntilActive"])
def test_a_replica_that_shuts_down_hands_over_within_a_second(delayed: bool) -> None:
    async def scenario(world: World) -> None:
        world.start("one")
        await world.create("a")
        await world.until_bound(1, seconds=5)
        world.start("two")
        await aio.sleep(5)
        await world.create("b")
        await world.stop("one")
        await world.create("c")
        await world.until_bound(3, seconds=5)
        times = {path.split("/")[-2]: at for at, _, path in world.written if "/binding" in path}
        assert times["c"] - times["b"] < 0.5
        assert world.binders() == {"a": ["one"], "b": ["one"], "c": ["two"]}

    play(scenario, delayed=delayed)


def test_a_replica_that_takes_over_waits_for_the_last_bindings_to_be_watched() -> None:
    """The standby's watch of pods lags, and the node has room for one pod."""

    async def scenario(world: World) -> None:
        await world.client.create(NODES, node_manifest("full", cpu="10"))
        world.start("one")
        await aio.sleep(1)
        _, line = world.start("two")
        await aio.sleep(5)
        line.lag_seconds = 0.1
        whole = [pod_manifest(name, cpu="8") for name in ("a", "b")]
        await world.client.create(PODS, whole[0], namespace="default")
        await world.until_bound(1, seconds=5)
        await world.client.create(PODS, whole[1], namespace="default")
        await world.stop("one")
        await aio.sleep(5)
        assert world.binders() == {"a": ["one"]}

    play(scenario)


def test_bindings_on_their_way_are_answered_before_the_lease_is_released() -> None:
    async def scenario(world: World) -> None:
        scheduler, line = world.start("one")
        await aio.sleep(1)
        line.slow_seconds = 0.2
        await world.create("a")
        while not scheduler.bindings:
            await aio.sleep(0.001)
        await world.stop("one")
        assert world.binders() == {"a": ["one"]}
        assert scheduler.facts.bound == 1

    play(scenario)


def test_a_binding_without_an_answer_does_not_hold_up_the_end() -> None:
    async def scenario(world: World) -> None:
        scheduler, line = world.start("one")
        await aio.sleep(1)
        line.slow_seconds = 3600.0
        await world.create("a")
        while not scheduler.bindings:
            await aio.sleep(0.001)
        before = world.seconds
        await world.stop("one")
        assert 0.5 <= world.seconds - before <= 1.6

    play(scenario)


def test_a_replica_that_is_cut_off_ends_and_the_other_takes_over_after_the_lease() -> None:
    async def scenario(world: World) -> None:
        _, line = world.start("one")
        await world.create("a")
        await world.until_bound(1, seconds=5)
        world.start("two")
        await aio.sleep(10)
        line.cut = True
        cut = world.seconds
        await world.create("b")
        await world.until_bound(2, seconds=25)
        assert world.ended == {"one": "lease lost"}
        # The lease lasts 15 s from when the other saw it change last, and it changes every 2 s.
        assert 13 <= world.seconds - cut <= 15.5
        assert world.binders() == {"a": ["one"], "b": ["two"]}

    play(scenario)


def test_a_write_that_comes_after_the_lease_is_over_is_not_sent() -> None:
    """The process is stopped in the middle of its work for longer than the lease lasts.

    Its line is cut, so that it cannot renew the lease; a binding that it sends would be lost.
    """

    async def scenario(world: World) -> None:
        scheduler, line = world.start("one")
        await world.create("a")
        await world.until_bound(1, seconds=5)
        await world.create("b")
        # Stopped for a minute: no task of the process runs, then all tasks go on where they were.
        world.clock.advance(60)
        assert scheduler.elector is not None
        assert not scheduler.elector.leading
        line.cut = True
        await aio.sleep(0.5)
        assert scheduler.facts.decisions == 2  # a binding of b is due
        assert line.lost == []

    play(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_no_pod_is_bound_by_two_leaders_whatever_fails(seed: int) -> None:
    async def scenario(world: World) -> None:
        rng = Streams(seed).stream("faults")
        lines: dict[str, Line] = {}
        for number in range(80):
            alive = [name for name in world.running if name not in world.ended]
            if len(alive) < 2:
                name = f"r{len(world.running)}"
                lines[name] = world.start(name)[1]
                alive.append(name)
            victim = rng.choice(alive)
            lines[victim].cut = rng.random() < 0.5
            if rng.random() < 0.05:
                await world.stop(victim)
                world.ended.setdefault(victim, "stopped")
            await world.create(f"p{number}")
            await aio.sleep(rng.random() * 5)
        for line in lines.values():
            line.cut = False
        world.start("last")
        await world.until_bound(80, seconds=60)
        # A binding may be repeated by the one that sent it; never by another.
        assert {pod: who for pod, who in world.binders().items() if len(set(who)) > 1} == {}
        assert len({who for _, who, _ in world.written}) > 1

    play(scenario)


class Silent:
    """Would carry anything; says what it was asked to carry."""

    def __init__(self) -> None:
        self.carried: list[str] = []

    async def request(self, call: Call) -> Answer:
        self.carried.append(call.method)
        return Answer(200, {}, b"{}")

    def stream(self, call: Call) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("method", "carried"),
    [
        pytest.param("GET", True, id="reading is always allowed"),
        pytest.param("POST", False, id="a binding is not sent"),
        pytest.param("PATCH", False, id="a status is not sent"),
        pytest.param("PUT", False, id="a replacement is not sent"),
        pytest.param("DELETE", False, id="an eviction is not sent"),
    ],
)
async def test_only_reads_are_sent_without_the_lease(method: str, carried: bool) -> None:
    def refuse() -> None:
        raise NotLeadingError("no")

    inner = Silent()
    transport = GuardedTransport(inner, WriteGuard(refuse))
    with contextlib.suppress(NotLeadingError):
        await transport.request(Call(method, "/x"))
    assert inner.carried == [method] * carried
