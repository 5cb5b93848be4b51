"""Waiting pods that are equal: a hint is asked once for all of them, and nothing else changes.

Equal pods agree in namespace, labels, spec and rejectors. Left out: which plugins declare that
replicas get the same answer (``scheduler/tests/plugins/test_equal_pods``).
"""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest

from moorage.api.changes import WILDCARD, Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.state.contracts import Hint, Precheck, RegisteredHint
from scheduler.tests.state.build import NODE_ADD, POD_DELETE, VERSIONS, World, hint, pod

LABELLED = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)
EQUAL = 50


class Asked:
    """A hint of plugin ``Fit`` that counts the pods it is asked about."""

    def __init__(self, answer: Hint = Hint.SKIP, *, agree: bool = True, event=NODE_ADD) -> None:
        self.pods: Counter[str] = Counter()
        self.answer = answer
        self.registered = RegisteredHint("Fit", event, self._ask, replicas_agree=agree)

    def _ask(self, waiting: Pod, old: object | None, new: object | None) -> Hint:
        self.pods[waiting.name] += 1
        if isinstance(new, Pod) and new.uid == waiting.uid:
            return Hint.QUEUE
        return self.answer


def world_of(*asked: Asked, equal: int = EQUAL) -> World:
    world = World(hints=[each.registered for each in asked])
    for number in range(equal):
        world.waiting(f"p{number}")
    return world


def woken(world: World) -> list[str]:
    return [name for name, place in world.places().items() if place == "backoff"]


@pytest.mark.parametrize("answer", Hint)
def test_a_hint_is_asked_once_for_equal_pods(answer: Hint) -> None:
    asked = Asked(answer)
    world = world_of(asked)
    world.queue.move_all(NODE_ADD, None, None)
    assert asked.pods.total() == 1
    wakes = answer is Hint.QUEUE
    assert woken(world) == ([f"p{number}" for number in range(EQUAL)] if wakes else [])


@pytest.mark.parametrize("answer", Hint)
def test_each_pod_counts_as_asked(answer: Hint) -> None:
    world = world_of(Asked(answer))
    world.queue.move_all(NODE_ADD, None, None)
    assert dict(world.seen.hints) == {("Fit", "NodeAdd", answer.value): EQUAL}


def test_a_hint_that_declares_nothing_is_asked_about_each_pod() -> None:
    asked = Asked(agree=False)
    world_of(asked).queue.move_all(NODE_ADD, None, None)
    assert len(asked.pods) == asked.pods.total() == EQUAL


def test_one_hint_that_declares_nothing_is_enough_to_ask_about_each_pod() -> None:
    sure, unsure = Asked(), Asked(agree=False)
    world_of(sure, unsure).queue.move_all(NODE_ADD, None, None)
    assert sure.pods.total() == unsure.pods.total() == EQUAL


DIFFERENT: dict[str, Pod] = {
    "namespace": pod("z", namespace="other"),
    "labels": pod("z", labels={"a": "b"}),
    "spec": pod("z", priority=7),
}


@pytest.mark.parametrize("other", DIFFERENT)
def test_pods_that_differ_are_asked_about_each(other: str) -> None:
    asked = Asked()
    world = world_of(asked)
    world.add(DIFFERENT[other])
    world.fail(world.pop(), "Fit")
    world.queue.move_all(NODE_ADD, None, None)
    assert asked.pods == {"p0": 1, "z": 1}


@pytest.mark.parametrize(
    ("rejectors", "pending", "place"),
    [
        pytest.param(("Fit", "Other"), (), "backoff", id="another rejector"),
        pytest.param((), ("Fit",), "active", id="pending instead of rejected"),
    ],
)
def test_pods_with_other_rejectors_are_judged_by_themselves(
    rejectors: tuple[str, ...], pending: tuple[str, ...], place: str
) -> None:
    asked = Asked(Hint.QUEUE)
    world = world_of(asked)
    world.add(pod("z"))
    world.fail(world.pop(), *rejectors, pending=pending)
    world.queue.move_all(NODE_ADD, None, None)
    assert asked.pods == {"p0": 1, "z": 1}
    assert world.places()["z"] == place


def test_woken_pods_move_in_the_order_of_their_arrival() -> None:
    world = World(hints=[Asked(Hint.QUEUE).registered])
    names = [f"p{number}" for number in range(9)]
    for number, name in enumerate(names):
        world.waiting(name, priority=number % 3)
    moves = mock.Mock(wraps=world.lifecycle.move)
    with mock.patch.object(world.lifecycle, "move", moves):
        world.queue.move_all(NODE_ADD, None, None)
    entered = [call.args[0].name for call in moves.call_args_list]
    assert entered == names


def test_a_pod_is_asked_about_its_own_change() -> None:
    asked = Asked(event=ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL))
    world = world_of(asked)
    world.queue.move_all(LABELLED, pod("p7"), pod("p7"))
    assert woken(world) == ["p7"]


def test_a_pod_without_hint_for_the_event_wakes_with_its_replicas() -> None:
    world = World(hints=[RegisteredHint("Fit", NODE_ADD)])
    for number in range(3):
        world.waiting(f"p{number}")
    world.queue.move_all(NODE_ADD, None, None)
    assert woken(world) == ["p0", "p1", "p2"]
    assert dict(world.seen.hints) == {("Fit", "NodeAdd", "Queue"): 3}


CHECKS: dict[str, tuple[Precheck, int]] = {
    "all": (lambda waiting: True, 1),
    "one": (lambda waiting: waiting.name == "p3", 1),
    "none": (lambda waiting: False, 0),
}


@pytest.mark.parametrize("check", CHECKS)
def test_pods_that_the_event_leaves_alone_do_not_count(check: str) -> None:
    precheck, asked_times = CHECKS[check]
    asked = Asked(Hint.QUEUE)
    world = world_of(asked, equal=5)
    world.queue.move_all(NODE_ADD, None, None, precheck=precheck)
    expected = [name for name in [f"p{n}" for n in range(5)] if precheck(pod(name))]
    assert woken(world) == expected
    assert asked.pods.total() == asked_times
    assert world.seen.hints.total() == len(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_event_about_one_pod_wakes_only_this_pod(version: str) -> None:
    world = World(version=VERSIONS[version])
    for number in range(3):
        world.waiting(f"p{number}")
    world.queue.move_all(WILDCARD, None, pod("p1"))
    assert [name for name, place in world.places().items() if place != "unschedulable"] == ["p1"]


def test_a_pod_that_changed_is_no_longer_equal() -> None:
    asked = Asked()
    world = world_of(asked, equal=3)
    world.queue.update(pod("p1"), pod("p1", labels={"x": "y"}))
    world.queue.move_all(NODE_ADD, None, None)
    assert asked.pods == {"p0": 1, "p1": 1}
    world.queue.validate()


def test_equal_gated_pods_are_looked_at_once_for_an_event_of_their_gate() -> None:
    asked = Asked(event=POD_DELETE)
    gate = RegisteredHint("Gate", POD_DELETE, asked.registered.hint, replicas_agree=True)
    world = World(hints=[gate, hint("Fit", NODE_ADD)])
    for number in range(4):
        world.close_gate(f"p{number}")
        world.add(pod(f"p{number}"))
    world.queue.move_all(POD_DELETE, pod("gone", node="n"), None)
    world.queue.move_all(NODE_ADD, None, None)
    assert asked.pods == {"p0": 1}
