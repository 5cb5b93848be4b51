"""Popping, activating, flushing: order, bookkeeping of attempts, metric facts, wake-ups."""

import pytest

from moorage.state.contracts import QueueSettings
from scheduler.tests.state.build import NODE_ADD, SECOND, World, pod


def test_pods_are_popped_by_priority_then_age():
    world = World()
    for second, (name, priority) in enumerate(
        [("old", None), ("high", 10), ("young", 0), ("higher", 11)]
    ):
        world.at(second)
        world.add(pod(name, priority=priority))
    assert world.drain() == ["higher", "high", "old", "young"]


def test_pods_of_one_moment_and_priority_leave_as_they_came():
    world = World()
    names = [f"p{n}" for n in range(30)]
    world.add(*map(pod, names))
    assert world.drain() == names


def test_an_empty_queue_pops_nothing():
    assert World().queue.pop() is None


def test_an_update_changes_the_order_and_is_popped():
    world = World()
    world.add(pod("a"), pod("b"), pod("c"))
    world.queue.update(pod("b"), pod("b", priority=3, labels={"x": "y"}))
    queued = world.pop()
    assert (queued.pod.name, queued.pod.metadata.labels) == ("b", {"x": "y"})
    assert world.drain() == ["a", "c"]


def test_an_update_keeps_what_the_queue_remembers():
    world = World()
    queued = world.waiting()
    world.at(5)
    world.queue.update(pod(), pod(priority=7))
    assert world.places() == {"a": "unschedulable"}
    world.queue.activate([pod()])
    again = world.pop()
    assert again is queued
    assert (again.priority, again.attempts, again.unschedulable_count) == (7, 2, 1)
    assert world.seconds(again.timestamp_ns) == 0


def test_timestamps_follow_returns_only():
    world = World()
    world.add(pod())
    world.at(1)
    queued = world.pop()
    world.at(2)
    world.fail(queued, "Fit")
    world.at(30)
    world.queue.move_all(NODE_ADD, None, None)
    world.at(40)
    assert world.seconds(world.pop().timestamp_ns) == 2
    assert queued.initial_attempt_ns == world.start_ns
    world.at(50)
    world.fail(queued)
    assert world.seconds(queued.timestamp_ns) == 50


def test_a_popped_pod_still_shows_who_rejected_it():
    world = World()
    world.add(pod())
    world.fail(world.pop(), "Fit", pending=["Claim"])
    world.queue.activate([pod()])
    queued = world.pop()
    assert queued.unschedulable_plugins == {"Fit"}
    assert queued.pending_plugins == {"Claim"}
    world.fail(queued)
    assert queued.rejectors == set()
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (1, 1)


class TestPopSpecific:
    def test_pop_specific_takes_an_active_pod_out_of_turn(self):
        world = World()
        world.add(pod("a"), pod("b"))
        queued = world.queue.pop_specific(pod("b"))
        assert queued is not None
        assert (queued.pod.name, queued.attempts) == ("b", 1)
        assert world.places() == {"a": "active", "b": "in-flight"}
        assert world.queue.pending().scheduling_cycle == 1

    def test_pop_specific_takes_a_waiting_pod(self):
        world = World()
        waiting = world.waiting()
        assert world.queue.pop_specific(pod()) is waiting

    @pytest.mark.parametrize("where", ["gated", "in flight", "unknown"])
    def test_pop_specific_returns_none_for_a_pod_that_cannot_be_tried(self, where):
        world = World()
        if where == "gated":
            world.close_gate("a")
        if where != "unknown":
            world.add(pod())
            world.queue.pop()
        assert world.queue.pop_specific(pod()) is None
        world.queue.validate()


def test_activating_several_pods_wakes_once():
    world = World()
    for name in "abc":
        world.waiting(name)
    wakes = world.wakes
    world.queue.activate([pod("c"), pod("x"), pod("a")])
    assert world.wakes == wakes + 1
    assert world.places() == {"a": "active", "b": "unschedulable", "c": "active"}
    assert world.seen.entered["active", "ForceActivate"] == 2


class TestLeftoverFlush:
    def test_the_leftover_flush_marks_and_moves_only_overdue_pods(self):
        world = World()
        first = world.waiting("a")
        world.at(100)
        second = world.waiting("b")
        world.at(301)
        world.queue.flush_unschedulable_leftover()
        assert world.places() == {"a": "active", "b": "unschedulable"}
        assert (first.was_flushed, second.was_flushed) == (True, False)
        assert world.seen.entered["active", "UnschedulableTimeout"] == 1
        world.fail(world.pop(), "Fit")
        assert first.was_flushed is False

    def test_a_pod_still_backing_off_goes_to_backoff(self):
        world = World(settings=QueueSettings(unschedulable_max_ns=SECOND // 2))
        world.waiting()
        world.at(0.6)
        world.queue.flush_unschedulable_leftover()
        assert world.places() == {"a": "backoff"}

    def test_the_leftover_flush_is_replayed_for_pods_in_flight(self):
        world = World()
        world.waiting("old")
        world.at(301)
        world.add(pod("a"))
        queued = world.pop()
        world.queue.flush_unschedulable_leftover()
        world.fail(queued, "Fit")
        assert world.places() == {"a": "backoff", "old": "active"}


def test_gauges_and_counters_follow_a_pods_way():
    world = World()
    world.add(pod())
    assert world.seen.now() == {"active": 1}
    queued = world.pop()
    assert world.seen.now() == {}
    world.fail(queued, "Fit", "Label")
    assert world.seen.now() == {"unschedulable": 1}
    assert +world.seen.rejected == {"Fit": 1, "Label": 1}
    world.queue.move_all(NODE_ADD, None, None)
    assert world.seen.now() == {"backoff": 1}
    assert +world.seen.rejected == {"Fit": 1, "Label": 1}
    world.at(3)
    world.queue.flush_backoff()
    assert world.seen.now() == {"active": 1}
    world.pop()
    assert world.seen.now() == {}
    assert not +world.seen.rejected
    assert world.seen.entered == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable", "gated"])
def test_a_deleted_pod_takes_its_counts_along(where):
    """kube-scheduler leaves ``unschedulable_pods`` behind for active and backoff."""
    world = World()
    if where == "gated":
        world.close_gate("a")
        world.add(pod())
    else:
        world.waiting()
        if where == "active":
            world.queue.activate([pod()])
        elif where == "backoff":
            world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": where}
    assert sum(world.seen.rejected.values()) == 1
    world.queue.delete(pod())
    assert world.seen.now() == {}
    assert not +world.seen.rejected
    assert len(world.queue) == 0


def test_the_summary_is_printed_as_kube_scheduler_does():
    world = World()
    world.waiting("w")
    world.add(pod("e"))
    world.fail(world.pop())
    world.close_gate("g")
    world.add(pod("g"), pod("x"), pod("y"), pod("z"))
    world.pop()
    summary = world.queue.pending()
    assert summary.summary_text == "activeQ:2; backoffQ:1; unschedulablePods:2"
    assert [each.name for each in summary.queued_pods()] == ["y", "z", "e", "w", "g"]
    assert summary.in_flight == ("uid-x",)
    assert summary.scheduling_cycle == 3
    assert summary.unschedulable[0].unschedulable_plugins == ("Fit",)


@pytest.mark.parametrize(
    ("steps", "wakes"),
    [
        pytest.param(["add"], 1, id="a new pod"),
        pytest.param(["add", "update"], 1, id="an update of an active pod does not"),
        pytest.param(["update"], 1, id="an update of an unknown pod"),
        pytest.param(["gate", "add"], 0, id="a gated pod does not wake the popper"),
        pytest.param(["add", "delete"], 1, id="a deleted pod does not wake the popper"),
    ],
)
def test_the_changes_that_wake_the_popper(steps, wakes):
    world = World()
    for step in steps:
        if step == "update":
            world.queue.update(pod(), pod(labels={"x": "y"}))
        elif step == "delete":
            world.queue.delete(pod())
        elif step == "gate":
            world.close_gate("a")
        else:
            world.add(pod())
    assert world.wakes == wakes
