"""Preemptors count on what other preemptors have begun: their places, and the room they make.

Small clusters with the real controllers in virtual time; the victims stop slowly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.api.resources import NODES, PODS
from moorage.config.load import parse_config
from moorage_sandbox.testing.builders import node_manifest
from tests.scenarios.company import HIGH, Company, made, play, replicas
from tests.scenarios.gangs import coscheduling
from tests.scenarios.test_groups_preempt import LATE_SECONDS
from tests.scenarios.test_nominees import HOST, PREEMPTING, ZONE, T, spread
from tests.scenarios.test_preemption import priority


@pytest.mark.parametrize("stops", [0.5, 5, 12])
def test_a_pod_evicts_next_to_pods_that_wait_for_their_victims(stops: float) -> None:
    """The third pod fits by the spread once the others are placed, and waits for one grace only."""

    async def scenario(company: Company) -> None:
        placed = made("z", high=True, labels=T, node_selector={HOST: "n1"}, cpu="1")
        await company.create(placed)
        await company.run("z")
        await company.create(replicas(20, made("l", stops=stops, cpu="1")))
        await company.run("l", 7)
        for index in range(3):
            high = made(f"h{index}", cpu="1", high=True, labels=T)
            high["spec"]["topologySpreadConstraints"] = spread(T)
            await company.create(high)
        await company.run("h", 3, seconds=stops + LATE_SECONDS)
        await company.sleep(10)
        assert len(company.evicted) == 3

    play(scenario, nodes=[node_manifest(f"n{i}", cpu="4") for i in (1, 2)])


@pytest.mark.parametrize("mode", ["permit", "trial"])
@pytest.mark.parametrize(
    ("nodes", "sizes", "leaves_enough"),
    [
        (2, (2, 3), True),
        (3, (3, 3), True),
        (3, (6, 4), False),
        (4, (5, 5), False),
        (4, (6, 4), False),
    ],
)
@pytest.mark.parametrize("alike", [False, True])
def test_two_groups_with_one_spread_evict_one_pod_for_each_member(
    mode: str, nodes: int, sizes: tuple[int, int], leaves_enough: bool, alike: bool
) -> None:
    """The second group evicts at once if the first group fits without its victims.

    The spread counts the victims. A first group that fills nodes needs most of them until it is
    placed, because they are the smallest domain.
    """
    stops = 5

    async def scenario(company: Company) -> None:
        labels = T if alike else {}
        await company.create(
            replicas(4 * nodes + 6, made("t", stops=stops, cpu="1", labels=labels))
        )
        await company.run("t-", 4 * nodes)
        prefix = "pod-group.scheduling.sigs.k8s.io"
        for group, size in zip("ab", sizes, strict=True):
            of_group = {f"{prefix}/name": group, f"{prefix}/min-available": str(size), **T}
            for index in range(size):
                high = made(f"{group}{index}", cpu="1", high=True, labels=of_group)
                high["spec"]["topologySpreadConstraints"] = spread(T)
                await company.create(high)
        await company.run("a", sizes[0], seconds=stops + LATE_SECONDS)
        waits = stops if alike and mode == "trial" and not leaves_enough else 1
        await company.run("b", sizes[1], seconds=waits + 1)
        await company.sleep(20)
        assert len(company.evicted) == sum(sizes)

    cluster = [node_manifest(f"n{index}", cpu="4") for index in range(nodes)]
    play(scenario, nodes=cluster, config=coscheduling(mode))


@pytest.mark.parametrize("plugin", PREEMPTING)
@pytest.mark.parametrize("others", [1, 12])
@pytest.mark.parametrize("constraint", [False, True])
def test_room_that_others_have_made_is_cheaper_than_an_eviction(
    plugin: str, others: int, constraint: bool
) -> None:
    """The victim of the first pod leaves room for the second, though younger pods are elsewhere."""
    spread_over: dict[str, Any] = {}
    if constraint:  # each node is tried alone
        (hard,) = spread(T)
        spread_over = {"topologySpreadConstraints": [{**hard, "maxSkew": 9}]}

    async def scenario(company: Company) -> None:
        first = {HOST: "n0"}
        await company.create(made("old", stops=8, cpu="2", node_selector=first))
        await company.run("old")
        await company.sleep(3)
        for index in range(1, others + 1):
            place = {HOST: f"n{index}"}
            await company.create(made(f"young{index}", stops=8, cpu="2", node_selector=place))
        await company.run("young", others)
        await company.create(made("h1", high=True, cpu="1", node_selector=first))
        await company.nominate("h1", "n0")
        await company.create(made("h2", high=True, cpu="1", labels=T, **spread_over))
        await company.run("h", 2)
        assert company.evicted == ["old"]

    enabled = PREEMPTING[plugin]
    disabled = "[{name: DefaultPreemption}]" if enabled else "[]"
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{enabled}], disabled: {disabled}}}}}
"""
    cluster = [node_manifest(f"n{index}", cpu="2") for index in range(others + 1)]
    play(scenario, nodes=cluster, config=parse_config(text, source=plugin))


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_pod_that_a_spread_counts_leaves_the_domain_to_a_nominated_pod(is_deleted: bool) -> None:
    """Another node of the zone has room for it, but the nominated pod would not fit then."""

    async def scenario(company: Company) -> None:
        await company.create(
            made("full", high=True, cpu="4", node_selector={HOST: "n2"}),
            made("low", stops=6, cpu="4", labels=T, node_selector={HOST: "n1"}),
        )
        await company.run("", 2)
        high = made("h", high=True, cpu="6", labels=T)
        high["spec"]["topologySpreadConstraints"] = spread(T, ZONE)
        await company.create(high)
        await company.nominate("h", "n1")
        await company.create(replicas(1, made("w", cpu="1", labels=T)))
        await company.sleep(4)
        assert company.placed("w") == [""]
        if is_deleted:
            await company.cluster.client.delete(PODS, "h", namespace="default")
        else:
            await company.run("h", seconds=5)
        await company.run("w-", seconds=10)
        assert company.evicted == ["low"]

    sizes = {"n1": ("a", "8"), "n3": ("a", "4"), "n2": ("b", "4")}
    cluster = [
        node_manifest(name, cpu=cpu, labels={ZONE: zone}) for name, (zone, cpu) in sizes.items()
    ]
    play(scenario, nodes=cluster)


async def node_is_closed(company: Company) -> None:
    await company.cluster.patch_object(NODES, "n1", {"spec": {"unschedulable": True}})


async def node_suits_no_longer(company: Company) -> None:
    labels = {"metadata": {"labels": {"suits": None}}}
    await company.cluster.patch_object(NODES, "n1", labels)


async def node_goes(company: Company) -> None:
    await company.cluster.delete_node("n1")


async def pod_goes(company: Company) -> None:
    await company.cluster.client.delete(PODS, "h", namespace="default")


async def higher_pod_takes_the_node(company: Company) -> None:
    """Its only victim is leaving already, so nothing is evicted for it."""
    await company.create(priority("higher", HIGH + 1))
    higher = made("top", cpu="8", node_selector={HOST: "n1"}, priorityClassName="higher")
    await company.create(higher)


@pytest.mark.parametrize(
    "change",
    [node_is_closed, node_suits_no_longer, node_goes, pod_goes, higher_pod_takes_the_node],
)
def test_a_pod_that_a_nominated_pod_keeps_away_is_placed_once_the_nomination_is_lost(
    change: Callable[[Company], Awaitable[None]],
) -> None:
    """The pod has no spread of its own, and says what keeps it away."""

    async def scenario(company: Company) -> None:
        await company.create(
            made("full", high=True, cpu="4", node_selector={HOST: "n2"}),
            made("low", stops=60, cpu="4", labels=T, node_selector={HOST: "n1"}),
        )
        await company.run("", 2)
        high = made("h", high=True, cpu="6", labels=T, node_selector={"suits": "yes"})
        (hard,) = spread(T, ZONE)
        high["spec"]["topologySpreadConstraints"] = [{**hard, "nodeAffinityPolicy": "Ignore"}]
        await company.create(high)
        await company.nominate("h", "n1")
        await company.create(made("w", cpu="1", labels=T))
        await company.sleep(4)
        message = company.cluster.condition_of("w")[2]
        assert code_of_message(message) is ReasonCode.SPREAD_OF_NOMINATED, message
        await change(company)
        await company.run("w", seconds=20)

    sizes = {"n1": ("a", "8"), "n3": ("a", "4"), "n2": ("b", "4")}
    cluster = [
        node_manifest(name, cpu=cpu, labels={ZONE: zone, "suits": "yes"})
        for name, (zone, cpu) in sizes.items()
    ]
    play(scenario, nodes=cluster)
