"""The scheduler as a whole: when it starts, how it ends, and what it must never do to a pod.

Placement itself is covered elsewhere; preemption in `test_preemption`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport
from scheduler.tests.service.build import pod


def scheduler_on(transport: Any) -> Scheduler:
    return scheduler_over(
        transport,
        LoadedConfiguration(),
        in_tree_registry(),
        clock=ManualClock(),
        streams=Streams(1),
        host="here",
    )


class Delayed:
    """A transport on which some calls take their time; notes what was written, and when."""

    def __init__(self, inner: Transport, clock: ManualClock, **seconds_by_part: float) -> None:
        self.inner = inner
        self.clock = clock
        self.seconds_by_part = seconds_by_part
        self.written: list[tuple[str, float]] = []

    async def request(self, call: Call) -> Answer:
        await self._delay(call)
        reply = await self.inner.request(call)
        if call.method != "GET" and not {"events", "leases"} & set(call.path.split("/")):
            self.written.append(
                (f"{call.method} {call.path.rsplit('/', 1)[1]}", self.clock.monotonic_ns() / 1e9)
            )
        return reply

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        await self._delay(call)
        async with self.inner.stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()

    async def _delay(self, call: Call) -> None:
        for part, seconds in self.seconds_by_part.items():
            if call.path.endswith(f"/{part}"):
                await aio.sleep(seconds)


def test_nothing_is_scheduled_before_every_first_list_is_in() -> None:
    clock = ManualClock()
    made: list[Delayed] = []

    def around(inner: Transport) -> Transport:
        made.append(Delayed(inner, clock, storageclasses=3.0))
        return made[0]

    async def main() -> None:
        cluster = VirtualCluster(clock, nodes=[node_manifest("n1")], around=around)
        await cluster.create_objects(pod_manifest("p"))
        async with cluster:
            began = cluster.seconds
            await cluster.until(lambda: cluster.node_of("p") == "n1")
        ((what, at),) = [each for each in made[0].written if each[0] == "POST binding"]
        assert what == "POST binding"
        assert at >= began >= 3.0

    run_virtual(main(), clock)


def test_a_late_status_of_an_earlier_attempt_does_not_reach_a_bound_pod() -> None:
    clock = ManualClock()
    made: list[Delayed] = []

    def around(inner: Transport) -> Transport:
        made.append(Delayed(inner, clock, status=5.0))
        return made[0]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")], around=around) as cluster:
            await cluster.create_objects(pod_manifest("p", cpu="8"))
            await aio.sleep(2)  # refused; the status is on its way
            await cluster.play([node_manifest("n2", cpu="16")])
            await cluster.until(lambda: cluster.phase_of("p") == "Running")
            await aio.sleep(10)
            assert [what for what, _ in made[0].written] == ["PATCH status", "POST binding"]
            assert cluster.condition_of("p")[0] == "True"

    run_virtual(main(), clock)


def test_compare_finds_differences_between_cache_and_api(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            await cluster.create_objects(pod_manifest("p"))
            await cluster.until(lambda: cluster.phase_of("p") == "Running")
            await aio.sleep(1)
            assert cluster.scheduler.compare().empty
            assert "cache and API agree" in caplog.text
            cluster.scheduler.core.cache.add_pod(pod("stranger", node_name="n1"))
            assert not cluster.scheduler.compare().empty
            assert "cache and API differ" in caplog.text

    run_virtual(main(), clock)


async def test_a_task_that_fails_ends_the_run_with_its_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = scheduler_on(ScriptedTransport(RuntimeError("oops")))
    with pytest.raises(RuntimeError, match="oops"):
        await scheduler.run()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not scheduler.ready.is_set()
    assert "failed" in caplog.text


async def test_cancelling_ends_every_task() -> None:
    transport = ScriptedTransport()
    running = aio.TaskOwner()
    run = running.spawn(scheduler_on(transport).run(), name="scheduler")
    await transport.exhausted.wait()
    await running.cancel_all()
    assert run.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_the_state_does_not_grow_with_pods_that_came_and_went() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            done = {"moorage.dev/run-seconds": "1"}
            names = [f"p{i}" for i in range(20)]
            await cluster.create_objects(
                *[pod_manifest(n, annotations=done, restartPolicy="Never") for n in names]
            )
            await cluster.until(
                lambda: all(cluster.phase_of(name) == "Succeeded" for name in names)
            )
            await aio.sleep(5)
            scheduler = cluster.scheduler
            core, writes = scheduler.core, scheduler.parts.writes
            assert (len(writes._overlay), len(writes._last)) == (0, 0)
            assert (core.cache.counts().pods, len(core.cache.lifecycle)) == (0, 0)
            assert (len(core.store.all_pods()), len(core.queue), len(core.queue.nominator)) == (
                0,
                0,
                0,
            )

    run_virtual(main(), clock)


class Faulty(Delayed):
    """A transport on which the first bindings go wrong."""

    def __init__(self, inner: Transport, clock: ManualClock, faults: list[str]) -> None:
        super().__init__(inner, clock)
        self.faults = faults

    async def request(self, call: Call) -> Answer:
        if not call.path.endswith("/binding") or not self.faults:
            return await super().request(call)
        fault = self.faults.pop(0)
        if fault == "refused":
            return Answer(500, {}, b'{"kind":"Status","message":"no","code":500}')
        if fault == "answer lost":
            await super().request(call)
        raise TransportError("timed out")


@pytest.mark.parametrize(
    ("faults", "failures"),
    [
        pytest.param(["refused", "refused"], 2, id="the binding was refused twice"),
        pytest.param(["call lost"], 1, id="the binding never arrived"),
        pytest.param(["answer lost"], 0, id="the binding arrived, its answer did not"),
    ],
)
def test_a_binding_that_goes_wrong_is_repeated_after_backoff(
    faults: list[str], failures: int
) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1")],
            around=lambda inner: Faulty(inner, clock, list(faults)),
        ) as cluster:
            await cluster.create_objects(pod_manifest("p", cpu="4"))
            await cluster.until(lambda: cluster.phase_of("p") == "Running", seconds=20)
            await aio.sleep(1)
            facts = cluster.scheduler.facts
            assert (facts.bound, facts.bind_failures) == (1, failures)
            assert cluster.condition_of("p")[0] == "True"
            assert len(await cluster.events("p", reason="Scheduled")) == 1
            assert cluster.scheduler.compare().empty
            cluster.scheduler.core.cache.validate()
            cluster.scheduler.core.queue.validate()

    run_virtual(main(), clock)


def test_a_pod_no_event_can_help_is_looked_at_again_after_five_minutes() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            await cluster.create_objects(pod_manifest("p", cpu="400"))
            await aio.sleep(290)
            assert cluster.scheduler.facts.decisions == 1
            await aio.sleep(60)
            assert cluster.scheduler.facts.decisions == 2

    run_virtual(main(), clock)
