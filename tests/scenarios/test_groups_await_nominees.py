"""Groups whose members fit once nominated pods are placed wait for these pods, and evict once."""

from __future__ import annotations

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.test_groups_preempt import FORMS, LATE_SECONDS, Form
from tests.scenarios.test_nominees import HOST, spread

TEAM = {"team": "t"}
# Whole groups preempt as if all lower pods were gone, as upstream: they fit only where they would
# fit then, and these do not.
MEMBERS_PREEMPT = [
    each for each in FORMS if isinstance(form := each.values[0], Form) and not form.whole
]


def in_team(pod: Manifest) -> None:
    pod["metadata"].setdefault("labels", {}).update(TEAM)


@pytest.mark.parametrize("form", MEMBERS_PREEMPT)
@pytest.mark.parametrize(
    "stops",
    [
        pytest.param(1, id="its victims stop together with those of the group"),
        pytest.param(3, id="its victims stop last"),
    ],
)
def test_members_wait_for_a_pod_without_which_they_would_break_a_spread(
    form: Form, stops: int
) -> None:
    """The pod has the other node, which has the fewest pods once its two victims have left."""

    async def scenario(company: Company) -> None:
        for name, seconds in (("n1", stops), ("n2", 1)):
            low = made(f"l{name}", stops=seconds, cpu="1", labels=TEAM, node_selector={HOST: name})
            await company.create(replicas(6, low))
        await company.run("l", 8)
        (constraint,) = spread(TEAM)
        await form.create(
            company,
            2,
            change=in_team,
            nodeSelector={HOST: "n2"},
            topologySpreadConstraints=[{**constraint, "nodeAffinityPolicy": "Ignore"}],
        )
        on_1 = {HOST: "n1"}
        await company.create(made("single", high=True, cpu="2", labels=TEAM, node_selector=on_1))
        for name, count in (("single", 1), ("g", 2)):
            await company.run(name, count, seconds=stops + LATE_SECONDS)
        await company.sleep(10)
        assert len(company.evicted) == 4

    nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
    play(scenario, nodes=nodes, config=form.config())
