"""Backoff: how long a failed pod backs off, in which window it leaves, in what order."""

import pytest

from moorage.state.backoff_times import backoff_duration_ns
from moorage.state.contracts import QueueSettings
from scheduler.tests.state.build import NODE_ADD, SECOND, World, pod


@pytest.mark.parametrize(
    ("initial", "longest", "seconds"),
    [
        pytest.param(1, 10, [1, 2, 4, 8, 10, 10, 10], id="defaults double up to ten seconds"),
        pytest.param(3, 10, [3, 6, 10, 10], id="the longest backoff need not be a power of two"),
        pytest.param(10, 10, [10, 10], id="initial equal to the longest"),
        pytest.param(20, 10, [10, 10], id="an initial backoff above the longest is cut"),
    ],
)
def test_duration_doubles_and_is_capped(initial, longest, seconds):
    settings = QueueSettings(backoff_initial_ns=initial * SECOND, backoff_max_ns=longest * SECOND)
    counts = range(1, len(seconds) + 1)
    assert [backoff_duration_ns(n, settings) / SECOND for n in counts] == seconds


def test_many_failures_do_not_overflow():
    assert backoff_duration_ns(100_000, QueueSettings()) == 10 * SECOND


def released_at(world: World, tick: float = 1.0) -> float:
    """Flush every tick from the next whole one on; the time at which a pod comes out."""
    now = world.seconds(world.clock.now_ns())
    at = (now // tick) * tick
    while True:
        at += tick
        world.at(at)
        world.queue.flush_backoff()
        if world.places() == {"a": "active"}:
            return at
        assert at < now + 60


@pytest.mark.parametrize(
    ("fails_at", "failures", "expiry", "released"),
    [
        pytest.param(10.4, 1, 11, 12, id="within a second: kept at 11, released at 12"),
        pytest.param(
            10.0, 1, 11, 12, id="at a whole second: the end of the window still holds the pod"
        ),
        pytest.param(10.999, 1, 11, 12, id="just before the next second"),
        pytest.param(10.4, 3, 14, 15, id="the third failure waits four seconds"),
        pytest.param(10.4, 9, 20, 21, id="never more than ten seconds"),
    ],
)
def test_errors_wait_whole_windows(fails_at, failures, expiry, released):
    world = World()
    world.add(pod())
    for _ in range(failures - 1):
        world.fail(world.pop())
        world.queue.activate([pod()])
    queued = world.pop()
    world.at(fails_at)
    world.fail(queued)
    assert world.seconds(queued.backoff_expiration_ns) == expiry
    next_ns = world.next_release_ns()
    assert next_ns is not None
    assert world.seconds(next_ns) == released
    assert released_at(world) == released


def test_the_promised_release_is_exact():
    world = World()
    world.add(pod())
    world.at(0.7)
    world.fail(world.pop())
    due_ns = world.next_release_ns()
    assert due_ns is not None
    world.clock.advance_ns(due_ns - world.clock.now_ns() - 1)
    world.queue.flush_backoff()
    assert world.places() == {"a": "backoff"}
    world.clock.advance_ns(1)
    world.queue.flush_backoff()
    assert world.places() == {"a": "active"}
    assert world.next_release_ns() is None


def test_without_windows_the_release_is_one_nanosecond_after_the_end():
    world = World(settings=QueueSettings(pop_from_backoff=False))
    world.add(pod())
    world.at(0.7)
    world.fail(world.pop())
    due_ns = world.next_release_ns()
    assert due_ns == world.start_ns + round(1.7 * SECOND) + 1
    world.at(1.7)
    world.queue.flush_backoff()
    assert world.places() == {"a": "backoff"}
    world.clock.advance_ns(1)
    world.queue.flush_backoff()
    assert world.places() == {"a": "active"}


@pytest.mark.parametrize(
    ("history", "counts", "seconds"),
    [
        pytest.param("r", (1, 0), 1, id="one rejection"),
        pytest.param("rrr", (3, 0), 4, id="rejections add up"),
        pytest.param("ree", (1, 2), 2, id="errors win over rejections"),
        pytest.param("eer", (1, 0), 1, id="a rejection ends a series of errors"),
        pytest.param("rrere", (3, 1), 1, id="only errors in a row count"),
    ],
)
def test_rejections_and_errors_are_counted_for_the_backoff(history, counts, seconds):
    world = World()
    world.add(pod())
    for index, kind in enumerate(history):
        if index:
            world.queue.activate([pod()])
        queued = world.pop()
        world.queue.move_all(NODE_ADD, None, None)
        world.fail(queued, *(["Fit"] if kind == "r" else []))
        assert world.places() == {"a": "backoff"}
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == counts
    assert world.seconds(queued.backoff_expiration_ns) == seconds
    assert queued.attempts == len(history)


def test_no_pod_backs_off_when_the_longest_backoff_is_zero():
    world = World(settings=QueueSettings(backoff_max_ns=0))
    world.add(pod())
    world.fail(world.pop())
    assert world.places() == {"a": "active"}


def test_a_window_is_released_by_priority():
    world = World()
    for name, priority in (("low", 1), ("high", 9), ("mid", 5)):
        world.waiting(name, priority=priority)
    world.queue.move_all(NODE_ADD, None, None)
    assert set(world.places().values()) == {"backoff"}
    world.at(2)
    world.queue.flush_backoff()
    assert world.drain() == ["high", "mid", "low"]


def test_a_flush_with_nothing_due_does_not_wake_the_popper():
    world = World()
    world.add(pod())
    world.fail(world.pop())
    before = world.wakes
    world.queue.flush_backoff()
    assert world.wakes == before
    world.at(2)
    world.queue.flush_backoff()
    assert world.wakes == before + 1


class TestPopFromBackoff:
    def test_rejected_pods_are_popped_when_nothing_is_active(self):
        world = World()
        world.waiting()
        world.queue.move_all(NODE_ADD, None, None)
        assert world.places() == {"a": "backoff"}
        assert world.drain() == ["a"]
        assert world.seen.entered["active", "PopFromBackoffQ"] == 1

    def test_active_pods_come_first(self):
        world = World()
        world.waiting("a", priority=100)
        world.queue.move_all(NODE_ADD, None, None)
        world.add(pod("b"))
        assert world.drain() == ["b", "a"]

    def test_of_one_window_the_highest_priority_is_popped(self):
        world = World()
        for name, priority in (("low", 1), ("high", 9), ("mid", 5)):
            world.waiting(name, priority=priority)
        world.queue.move_all(NODE_ADD, None, None)
        assert world.drain() == ["high", "mid", "low"]

    def test_pods_that_met_an_error_wait(self):
        world = World()
        world.add(pod())
        world.fail(world.pop())
        assert world.drain() == []

    def test_without_the_feature_gate_no_pod_is_popped_from_backoff(self):
        world = World(settings=QueueSettings(pop_from_backoff=False))
        world.waiting()
        wakes = world.wakes
        world.queue.move_all(NODE_ADD, None, None)
        assert world.places() == {"a": "backoff"}
        assert (world.drain(), world.wakes) == ([], wakes)

    def test_entering_backoff_wakes_the_popper(self):
        world = World()
        world.waiting()
        wakes = world.wakes
        world.queue.move_all(NODE_ADD, None, None)
        assert world.wakes == wakes + 1


def test_an_update_keeps_the_place_in_backoff_q_and_the_end_of_backoff():
    world = World()
    world.waiting("a", priority=1)
    world.waiting("b", priority=2)
    world.queue.move_all(NODE_ADD, None, None)
    expiry = world.queue.pending().backoff[0].backoff_expiration_ns
    world.at(0.9)
    world.queue.update(pod("a", priority=1), pod("a", priority=3))
    summary = world.queue.pending()
    assert [each.backoff_expiration_ns for each in summary.backoff] == [expiry, expiry]
    assert world.drain() == ["a", "b"]


def test_updates_move_pods_to_their_new_place_among_equals_by_arrival():
    priorities = {f"p{n}": (n * 7) % 5 for n in range(20)}
    world = World()
    world.add(*[pod(name, priority=priority) for name, priority in priorities.items()])
    for name, priority in {"p0": 10, "p5": 5, "p10": 0, "p1": 9, "p6": 4, "p3": 50}.items():
        world.queue.update(pod(name, priority=priorities[name]), pod(name, priority=priority))
        world.queue.validate()
        priorities[name] = priority
    world.queue.delete(pod("p4"))
    del priorities["p4"]
    assert world.drain() == sorted(priorities, key=lambda name: -priorities[name])


@pytest.mark.parametrize(
    ("shown", "has_news"),
    [
        pytest.param(pod(version="2", nominated="n1"), False, id="a report about the pod"),
        pytest.param(pod(version="2", labels={"a": "b"}), True, id="another label"),
    ],
)
def test_a_change_of_a_pod_in_backoff_is_news_unless_only_its_status_changed(shown, has_news):
    world = World()
    world.add(pod())
    queued = world.pop()
    queued.rejected_by((), message="no room")
    world.queue.add_unschedulable_if_not_present(queued)
    assert (world.places(), queued.has_news) == ({"a": "backoff"}, False)
    world.queue.update(pod(), shown)
    assert queued.has_news is has_news
