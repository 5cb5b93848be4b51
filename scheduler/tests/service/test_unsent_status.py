"""Statuses of pods that could not be sent: the server has them once it can be reached again.

In virtual time. No attempt and no event about the pod comes in between. The parts of `PodWrites`
alone are tested in ``test_pod_writes.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from moorage.api.resources import NODES
from moorage.base import aio
from moorage.base.errors import RefusedError, TransportError
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_sandbox.testing.builders import pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.client.fakes import answer, failure
from scheduler.tests.service.test_preemption import (
    SOON,
    conditions,
    high,
    low,
    nominated,
    play,
    priority,
    running,
)


class Line:
    """A transport whose status patches fail while `problem` is set, those of victims excepted.

    Parameters
    ----------
    inner
        Carries the calls.
    acts
        Whether the server takes a patch whose answer is lost.
    """

    def __init__(self, inner: Transport, *, acts: bool) -> None:
        self.inner = inner
        self.acts = acts
        self.problem: Callable[[], Answer] | None = None
        self.failures = 0

    async def request(self, call: Call) -> Answer:
        reports = call.method == "PATCH" and call.path.endswith("/status")
        if self.problem is None or not reports or "victim" in call.path:
            return await self.inner.request(call)
        self.failures += 1
        problem = self.problem
        if self.acts:
            await self.inner.request(call)
        return problem()

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


def refused() -> Answer:
    raise RefusedError("connection refused")


def lost() -> Answer:
    raise TransportError("timed out")


def answered(code: int, reason: str) -> Callable[[], Answer]:
    return lambda: answer(failure(code, reason), status=code)


PROBLEMS = [
    pytest.param(refused, False, id="no connection"),
    pytest.param(lost, False, id="dropped on the way there"),
    pytest.param(lost, True, id="dropped on the way back"),
    pytest.param(answered(409, "Conflict"), False, id="conflict"),
    pytest.param(answered(503, "ServiceUnavailable"), False, id="overload"),
    pytest.param(answered(403, "Forbidden"), False, id="no right for a while"),
]


def play_with(
    scenario: Callable[[VirtualCluster, Line], Awaitable[None]], *, acts: bool = False
) -> None:
    """Run a scenario in a cluster whose scheduler speaks over a `Line`."""
    lines: list[Line] = []

    def around(inner: Transport) -> Transport:
        lines.append(Line(inner, acts=acts))
        return lines[-1]

    async def main(cluster: VirtualCluster) -> None:
        await scenario(cluster, lines[-1])

    play(main, around=around)


async def nominate(cluster: VirtualCluster) -> None:
    """Let a pod be nominated to n1, where its victim stops slowly."""
    await cluster.create_objects(low("victim", annotations={STOP_SECONDS: "20"}))
    await running(cluster, "victim")
    await cluster.create_objects(high("preemptor"))
    await cluster.until(lambda: nominated(cluster, "preemptor") == "n1")


@pytest.mark.parametrize(("problem", "acts"), PROBLEMS)
def test_a_withdrawn_nomination_leaves_the_status(
    problem: Callable[[], Answer], acts: bool
) -> None:
    async def scenario(cluster: VirtualCluster, line: Line) -> None:
        nominator = cluster.scheduler.core.queue.nominator
        await nominate(cluster)
        line.problem = problem
        await cluster.patch_object(NODES, "n1", {"spec": {"unschedulable": True}})
        await cluster.until(lambda: not any(node for _, node in nominator))
        await cluster.until(lambda: line.failures > 0)
        await aio.sleep(3)
        decisions = cluster.scheduler.facts.decisions
        line.problem = None
        await cluster.until(lambda: nominated(cluster, "preemptor") == "", seconds=SOON)
        assert "unschedulable" in conditions(cluster, "preemptor")["PodScheduled"][2]
        assert cluster.scheduler.facts.decisions == decisions, "an attempt reported it anew"

    play_with(scenario, acts=acts)


def test_the_nomination_of_a_lower_pod_is_cleared_once_the_server_takes_it() -> None:
    async def scenario(cluster: VirtualCluster, line: Line) -> None:
        await cluster.create_objects(priority("highest", 2000))
        await nominate(cluster)
        line.problem = refused
        await cluster.create_objects(pod_manifest("higher", cpu="4", priorityClassName="highest"))
        await cluster.until(lambda: line.failures > 0)
        await aio.sleep(3)
        line.problem = None
        await cluster.until(lambda: nominated(cluster, "preemptor") == "", seconds=SOON)

    play_with(scenario)


def test_a_pod_that_waits_says_why_once_the_server_takes_it() -> None:
    async def scenario(cluster: VirtualCluster, line: Line) -> None:
        line.problem = lost
        await cluster.create_objects(low("huge", cpu="400"))
        await cluster.until(lambda: line.failures > 0)
        await aio.sleep(3)
        line.problem = None
        await cluster.until(lambda: "PodScheduled" in conditions(cluster, "huge"), seconds=SOON)

    play_with(scenario)


def test_a_bound_pod_keeps_the_status_of_bound_pods() -> None:
    """What an attempt before the binding could not report is not reported afterwards."""

    async def scenario(cluster: VirtualCluster, line: Line) -> None:
        line.problem = lost
        await cluster.create_objects(low("p", cpu="3", nodeSelector={"disk": "ssd"}))
        await cluster.until(lambda: line.failures > 0)
        await cluster.patch_object(NODES, "n1", {"metadata": {"labels": {"disk": "ssd"}}})
        await running(cluster, "p")
        failures = line.failures
        line.problem = None
        await aio.sleep(200)
        assert conditions(cluster, "p")["PodScheduled"][0] == "True"
        assert line.failures == failures

    play_with(scenario)
