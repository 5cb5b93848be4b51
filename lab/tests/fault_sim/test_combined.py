"""Pods that combine what there is: every trait is drawn, is accepted, and breaks nothing."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import msgspec
import pytest

from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.scenarios import scenario
from moorage_lab.fault_sim.users.combined import TRAITS, create_offers
from moorage_lab.fault_sim.users.plot import Mix, Plot
from moorage_sandbox.testing.builders import pod_manifest


def a_plot(seed: int) -> Plot:
    """Return a plot with two nodes and what is offered on them."""
    plot = Plot(seed, Mix(nodes=2, steps=0, replicas=1, users=()))
    create_offers(plot)
    return plot


@pytest.mark.parametrize("name", TRAITS)
def test_each_trait_asks_for_something(name: str) -> None:
    pod = pod_manifest("p", cpu="1", labels={"app": "web"})
    before = copy.deepcopy(pod)
    TRAITS[name](a_plot(1), pod)
    assert pod["spec"] != before["spec"]


def test_any_two_traits_meet_in_some_script() -> None:
    met: Counter[frozenset[str]] = Counter()
    for seed in range(300):
        met.update(map(frozenset, combinations(a_plot(seed).notes["traits"], 2)))
    assert met.keys() == set(map(frozenset, combinations(TRAITS, 2)))


def _scripts_with_every_trait() -> Iterator[Script]:
    """Yield scripts of this scenario until each trait was in one."""
    missing, drawn = set(TRAITS), set[str]()

    def create_and_note(plot: Plot) -> None:
        create_offers(plot)
        drawn.update(plot.notes["traits"])

    noting = msgspec.structs.replace(scenario("combined"), founders=(create_and_note,))
    for seed in range(1, 100):
        drawn.clear()
        script = noting.script(seed)
        if missing & drawn:
            missing -= drawn
            yield script


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """Return the outcomes of scripts that have every trait together."""
    return [play(script) for script in _scripts_with_every_trait()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_invariant_holds_where_pods_combine_what_there_is(outcomes: list[Outcome]) -> None:
    assert [each.text for outcome in outcomes for each in outcome.breaches] == []
    assert all(outcome.bound > 0 for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_server_takes_what_these_users_create(outcomes: list[Outcome]) -> None:
    lines = [line for outcome in outcomes for line in outcome.lines if " user " in line]
    assert [line for line in lines if line.endswith(("-> 400", "-> 422"))] == []
