"""Drawn clusters in which preemptors with a hard spread constraint evict one pod each.

Zones, sizes, the seconds in which victims stop, and the arrival of the preemptors are drawn. The
victims belong to ReplicaSets with pods that wait, with or without the label of the preemptors.
"""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from moorage_sandbox.testing.builders import node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.test_nominees import HOST, ZONE, T, spread


@pytest.mark.parametrize("seed", [1, 6, 9, 14, 20, 22])
def test_each_preemptor_evicts_one_pod_and_none_waits_for_a_flush(seed: int) -> None:
    draw = Streams(seed).stream("cluster")
    zones, of_zone, cpu = draw.choice((2, 3)), draw.choice((1, 2, 3)), draw.choice((2, 4))
    room = zones * of_zone * cpu
    count = min(room, draw.choice((3, 6)))
    labels = T if draw.random() < 0.5 else {}
    constraint = spread(T, draw.choice((ZONE, ZONE, HOST)))
    stops = [draw.choice((0, 0.5, 1, 2, 4, 8)) for _ in range(4)]
    at_once = draw.random() < 0.5

    async def scenario(company: Company) -> None:
        for index, seconds in enumerate(stops):
            low = made(f"l{index}", cpu="1", stops=seconds, labels=labels)
            await company.create(replicas(room // 4 + 3, low))
        await company.run("l", room)
        for index in range(count):
            high = made(f"h{index}", cpu="1", high=True, labels=T)
            high["spec"]["topologySpreadConstraints"] = constraint
            await company.create(high)
            await company.sleep(0 if at_once else draw.choice((0, 0.1, 1)))
        await company.run("h", count, seconds=3 * max(stops) + 8)
        await company.sleep(10)
        assert len(company.evicted) == count

    nodes = [
        node_manifest(f"n{zone}{index}", cpu=str(cpu), labels={"zone": f"z{zone}"})
        for zone in range(zones)
        for index in range(of_zone)
    ]
    play(scenario, nodes=nodes)


@pytest.mark.parametrize("stops", [0.5, 5])
def test_a_pod_that_waits_for_nominated_pods_holds_the_room_that_it_waits_for(stops: float) -> None:
    """The fifth pod may go to the node with room only once the others are placed."""

    async def scenario(company: Company) -> None:
        await company.create(replicas(12, made("t", stops=stops, cpu="1")))
        await company.run("t-", 12)
        await company.cluster.join(node_manifest("n4", cpu="4"))
        for index in range(5):
            high = made(f"h{index}", cpu="1", high=True, labels=T)
            high["spec"]["topologySpreadConstraints"] = spread(T)
            await company.create(high)
        await company.run("h", 5, seconds=stops + 5)
        await company.sleep(10)
        assert len(company.evicted) == 3

    play(scenario, nodes=[node_manifest(f"n{index}", cpu="4") for index in range(1, 4)])
