"""An event wakes one member of a group, and the others stay for it to take along.

Leaves out what an attempt of a group does (scheduler/tests/service/test_group_attempt.py).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.api.pod import Pod
from moorage.state.lifecycle import PodState
from scheduler.tests.state.build import NODE_ADD, V1_20, World, pod

Step = Callable[[World], object]


def group_of(waiting: Pod) -> str | None:
    """Pods are in a group by the first letter of the name, unless a label says otherwise."""
    name = waiting.metadata.labels.get("group", waiting.name[0])
    return None if name == "s" else name


def three_of_a_group(**settings) -> World:
    """Three members and two single pods, all rejected by Fit a minute ago."""
    world = World(group_of=group_of, **settings)
    for name in ("a1", "a2", "a3", "s1", "s2"):
        world.waiting(name)
    world.at(60)
    return world


def woken(world: World) -> None:
    world.queue.move_all(NODE_ADD, None, None)


def first_is_tried_alone(world: World) -> None:
    """Pop the first member, which goes back and takes no other along."""
    popped = world.pop()
    assert popped.pod.name == "a1"
    world.fail(popped, "Fit")


def first_takes_no_other_along(world: World) -> None:
    first_is_tried_alone(world)
    assert world.queue.companions is not None
    world.queue.companions.pass_on(pod("a1"))


def first_is_deleted(world: World) -> None:
    world.queue.delete(pod("a1"))


def another_scheduler_binds_the_first(world: World) -> None:
    """Let the cache hear of the node before the queue does, as the intake of pods does."""
    world.lifecycle.move(pod("a1"), PodState.BOUND, cause="seen on n1")
    world.queue.delete(pod("a1"))


def first_leaves_the_group(world: World) -> None:
    world.queue.update(pod("a1"), pod("a1", labels={"group": "s"}))


def first_fails_with_an_error(world: World) -> None:
    world.fail(world.pop())


def second_is_deleted(world: World) -> None:
    world.queue.delete(pod("a2"))


def second_is_gated(world: World) -> None:
    world.close_gate("a2")


WAITS = "unschedulable"
SINGLES = {"s1": "active", "s2": "active"}


@pytest.mark.parametrize(
    ("steps", "members"),
    [
        pytest.param(
            [woken],
            {"a1": "active", "a2": WAITS, "a3": WAITS},
            id="a single member is woken",
        ),
        pytest.param(
            [woken, woken],
            {"a1": "active", "a2": WAITS, "a3": WAITS},
            id="a second event wakes no other member before the first one is tried",
        ),
        pytest.param(
            [woken, first_is_tried_alone],
            {"a1": WAITS, "a2": WAITS, "a3": WAITS},
            id="a member that goes back for its group leaves the others",
        ),
        pytest.param(
            [woken, first_is_tried_alone, woken],
            {"a1": WAITS, "a2": "active", "a3": WAITS},
            id="the next event wakes the member that waits the longest",
        ),
        pytest.param(
            [woken, first_fails_with_an_error, woken],
            {"a1": "backoff", "a2": "active", "a3": WAITS},
            id="a member that waits out its backoff is no reason to leave the others",
        ),
        pytest.param(
            [woken, first_takes_no_other_along],
            {"a1": WAITS, "a2": "active", "a3": WAITS},
            id="a member that takes no other along passes its event on",
        ),
        pytest.param(
            [woken, first_is_deleted],
            {"a2": "active", "a3": WAITS},
            id="a woken member that is deleted passes its event on",
        ),
        pytest.param(
            [woken, another_scheduler_binds_the_first],
            {"a2": "active", "a3": WAITS},
            id="a woken member that another scheduler binds passes its event on",
        ),
        pytest.param(
            [woken, first_is_deleted, second_is_deleted],
            {"a3": "active"},
            id="so does the member after it",
        ),
        pytest.param(
            [second_is_gated, woken, first_is_deleted],
            {"a2": "gated", "a3": "active"},
            id="an event is not passed on to a gated member",
        ),
        pytest.param(
            [woken, first_leaves_the_group],
            {"a1": "active", "a2": "active", "a3": WAITS},
            id="a woken member that leaves the group passes its event on",
        ),
        pytest.param(
            [second_is_deleted, first_is_deleted],
            {"a3": WAITS},
            id="without an event nothing is passed on",
        ),
    ],
)
def test_which_members_an_event_wakes(steps: list[Step], members: dict[str, str]):
    world = three_of_a_group()
    for step in steps:
        step(world)
    singles = SINGLES if woken in steps else dict.fromkeys(SINGLES, WAITS)
    assert world.places() == {**members, **singles}


def binding_fails(world: World, name: str, *rejectors: str) -> None:
    """Try a member alone, and let it fail although it had a node."""
    popped = world.pop()
    assert popped.pod.name == name
    world.fail(popped, *rejectors)
    assert world.queue.companions is not None
    world.queue.companions.had_a_node(popped)


def one_unbound_and_one_woken(*rejectors: str) -> World:
    """Let the binding of a1 fail, and wake a2, which was rejected a moment ago, and s1."""
    world = World(group_of=group_of)
    world.add(pod("a1"))
    binding_fails(world, "a1", *rejectors)
    for name in ("a2", "s1"):
        world.waiting(name)
    woken(world)
    return world


def test_a_woken_member_is_not_popped_early_while_one_waits_whose_binding_failed():
    world = one_unbound_and_one_woken()
    assert world.drain() == ["s1"]
    assert world.places() == {"a1": "backoff", "a2": "backoff", "s1": "in-flight"}
    world.at(2)
    world.queue.flush_backoff()
    assert set(world.drain()) == {"a1", "a2"}


def test_a_woken_member_is_not_popped_early_while_one_waits_that_permit_rejected():
    world = one_unbound_and_one_woken("Label")
    assert world.drain() == ["s1"]
    assert world.places() == {"a1": WAITS, "a2": "backoff", "s1": "in-flight"}
    world.at(2)
    world.queue.flush_backoff()
    assert world.drain() == ["a2"]


def test_a_woken_member_is_popped_early_once_the_one_whose_binding_failed_has_gone():
    world = one_unbound_and_one_woken()
    world.queue.delete(pod("a1"))
    assert set(world.drain()) == {"a2", "s1"}


def test_groups_whose_bindings_failed_are_forgotten():
    world = World(group_of=lambda waiting: waiting.name)
    for number in range(200):
        name = f"p{number}"
        world.add(pod(name))
        binding_fails(world, name)
        world.queue.delete(pod(name))
    companions = world.queue.companions
    assert companions is not None
    assert len(companions._unbound) <= 64


def test_the_queue_of_1_20_wakes_every_member():
    world = three_of_a_group(version=V1_20)
    woken(world)
    assert set(world.places().values()) == {"active"}


def test_groups_that_are_gone_are_forgotten():
    world = World(group_of=lambda waiting: waiting.name)
    for number in range(200):
        world.waiting(f"p{number}")
        world.at(60 * (number + 1))
        woken(world)
        world.queue.end_in_flight(world.pop().uid)
    companions = world.queue.companions
    assert companions is not None
    assert len(companions._woken) <= 64
