"""Records of the queue: the order of the pods, the end of their wait, the events that wake them."""

from __future__ import annotations

from typing import Any

from moorage.api.changes import WILDCARD, Action, ClusterEvent, Resource
from moorage.state.contracts import RegisteredHint
from moorage.state.pending import QueueCounts
from moorage.state.queue_reader import QueuedRecord, QueueRecord
from moorage.state.queue_version import v1_20
from scheduler.tests.state.build import World, pod

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
POD_DELETE = ClusterEvent(Resource.POD, Action.DELETE)
HINTS = [
    RegisteredHint("Fit", NODE_ADD),
    RegisteredHint("Fit", POD_DELETE),
    RegisteredHint("Gate", POD_DELETE),
    RegisteredHint("Ports", NODE_ADD),
]


def look(world: World, count: int = 9) -> QueueRecord:
    before = world.queue.pending()
    found = world.queue.reader.first(count, counts=world.queue.counts())
    assert world.queue.pending() == before, "looking changed the queue"
    world.queue.validate()
    return found


def names(records: tuple[QueuedRecord, ...]) -> list[str]:
    return [each.pending.pod.name for each in records]


def waking(record: QueuedRecord) -> dict[str, Any]:
    return {plugin: tuple(events) for plugin, events in record.waking.items()}


def test_active_pods_are_listed_in_the_order_in_which_they_are_popped() -> None:
    world = World(hints=HINTS)
    world.add(pod("late", priority=0), pod("high", priority=9), pod("mid", priority=5))
    listed = names(look(world).active)
    assert listed == ["high", "mid", "late"]
    assert names(look(world, 2).active) == ["high", "mid"]
    assert world.drain() == listed


def test_a_pod_in_backoff_is_held_until_the_second_after_its_backoff() -> None:
    world = World(hints=HINTS)
    world.at(10.4)
    world.waiting("rejected")
    world.queue.move_all(NODE_ADD, None, None)
    world.add(pod("errored"))
    world.fail(world.pop())
    found = look(world)
    told = [
        (each.pending.pod.name, world.seconds(each.release_ns), each.errored)
        for each in found.backoff
    ]
    assert told == [("rejected", 12.0, False), ("errored", 12.0, True)]
    world.at(11.9)
    world.queue.flush_backoff()
    assert world.places() == {"rejected": "backoff", "errored": "backoff"}
    world.at(12.0)
    world.queue.flush_backoff()
    assert world.places() == {"rejected": "active", "errored": "active"}


def test_a_waiting_pod_names_the_events_that_its_rejectors_registered() -> None:
    world = World(hints=HINTS)
    world.waiting("a", "Fit", "Gate")
    world.close_gate("held")
    world.add(pod("held"))
    found = look(world)
    assert [waking(each) for each in found.unschedulable] == [
        {"Fit": (NODE_ADD, POD_DELETE), "Gate": (POD_DELETE,)}
    ]
    assert [waking(each) for each in found.gated] == [{"Gate": (POD_DELETE,)}]
    assert found.counts == QueueCounts(
        active=0,
        backoff=0,
        unschedulable=1,
        gated=1,
        in_flight=0,
        scheduling_cycle=1,
        move_request_cycle=-1,
    )


def test_in_the_queue_of_v1_20_any_event_wakes_a_waiting_pod() -> None:
    world = World(hints=HINTS, version=v1_20(lambda namespace: {}))
    world.waiting("a", "Fit")
    assert [waking(each) for each in look(world).unschedulable] == [{"": (WILDCARD,)}]


def test_no_more_pods_are_listed_than_asked_for_and_all_are_counted() -> None:
    world = World(hints=HINTS)
    for name in ("a", "b", "c"):
        world.waiting(name)
    found = look(world, 2)
    assert names(found.unschedulable) == ["a", "b"]
    assert found.counts.unschedulable == 3
