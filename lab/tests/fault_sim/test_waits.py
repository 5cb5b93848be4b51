"""Pods that wait for one thing: each waits as long as the thing does not come, and no longer."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.tests.fault_sim.one_wait import one_wait
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.scenarios import ONE_BY_ONE, few_in_turn, scenario
from moorage_lab.fault_sim.users.neighbours import apart
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait, holder_pod, own_node, own_pod

# Waits that show something else; there the later part places no further pod.
_OTHERS = {
    "_victim",
    "_victim_with_port",
    "_victim_rival",
    "_unprotected_victim",
    "_second_choice",
    "_gang_in_vain",
    "_deleted_on_its_way",
    "_promise_in_vain",
    "_nominated_goes",
    "_cordon_goes_alone",
    "_polite_pod_waits",
    "_leaves_slowly",
    "_bound_again",
    "_member_refused",
    "_other_binds_in_delayed_step",
    "_slow_reports",
    "_room_for_rest_of_team",
}


def played(setup: str, wait: SatisfiedWait, *, with_binding: bool) -> Outcome:
    """Return the end of a script with one wait, whose later part may be left out."""

    def half(plot: Plot, tag: str) -> Maker:
        enable_binding = wait(plot, tag)
        plot.now += 8.0
        return enable_binding if with_binding else lambda later: None

    return play(one_wait(half, seed=2, setup=setup, rest_seconds=40.0, looks=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "wait"),
    [pytest.param(*each, id=each[1].__name__.strip("_")) for each in ONE_BY_ONE],
)
def test_a_pod_waits_for_its_thing(setup: str, wait: SatisfiedWait) -> None:
    without, outcome = (played(setup, wait, with_binding=each) for each in (False, True))
    assert outcome.breaches == ()
    if setup != "gangs at permit":  # there members without the others hold their nodes at Permit
        # A team that waits at Permit wakes itself: its placed members give room back.
        excused = {"quiet"} if setup == "teams at permit" else set()
        assert {each.invariant for each in without.breaches} <= excused
    if wait.__name__ not in _OTHERS:
        assert outcome.bound > without.bound


def _choosy_moves_away(plot: Plot, tag: str) -> Maker:
    """Let a pod wait for the anti-affinity of another one, and its own node leave the zone."""
    own_node(plot, f"{tag}-far", labels={ZONE: tag})
    holder_pod(plot, f"{tag}-far", cpu="100m", affinity=apart(tag, ZONE))
    own = own_node(plot, tag)
    own_pod(plot, tag, cpu="100m", labels={"app": tag})
    return lambda later: later.add_change(
        "Node", own, {"metadata": {"labels": {ZONE: "alone"}}}, namespace=""
    )


def test_a_pod_that_another_keeps_away_is_woken_by_a_node_that_leaves_the_zone() -> None:
    without, complete = (
        played("default", _choosy_moves_away, with_binding=each) for each in (False, True)
    )
    assert (complete.bound, complete.breaches) == (without.bound + 1, ())


def test_a_seed_of_few_has_things_with_their_configuration() -> None:
    scripts = [scenario("few").script(seed) for seed in range(200)]
    assert {script.setup for script in scripts} == {setup for setup, _ in ONE_BY_ONE}
    looks = [sum(isinstance(act, acts.Look) for act in script.acts) for script in scripts]
    assert {1, 6} <= set(looks)


@pytest.mark.parametrize("turn", [0, 1, 7])
def test_each_thing_is_in_one_of_the_sets_of_a_turn(turn: int) -> None:
    sets = few_in_turn(turn, 6)
    pairs = [(setup, wait) for setup, waits in sets for wait in waits]
    assert Counter(pairs) == Counter(ONE_BY_ONE)


def test_seeds_one_after_another_have_all_things() -> None:
    few, count = scenario("few"), len(few_in_turn(0, 6))
    looks = [
        isinstance(act, acts.Look) for seed in range(count) for act in few.script(2 * seed).acts
    ]
    assert sum(looks) == len(ONE_BY_ONE)


@pytest.mark.parametrize("goes", [False, True], ids=["refused", "deleted"])
@pytest.mark.parametrize("resource", ["volume", "device"])
def test_what_an_attempt_gives_back_goes_to_a_pod_that_waits(resource: str, goes: bool) -> None:
    [wait] = [wait for _, wait in ONE_BY_ONE if wait.__name__ == f"_{resource}_held_in_vain"]

    def parted(plot: Plot, tag: str) -> Maker:
        enable_binding = wait(plot, tag)

        def late_half(later: Plot) -> None:
            holds_at = later.now + 1.0
            enable_binding(later)
            if goes:
                later.acts.append(acts.Delete(at=holds_at, kind="Pod", name=f"{tag}-h"))

        return late_half

    outcome = played("delayed step", parted, with_binding=True)
    bound = [line.split("/")[-2] for line in outcome.lines if "/binding -> 201" in line]
    assert bound == ["k0-p"]
    assert outcome.breaches == ()


@pytest.mark.parametrize(("with_binding", "placed"), [(False, "k0-top"), (True, "k0-p")])
def test_a_pod_takes_the_room_of_a_preemptor_that_goes(with_binding: bool, placed: str) -> None:
    [wait] = [wait for _, wait in ONE_BY_ONE if wait.__name__ == "_nominated_goes"]
    outcome = played("default", wait, with_binding=with_binding)
    bound = [line.split("/")[-2] for line in outcome.lines if "/binding -> 201" in line]
    assert bound == ["k0-h", placed]
    assert outcome.breaches == ()


def test_a_pod_that_has_a_node_is_not_bound_again() -> None:
    [wait] = [wait for _, wait in ONE_BY_ONE if wait.__name__ == "_bound_again"]
    outcome = played("default", wait, with_binding=True)
    assert any("409" in line or "is refused" in line for line in outcome.lines)
    assert outcome.breaches == ()
