"""A whole scheduler on a wire that misbehaves: one scenario for each fault.

Afterwards every pod is bound, and bound once. Cache and queue agree with the server. The calls that
were made while the wire was bad are few. Everything runs in virtual time. Not covered: what the
HTTP transport does itself, such as Retry-After and new credentials (``scheduler/tests/client``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Transport
from moorage.config.load import parse_config
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.faults import FaultyTransport
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import failure

# With an election the leader would end in the longer scenarios, and another take over.
ALONE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""

Scenario = Callable[["Wire"], Awaitable[None]]


class Wire:
    """A cluster whose scheduler is behind a faulty wire."""

    def __init__(self, cluster: VirtualCluster, faulty: FaultyTransport) -> None:
        self.cluster = cluster
        self.faulty = faulty
        self.created = 0

    async def pods(self, count: int) -> None:
        """Create pods, one in a tenth of a second."""
        for _ in range(count):
            self.created += 1
            await self.cluster.create_objects(pod_manifest(f"p{self.created}", cpu="100m"))
            await aio.sleep(0.1)

    async def calls_of(self, seconds: float) -> int:
        """Let time pass; return how many calls the scheduler made meanwhile."""
        before = self.faulty.calls.total()
        await aio.sleep(seconds)
        return self.faulty.calls.total() - before


def answer(status: int, reason: str, **headers: str) -> Answer:
    return Answer(status, headers, msgspec.json.encode(failure(status, reason)))


async def server_is_away(wire: Wire) -> None:
    """An outage of thirty seconds."""
    wire.faulty.fail()
    await wire.pods(5)
    assert await wire.calls_of(30) < 200
    wire.faulty.end_faults()


async def server_restarts(wire: Wire) -> None:
    """Three short restarts, in which every stream breaks."""
    for _ in range(3):
        wire.faulty.fail()
        await wire.pods(2)
        wire.faulty.end_faults()
        await wire.pods(2)


async def connections_are_half_open(wire: Wire) -> None:
    """Nothing comes through for a minute, and no connection breaks."""
    wire.faulty.faults.half_open = True
    await wire.pods(5)
    assert await wire.calls_of(60) < 100
    wire.faulty.end_faults()


async def watches_have_expired(wire: Wire) -> None:
    """Every stream breaks, and each new one is answered 410 for a while."""
    wire.faulty.faults.answers["WATCH"] = answer(410, "Expired")
    wire.faulty.cut()
    await wire.pods(5)
    assert await wire.calls_of(30) < 400
    wire.faulty.end_faults()


async def server_has_too_much_to_do(wire: Wire) -> None:
    """Every call is answered 429 for a while."""
    busy = answer(429, "TooManyRequests")
    wire.faulty.faults.answers.update(
        dict.fromkeys(("GET", "POST", "PATCH", "DELETE", "WATCH"), busy)
    )
    wire.faulty.cut()
    await wire.pods(5)
    assert await wire.calls_of(30) < 400
    wire.faulty.end_faults()


async def server_has_errors(wire: Wire) -> None:
    """Every write is answered 500 for a while."""
    broken = answer(500, "InternalError")
    wire.faulty.faults.answers.update({"POST": broken, "PATCH": broken, "DELETE": broken})
    await wire.pods(5)
    assert await wire.calls_of(30) < 400
    wire.faulty.end_faults()


async def lines_come_slowly(wire: Wire) -> None:
    """Each line of every stream takes two seconds."""
    wire.faulty.faults.line_seconds = 2.0
    await wire.pods(5)
    await aio.sleep(20)
    wire.faulty.end_faults()


async def streams_are_cut(wire: Wire) -> None:
    """Every stream breaks in the middle of its fourth line."""
    wire.faulty.faults.lines_most = 3
    wire.faulty.cut()
    await wire.pods(10)
    assert await wire.calls_of(30) < 2500
    wire.faulty.end_faults()


async def answers_to_bindings_are_lost(wire: Wire) -> None:
    """The server binds, and its answer is lost."""
    wire.faulty.faults.lost["/binding"] = 5
    await wire.pods(10)
    assert wire.faulty.faults.lost["/binding"] == 0
    await aio.sleep(15)


async def answers_to_events_are_lost(wire: Wire) -> None:
    """The server takes Events, and its answers are lost."""
    wire.faulty.faults.lost["/events"] = 5
    await wire.pods(10)
    assert wire.faulty.faults.lost["/events"] == 0


async def answers_to_evictions_are_lost(wire: Wire) -> None:
    """Two pods are preempted, and the answers to their deletions are lost."""
    cluster, lost = wire.cluster, wire.faulty.faults.lost
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10}
    victims, preemptors = ("low1", "low2"), ("high1", "high2")
    await cluster.create_objects(high | {"metadata": {"name": "high"}})
    await cluster.create_objects(*(pod_manifest(name, cpu="7") for name in victims))
    await cluster.until(lambda: all(cluster.placements().values()))
    lost.update(dict.fromkeys(("/pods/low1", "/pods/low2"), 1))
    await cluster.create_objects(
        *(pod_manifest(name, cpu="7", priorityClassName="high") for name in preemptors)
    )
    await cluster.until(lambda: all(map(cluster.node_of, preemptors)))
    assert not lost.total()
    for name in victims:
        assert cluster.stored_pod(name) is None
        assert len(await cluster.events(name, reason="Preempted")) == 1
    for name in preemptors:
        await cluster.client.delete(PODS, name, namespace="default")


async def _gpu_pod_is_bound(wire: Wire, lost: str) -> None:
    """Let a pod use an extended resource of devices, and lose an answer about its claim."""
    cluster, group = wire.cluster, {"apiVersion": "resource.k8s.io/v1"}
    offer = {
        "driver": "gpu.example",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu0"}],
    }
    await cluster.create_objects(
        group | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": _GPUS},
        group | {"kind": "ResourceSlice", "metadata": {"name": "n1"}, "spec": offer},
    )
    wire.faulty.faults.lost[lost] = 1
    asking = pod_manifest("gpu")
    asking["spec"]["containers"][0]["resources"] = {
        "requests": {"example.com/gpu": "1"},
        "limits": {"example.com/gpu": "1"},
    }
    await cluster.create_objects(asking)
    await cluster.until(lambda: cluster.node_of("gpu") == "n1", seconds=100)
    assert not wire.faulty.faults.lost.total()
    claims = await cluster.client.list(RESOURCE_CLAIMS)
    assert len(claims["items"]) == 1  # type: ignore[arg-type]
    await cluster.client.delete(PODS, "gpu", namespace="default")


_GPUS = {"extendedResourceName": "example.com/gpu"}


async def answer_to_the_creation_of_a_claim_is_lost(wire: Wire) -> None:
    """The server creates a claim for a pod, and its answer is lost."""
    await _gpu_pod_is_bound(wire, "/resourceclaims")


async def answer_to_the_telling_of_a_claim_is_lost(wire: Wire) -> None:
    """The server takes the name of a claim for a pod's status, and its answer is lost."""
    await _gpu_pod_is_bound(wire, "/pods/gpu/status")


SCENARIOS: tuple[Scenario, ...] = (
    server_is_away,
    server_restarts,
    connections_are_half_open,
    watches_have_expired,
    server_has_too_much_to_do,
    server_has_errors,
    lines_come_slowly,
    streams_are_cut,
    answers_to_bindings_are_lost,
    answers_to_events_are_lost,
    answers_to_evictions_are_lost,
    answer_to_the_creation_of_a_claim_is_lost,
    answer_to_the_telling_of_a_claim_is_lost,
)


def play(scenario: Scenario) -> dict[str, float]:
    """Play a scenario, check what has to hold afterwards, and return figures of it."""
    clock, made = ManualClock(), []
    figures: dict[str, float] = {}

    def around(inner: Transport) -> Transport:
        made.append(FaultyTransport(inner))
        return made[0]

    async def main() -> None:
        nodes = [node_manifest(name, cpu="8") for name in ("n1", "n2")]
        config = parse_config(ALONE)
        async with VirtualCluster(clock, nodes=nodes, around=around, config=config) as cluster:
            wire = Wire(cluster, made[0])
            await wire.pods(5)
            began, calls = cluster.seconds, made[0].calls.total()
            await scenario(wire)
            fixed = cluster.seconds
            figures["calls"] = made[0].calls.total() - calls
            figures["fault_seconds"] = fixed - began
            await cluster.until(lambda: all(cluster.placements().values()), seconds=110)
            figures["seconds"] = cluster.seconds - fixed
            await wire.pods(3)
            await cluster.until(lambda: all(cluster.placements().values()), seconds=400)
            await aio.sleep(60)
            assert len(cluster.placements()) == wire.created
            mismatch = cluster.scheduler.compare()
            assert mismatch.empty, mismatch
            cluster.scheduler.core.cache.validate()
            cluster.scheduler.core.queue.validate()
            assert cluster.scheduler.bindings == 0
            told = [await cluster.events(f"p{n + 1}", reason="Scheduled") for n in range(5)]
            assert [len(each) for each in told] == [1] * 5

    run_virtual(main(), clock)
    return figures


@pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=lambda scenario: str(scenario.__doc__).rstrip(".")
)
def test_all_pods_are_bound_and_belief_is_right_after(scenario: Scenario) -> None:
    play(scenario)
