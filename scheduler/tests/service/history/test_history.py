"""The last hour in numbers, of a cluster in virtual time; whole answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.clock import ManualClock, parse_rfc3339
from moorage.config.load import parse_config
from moorage.service.history.moments import EVERY_SECONDS, MOMENTS_MOST
from moorage.service.history.question import HistoryAnswer, history_question
from moorage.service.scheduler import Scheduler
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
_SHARES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: GpuShare}, {name: GpuBestFit}]}}
"""
_WHOLE = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
NODE = node_manifest("n1", cpu="4", memory="8Gi")


async def ask(scheduler: Scheduler, clock: ManualClock) -> Any:
    """Return the answer as it goes over the wire."""
    answer = await history_question(scheduler, clock).ask({})
    assert isinstance(answer, HistoryAnswer)
    return msgspec.json.decode(msgspec.json.encode(answer))


def test_a_moment_counts_what_waits_what_was_decided_and_what_is_requested() -> None:
    clock = ManualClock()

    async def main() -> dict[str, Any]:
        async with VirtualCluster(clock, nodes=[NODE]) as cluster:
            await cluster.create_objects(
                pod_manifest("small", cpu="1", memory="1Gi"),
                pod_manifest("giant", cpu="64"),
                pod_manifest("gated", schedulingGates=[{"name": "quota"}]),
            )
            await cluster.until(lambda: cluster.phase_of("small") == "Running")
            answer = await ask(cluster.scheduler, clock)
            return dict(answer["moments"][-1])

    moment = run_virtual(main(), clock)
    assert moment.pop("time")
    assert moment == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 1,
        "gated": 1,
        "bound": 1,
        "failed": 1,
        "evicted": 0,
        "nodes": 1,
        "fills": {
            "cpu": {"requested": 1000, "allocatable": 4000},
            "memory": {"requested": 2**30, "allocatable": 2**33},
        },
    }


def test_shares_of_gpus_count_as_parts_of_a_unit_and_follow_the_pods() -> None:
    clock = ManualClock()
    config = parse_config(_SHARES, source="the test")
    gpus: dict[str, Any] = {"nvidia.com/gpu": "4"}
    nodes = [NODE, node_manifest("gpus", cpu="8", **gpus)]
    share = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "460"}

    async def main() -> list[dict[str, Any]]:
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            fills = [(await ask(cluster.scheduler, clock))["moments"][-1]["fills"]]
            await cluster.create_objects(
                *(pod_manifest(f"s{number}", annotations=share) for number in range(3)),
                pod_manifest("whole", containers=[_WHOLE]),
            )
            names = ("s0", "s1", "s2", "whole")
            await cluster.until(lambda: all(cluster.phase_of(each) == "Running" for each in names))
            fills.append((await ask(cluster.scheduler, clock))["moments"][-1]["fills"])
            await cluster.client.delete(PODS, "s0", namespace="default")
            await cluster.until(lambda: cluster.phase_of("s0") == "")
            fills.append((await ask(cluster.scheduler, clock))["moments"][-1]["fills"])
            return fills

    found = run_virtual(main(), clock)
    assert [list(each) for each in found] == [["cpu", "memory", "nvidia.com/gpu"]] * 3
    assert [each["nvidia.com/gpu"] for each in found] == [
        {"requested": 0, "allocatable": 4},
        {"requested": 2.38, "allocatable": 4},
        {"requested": 1.92, "allocatable": 4},
    ]


def test_the_victims_of_a_preemption_are_counted() -> None:
    clock = ManualClock()

    async def main() -> int:
        async with VirtualCluster(clock, nodes=[NODE]) as cluster:
            await cluster.create_objects(CLASS, pod_manifest("low", cpu="4"))
            await cluster.until(lambda: cluster.phase_of("low") == "Running")
            await cluster.create_objects(pod_manifest("high", cpu="4", priorityClassName="high"))
            await cluster.until(lambda: cluster.phase_of("high") == "Running", seconds=60)
            answer = await ask(cluster.scheduler, clock)
            return int(answer["moments"][-1]["evicted"])

    assert run_virtual(main(), clock) == 1


def test_an_hour_is_kept_a_moment_every_ten_seconds_and_the_present_one() -> None:
    clock = ManualClock()

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=[NODE], renew_seconds=1000) as cluster:
            await aio.sleep(4000)
            return await ask(cluster.scheduler, clock)

    answer = run_virtual(main(), clock)
    times = [parse_rfc3339(each["time"]) / 1e9 for each in answer["moments"]]
    assert answer["everySeconds"] == EVERY_SECONDS
    assert len(times) == MOMENTS_MOST + 1
    assert {round(later - time) for time, later in pairwise(times[:-1])} == {10}
    assert answer["moments"][-1]["time"] == answer["time"]


def test_a_scheduler_that_does_not_schedule_has_no_history() -> None:
    clock = ManualClock()

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=[NODE]) as cluster:
            cluster.scheduler.only_watches = True
            return await ask(cluster.scheduler, clock)

    answer = run_virtual(main(), clock)
    assert (answer["scheduling"], answer["moments"]) == (False, [])
