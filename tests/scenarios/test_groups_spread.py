"""Groups whose members must be spread evict once, whatever the order in which they get their room.

With a hard spread a member fits only next to others: at Permit the members that have a node, and
those that are nominated to one, decide where the next may go.
"""

from __future__ import annotations

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
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
