"""Group sources of coscheduling on a live scheduler in virtual time: labels, old ones, the object.

Members are tried together here; that they may wait for each other is ``test_group_permit``'s.
"""

from __future__ import annotations

import pytest

from moorage.base import aio
from moorage.config.own import LoadedConfiguration
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    of_object_as_before,
    play,
    pod_group,
)

SOURCES = [
    pytest.param(of_object, id="the label of a PodGroup"),
    pytest.param(of_object_as_before, id="the label of a PodGroup until 2022"),
    pytest.param(of_labels, id="name and minimum as labels"),
]


@pytest.mark.parametrize("member", SOURCES)
def test_a_group_that_fits_starts_and_one_that_does_not_holds_nothing(member):
    async def scenario(live: Cluster) -> None:
        if member is not of_labels:
            await live.create_objects(pod_group(least=4), pod_group("h", least=3))
        await live.create_objects(*(member(f"p{i}", least=4) for i in range(4)))
        await live.until(lambda: live.condition_of("p3")[1] == "Unschedulable")
        assert live.bound("p0", "p1", "p2", "p3") == 0
        assert live.scheduler.core.cache.counts().assumed_pods == 0
        await live.create_objects(*(member(f"h{i}", of="h", least=3) for i in range(3)))
        await live.until(lambda: live.bound("h0", "h1", "h2") == 3)

    play(scenario, cluster=nodes(3), config=coscheduling())


@pytest.mark.parametrize("member", SOURCES)
def test_the_minimum_may_be_below_the_size(member):
    async def scenario(live: Cluster) -> None:
        if member is not of_labels:
            await live.create_objects(pod_group(least=3))
        await live.create_objects(*(member(f"p{i}", least=3) for i in range(5)))
        await aio.sleep(20)
        assert live.bound(*(f"p{i}" for i in range(5))) == 4

    play(scenario, cluster=nodes(4), config=coscheduling())


def test_without_the_plugin_labels_mean_nothing():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(of_labels("p0", least=4), of_object("p1", of="missing"))
        await live.until(lambda: live.bound("p0", "p1") == 2)

    play(scenario, cluster=nodes(2), config=LoadedConfiguration())
