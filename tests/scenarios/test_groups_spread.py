"""Groups whose members must be spread evict once, whatever the order in which they get their room.

With a hard spread a member fits only next to others: at Permit the members that have a node, and
those that are nominated to one, decide where the next may go.
"""

from __future__ import annotations

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.gangs import coscheduling
from tests.scenarios.test_groups_await_nominees import TEAM, in_team
from tests.scenarios.test_groups_preempt import FORMS, LATE_SECONDS, Form
from tests.scenarios.test_nominees import ZONE, spread

ZONES, NODES, CPU = 3, 6, 4
STOPS = 5


def zonal_nodes() -> list[Manifest]:
    return [
        node_manifest(f"n{index}", cpu=str(CPU), memory="64Gi", labels={ZONE: f"z{index % ZONES}"})
        for index in range(NODES)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("members", "skew"), [(8, 1), (12, 2), (14, 1)])
def test_a_group_that_is_spread_over_zones_evicts_one_pod_for_each_member(
    form: Form, members: int, skew: int
) -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(NODES * CPU + 5, made("t", stops=STOPS, cpu="1")))
        await company.run("t-", NODES * CPU)
        (constraint,) = spread(TEAM, ZONE)
        constraints = [{**constraint, "maxSkew": skew}]
        await form.create(company, members, change=in_team, topologySpreadConstraints=constraints)
        await company.run("g", members, seconds=STOPS + LATE_SECONDS)
        await company.sleep(10)
        assert len(company.evicted) == members

    play(scenario, nodes=zonal_nodes(), config=form.config())


@pytest.mark.parametrize("mode", ["permit", "trial"])
@pytest.mark.parametrize(
    ("cpus", "backlog", "sizes", "evicted"),
    [
        pytest.param((4, 4, 4), 2, (6,), 9, id="one group"),
        pytest.param((4, 4, 4), 4, (3, 3), 9, id="two groups"),
        pytest.param((2, 2, 4), 6, (2, 2), 7, id="two groups, unlike nodes"),
    ],
)
def test_members_evict_no_more_pods_one_by_one_than_together(
    mode: str, cpus: tuple[int, ...], backlog: int, sizes: tuple[int, ...], evicted: int
) -> None:
    """The spread counts the victims, and one zone has more of them than the other.

    The members that fill the smaller zone come first. A member of the larger zone waits for them at
    Permit, and counts on every eviction that is decided.
    """

    async def scenario(company: Company) -> None:
        room = sum(cpus)
        await company.create(replicas(room + backlog, made("t", stops=0, cpu="1", labels=TEAM)))
        await company.run("t-", room)
        prefix = "pod-group.scheduling.sigs.k8s.io"
        for group, size in zip("ab", sizes, strict=False):
            labels = {f"{prefix}/name": group, f"{prefix}/min-available": str(size), **TEAM}
            for index in range(size):
                member = made(f"{group}{index}", high=True, cpu="1", labels=labels)
                member["spec"]["topologySpreadConstraints"] = spread(TEAM, ZONE)
                await company.create(member)
        for group, size in zip("ab", sizes, strict=False):
            await company.run(group, size, seconds=LATE_SECONDS)
        await company.sleep(20)
        assert len(company.evicted) == evicted

    nodes = [
        node_manifest(f"n{index}", cpu=str(cpu), labels={ZONE: f"z{index % 2}"})
        for index, cpu in enumerate(cpus)
    ]
    play(scenario, nodes=nodes, config=coscheduling(mode))
