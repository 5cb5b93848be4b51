"""Elastic quotas with affinity, hard spread and host ports: many rows at once as one by one.

Random histories of the default profile with CapacityScheduling in place of DefaultPreemption.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from moorage.config.merge import expand_profiles
from scheduler.tests.plugins.preemption.test_against_reference import REGISTRY
from scheduler.tests.plugins.preemption.test_pods_counted import (
    KINDS,
    NODES,
    NOTHING,
    Asks,
    World,
    apply,
    made,
    preemptors,
    residents,
    steps,
    tried_alone,
)
from scheduler.tests.plugins.quotas.builders import preempting_with, quota


class QuotaWorld(World):
    """The cluster, with a quota for each of its two namespaces."""

    spec = expand_profiles(preempting_with("CapacityScheduling").scheduler, REGISTRY)[0]

    def bound(self, namespace: str, minimum: int, maximum: int | None = None) -> None:
        """Give a namespace a quota of CPUs."""
        bounds = [None if cpu is None else {"cpu": str(cpu)} for cpu in (minimum, maximum)]
        self.snapshot.listers.elastic_quotas.put(quota(namespace, *bounds))


minimums = st.sampled_from([0, 4, 30])
more_often_lent = st.sampled_from([0, 0, 4, 30])


@settings(max_examples=100, deadline=None)
@given(
    everywhere=st.booleans(),
    owned=minimums,
    lent=more_often_lent,
    maximum=st.sampled_from([None, None, 14]),
    filling=st.lists(residents, min_size=2 * len(NODES), max_size=2 * len(NODES)),
    history=st.lists(steps, max_size=6),
    wave=st.lists(preemptors, min_size=3, max_size=6),
)
def test_decisions_equal_those_of_rows_tried_one_by_one(
    everywhere: bool,
    owned: int,
    lent: int,
    maximum: int | None,
    filling: list[tuple[Any, ...]],
    history: list[tuple[Any, ...]],
    wave: list[tuple[Any, ...]],
) -> None:
    world = QuotaWorld(everywhere=everywhere)
    world.bound("default", owned, maximum)
    world.bound("other", lent)
    for name in NODES:
        world.node(name, 3)
    for index, each in enumerate(filling):
        started = -1 if index % 3 else None
        world.place(NODES[index % len(NODES)], made(world, each, started=started))
    for step in history:
        apply(world, step)
    before = len(world.nominations)
    for index, preemptor in enumerate(wave):
        apply(world, ("preempt", preemptor, index % 2 == 0))
    event("preempts" if len(world.nominations) > before else "does not")


@pytest.mark.parametrize(
    ("app", "asks", "resident", "residents_ask"),
    [kind[:4] for kind in KINDS.values()],
    ids=KINDS,
)
def test_no_row_of_borrowers_is_tried_alone(
    app: str, asks: Asks, resident: str, residents_ask: Asks
) -> None:
    world = QuotaWorld()
    world.bound("default", 24)
    world.bound("other", 0)
    for name in NODES[:6]:
        world.node(name, 4)
        for priority in (5, 6):
            asked = NOTHING if residents_ask.ports and priority == 6 else residents_ask
            world.place(name, world.pod(2, priority, resident, asked, namespace="other"))
    preemptor = world.pod(2, 0, app, asks)
    with tried_alone() as rows:
        decision = world.together.decide(preemptor)
    assert rows == []
    world.preempt(preemptor, follow=False)
    assert {each.metadata.namespace for each in decision.victims} <= {"other"}
