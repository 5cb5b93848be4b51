"""Situations, each played alone: its pods wait until the event comes, and no longer."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.tests.fault_sim.one_situation import one_situation
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.scenarios import ONE_BY_ONE, few_in_turn, scenario
from moorage_lab.fault_sim.situations import priorities, storage, storage_changes
from moorage_lab.fault_sim.situations.neighbours import apart
from moorage_lab.fault_sim.situations.situation import (
    SOME,
    Declaration,
    Situation,
    SituationTable,
    Steps,
)
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot, SceneMaker


def script_of(setup: str, situation: SceneMaker, *, with_event: bool) -> acts.Script:
    """Return a script with one situation, whose event may be left out."""

    def scene(plot: Plot, tag: str) -> Maker:
        event = situation(plot, tag)
        plot.now += 8.0
        return event if with_event else lambda later: None

    return one_situation(scene, seed=2, setup=setup, rest_seconds=40.0, looks=True)


def bound_pods(outcome: Outcome) -> dict[str, float]:
    """Return the moments at which schedulers bound pods, by pod."""
    lines = (line.split() for line in outcome.lines if "/binding -> 201" in line)
    return {
        path.split("/")[-2]: float(at)
        for at, who, _, path, *_ in lines
        if who.startswith("scheduler")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "situation"), [pytest.param(*each, id=each[1].name) for each in ONE_BY_ONE]
)
def test_a_situation_keeps_its_promise(setup: str, situation: Declaration) -> None:
    script = script_of(setup, situation, with_event=True)
    outcome = play(script)
    assert outcome.breaches == ()
    without: dict[str, float] = {}
    if situation.has_event:
        scene = play(script_of(setup, situation, with_event=False))
        without = bound_pods(scene)
        # At Permit, members without the others hold their nodes. A team that waits there wakes
        # itself: its placed members give room back.
        excused = {"quiet"} if setup == "teams at permit" else set()
        if setup != "gangs at permit":
            assert {each.invariant for each in scene.breaches} <= excused
    bound = bound_pods(outcome)
    if situation.binds in ((), SOME):
        assert bool(bound.keys() - without.keys()) == (situation.binds == SOME)
        return
    last = max(act.at for act in script.acts if not isinstance(act, acts.Look))
    promised = {f"k0-{suffix}" for suffix in situation.binds}
    in_time = {pod for pod, at in bound.items() if at <= last + situation.within_seconds}
    assert promised <= in_time
    assert situation.anyway or not promised & without.keys()


@SituationTable().declare()
def _choosy_moves_away(s: Situation) -> Steps:
    """Let a pod wait for the anti-affinity of another one, and its own node leave the zone."""
    far = s.part("far")
    far.create_node(labels={ZONE: s.tag})
    far.create_holder(cpu="100m", affinity=apart(s.tag, ZONE))
    node = s.create_node()
    s.create_pod(cpu="100m", labels={"app": s.tag})
    yield
    s.label_node(node, {ZONE: "alone"})


def test_a_pod_that_another_keeps_away_is_woken_by_a_node_that_leaves_the_zone() -> None:
    without, complete = (
        play(script_of("default", _choosy_moves_away, with_event=each)) for each in (False, True)
    )
    assert (complete.bound, complete.breaches) == (without.bound + 1, ())


def test_a_seed_of_few_has_situations_with_their_configuration() -> None:
    scripts = [scenario("few").script(seed) for seed in range(200)]
    assert {script.setup for script in scripts} == {setup for setup, _ in ONE_BY_ONE}
    looks = [sum(isinstance(act, acts.Look) for act in script.acts) for script in scripts]
    assert {1, 6} <= set(looks)


@pytest.mark.parametrize("turn", [0, 1, 7])
def test_each_situation_is_in_one_of_the_sets_of_a_turn(turn: int) -> None:
    sets = few_in_turn(turn, 6)
    pairs = [(setup, each) for setup, situations in sets for each in situations]
    assert Counter(pairs) == Counter(ONE_BY_ONE)


def test_seeds_one_after_another_have_all_situations() -> None:
    few, count = scenario("few"), len(few_in_turn(0, 6))
    looks = [
        isinstance(act, acts.Look) for seed in range(count) for act in few.script(2 * seed).acts
    ]
    assert sum(looks) == len(ONE_BY_ONE)


@pytest.mark.parametrize("goes", [False, True], ids=["refused", "deleted"])
@pytest.mark.parametrize(
    "situation",
    [storage.volume_held_in_vain, storage_changes.device_held_in_vain],
    ids=["volume", "device"],
)
def test_what_an_attempt_gives_back_goes_to_a_pod_that_waits(
    situation: Declaration, goes: bool
) -> None:
    def scene(plot: Plot, tag: str) -> Maker:
        event = situation(plot, tag)

        def event_and_deletion(later: Plot) -> None:
            holds_at = later.now + 1.0
            event(later)
            if goes:
                later.acts.append(acts.Delete(at=holds_at, kind="Pod", name=f"{tag}-h"))

        return event_and_deletion

    outcome = play(script_of("delayed step", scene, with_event=True))
    assert [*bound_pods(outcome)] == ["k0-p"]
    assert outcome.breaches == ()


@pytest.mark.parametrize(("with_event", "placed"), [(False, "k0-top"), (True, "k0-p")])
def test_a_pod_takes_the_room_of_a_preemptor_that_goes(with_event: bool, placed: str) -> None:
    outcome = play(script_of("default", priorities.nominated_goes, with_event=with_event))
    assert [*bound_pods(outcome)] == ["k0-h", placed]
    assert outcome.breaches == ()


def test_a_pod_that_has_a_node_is_not_bound_again() -> None:
    outcome = play(script_of("default", priorities.bound_again, with_event=True))
    assert any("409" in line or "is refused" in line for line in outcome.lines)
    assert outcome.breaches == ()
