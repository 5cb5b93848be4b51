"""A walk over the awaits of a scheduler: what happens after each step breaks nothing."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage.service.process.leader import Elector
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.walk import SCENES, WALK_ACTS, Walk, WalkAct, scene

_STRIKES = {
    "kill": "gets SIGKILL after {} steps",
    "end": "gets SIGTERM after {} steps",
    "stop": "is stopped after {} steps",
    "depose": "is deposed after {} steps",
    "delete": "has run {} steps when k0-0 goes",
}


@pytest.mark.parametrize("act", WALK_ACTS)
def test_the_act_happens_after_exactly_so_many_steps(act: WalkAct) -> None:
    walk = Walk(scene("binding", 1), act)
    assert [stop.steps for stop in walk.stops] == list(range(1, walk.steps + 1))
    stop = walk.stops[walk.steps // 2]
    outcome = play(walk.script_at(stop))
    text = _STRIKES[act].format(stop.steps).replace("k0-0 goes", "")
    [line] = [each for each in outcome.lines if text in each]
    assert line.split()[1] == f"{walk.process}.1"
    assert outcome.breaches == ()


@pytest.mark.parametrize("each", [1, 2])
def test_a_short_walk_has_every_await_of_the_source(each: int) -> None:
    whole, short = (Walk(scene("volumes", 1), "kill", each=most) for most in (None, each))
    assert {stop.place for stop in short.stops} == {stop.place for stop in whole.stops}
    assert short.places == whole.places > 30
    assert len(short) <= each * short.places < len(whole)


def test_awaits_are_told_apart_by_the_code_that_led_there() -> None:
    places = {stop.place for stop in Walk(scene("volumes", 1), "kill").stops}
    binding = [each for each in places if "plugins/volumes/writes.py" in each]
    assert any("service/binding/api_binding.py" in each for each in binding)
    assert not [each for each in places if "fault_sim/" in each.partition("callback")[0]]


def test_a_write_after_the_end_of_the_lease_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that sleeps between two writes of a binding, and does not ask for its lease."""
    walk = Walk(scene("volumes", 1), "stop", each=1)
    [*_, between] = [stop for stop in walk.stops if "plugins/volumes/writes.py" in stop.place]
    assert play(walk.script_at(between)).breaches == ()
    monkeypatch.setattr(Elector, "check_lease", lambda elector: None)
    broken_rules = {each.invariant for each in play(walk.script_at(between)).breaches}
    assert "writes-with-lease" in broken_rules


def test_every_scene_has_pods_and_two_schedulers() -> None:
    for name in SCENES:
        script = scene(name, 1)
        kinds = [act.object["kind"] for act in script.acts if isinstance(act, acts.Create)]
        assert "Pod" in kinds
        assert script.replicas == 2


def test_a_scene_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no scene 'opera'; there are binding, volumes"):
        scene("opera", 1)


_WALKS = [(name, act) for name in SCENES for act in WALK_ACTS]
_PARTS = 8


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(len(_WALKS)), ids=["-".join(each) for each in _WALKS])
def test_every_invariant_holds_after_a_step_at_each_await(number: int) -> None:
    """Each walk plays an eighth of its awaits, another than the next one."""
    name, act = _WALKS[number]
    walk = Walk(scene(name, 1), act, each=1)
    breaches = {
        stop: [(each.invariant, each.text) for each in outcome.breaches]
        for stop in walk.stops[number % _PARTS :: _PARTS]
        if (outcome := play(walk.script_at(stop))).breaches
    }
    assert breaches == {}
