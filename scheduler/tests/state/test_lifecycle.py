"""The lifecycle table, what it refuses, the histories it tells, and the bounds on them."""

import pytest

from moorage.base.clock import ManualClock
from moorage.state.cache import Cache
from moorage.state.history import Histories, HistoryEntry, PodHistory
from moorage.state.lifecycle import (
    TRANSITIONS,
    InvalidTransitionError,
    Lifecycle,
    PodState,
    mermaid,
)
from scheduler.tests.state.build import NODE_ADD, Table, World, pod

S = PodState
MOVES = [(origin, to) for origin in PodState for to in PodState if origin is not to]

# A way to reach each state, to start from.
WAY = {
    S.UNKNOWN: [],
    S.ACTIVE: [S.ACTIVE],
    S.BACKOFF: [S.BACKOFF],
    S.UNSCHEDULABLE: [S.UNSCHEDULABLE],
    S.GATED: [S.GATED],
    S.IN_FLIGHT: [S.ACTIVE, S.IN_FLIGHT],
    S.ASSUMED: [S.ACTIVE, S.IN_FLIGHT, S.ASSUMED],
    S.WAITING: [S.ASSUMED, S.WAITING],
    S.BINDING: [S.ASSUMED, S.BINDING],
    S.BOUND: [S.BOUND],
}


def reach(state: PodState) -> Lifecycle:
    lifecycle = Lifecycle(ManualClock())
    for step in WAY[state]:
        lifecycle.move(pod(), step, cause="test")
    assert lifecycle.state("uid-a") is state
    return lifecycle


@pytest.mark.parametrize(
    ("origin", "to"), [move for move in MOVES if move[0] is not S.GONE], ids=lambda s: s.value
)
def test_only_moves_in_the_table_are_allowed(origin, to):
    lifecycle = reach(origin)
    if to in TRANSITIONS[origin]:
        lifecycle.move(pod(), to, cause="test")
        # A pod that was never ours to schedule has no history, so its end is not remembered.
        forgotten = (origin, to) == (S.BOUND, S.GONE)
        assert lifecycle.state("uid-a") is (S.UNKNOWN if forgotten else to)
    else:
        with pytest.raises(InvalidTransitionError):
            lifecycle.move(pod(), to, cause="test")
        assert lifecycle.state("uid-a") is origin


def test_every_state_but_unknown_can_be_left_for_good_and_every_one_is_reached():
    assert set(TRANSITIONS) == set(PodState)
    reached = {to for moves in TRANSITIONS.values() for to in moves}
    assert reached == set(PodState) - {S.UNKNOWN}
    ends = {origin for origin, moves in TRANSITIONS.items() if S.GONE not in moves}
    assert ends == {S.UNKNOWN, S.GONE}


def test_a_refused_move_raises_with_the_history_of_the_pod():
    lifecycle = reach(S.IN_FLIGHT)
    lifecycle.move(pod(), S.GONE, cause="delete")
    with pytest.raises(InvalidTransitionError) as caught:
        lifecycle.move(pod(), S.BINDING, cause="test")
    assert str(caught.value).splitlines() == [
        "pod ns/a cannot move from unknown to binding; its history:",
        "  2026-01-01T00:00:00.000000Z -> active (test)",
        "  2026-01-01T00:00:00.000000Z -> in-flight (test)",
        "  2026-01-01T00:00:00.000000Z -> gone (delete)",
    ]


@pytest.mark.parametrize(
    ("state", "still"),
    [
        pytest.param(S.ASSUMED, True, id="assumed"),
        pytest.param(S.WAITING, True, id="waiting on Permit"),
        pytest.param(S.IN_FLIGHT, False, id="forgotten meanwhile"),
        pytest.param(S.BOUND, False, id="bound meanwhile"),
        pytest.param(S.UNKNOWN, False, id="removed meanwhile"),
    ],
)
def test_a_binding_task_moves_a_pod_only_while_it_is_assumed(state, still):
    lifecycle = reach(state)
    assert lifecycle.progress(pod(), S.BINDING, cause="allowed") is still
    after = lifecycle.state("uid-a")
    assert (after is S.BINDING) == still
    told = lifecycle.histories.history_of("uid-a")[-1].what
    assert told == ("-> binding" if still else "no longer assumed when binding")


def test_the_end_of_an_unknown_pod_is_refused():
    with pytest.raises(InvalidTransitionError):
        Lifecycle(ManualClock()).end_history("uid-a", cause="test")


def test_the_history_of_a_pod_from_waiting_to_gone():
    world = World()
    cache = Cache(Table(), world.clock, lifecycle=world.lifecycle)
    world.waiting()
    world.at(1)
    world.queue.move_all(NODE_ADD, None, None)
    world.at(3)
    world.queue.flush_backoff()
    world.at(4)
    queued = world.pop()
    cache.assume_pod(queued.pod, "n1")
    world.lifecycle.move(queued.pod, S.WAITING, cause="Permit of Gang")
    world.lifecycle.move(queued.pod, S.BINDING, cause="allowed")
    world.queue.end_in_flight(queued.uid)
    cache.forget_pod(queued.pod)
    world.fail(queued)
    world.at(6)
    world.queue.flush_backoff()
    queued = world.pop()
    cache.assume_pod(queued.pod, "n2")
    world.queue.end_in_flight(queued.uid)
    world.at(7)
    cache.add_pod(pod(node="n2"))
    world.queue.delete(pod(node="n2"))
    told = [
        (world.seconds(entry.at_ns), entry.what, entry.cause)
        for entry in world.lifecycle.histories.history_of("uid-a")
    ]
    assert told == [
        (0, "-> active", "UnschedulablePodAdd"),
        (0, "-> in-flight", "pop"),
        (0, "-> unschedulable", "ScheduleAttemptFailure"),
        (1, "-> backoff", "NodeAdd"),
        (3, "-> active", "BackoffComplete"),
        (4, "-> in-flight", "pop"),
        (4, "-> assumed", "assumed on n1"),
        (4, "-> waiting", "Permit of Gang"),
        (4, "-> binding", "allowed"),
        (4, "-> in-flight", "forgotten on n1"),
        (4, "-> backoff", "ScheduleAttemptFailure"),
        (6, "-> active", "BackoffComplete"),
        (6, "-> in-flight", "pop"),
        (6, "-> assumed", "assumed on n2"),
        (7, "-> bound", "confirmed on n2"),
    ]
    world.queue.validate()
    cache.validate()


def test_a_pod_deleted_while_being_bound_is_told_and_ends():
    world = World()
    cache = Cache(Table(), world.clock, lifecycle=world.lifecycle)
    world.add(pod())
    queued = world.pop()
    cache.assume_pod(queued.pod, "n1")
    world.queue.end_in_flight(queued.uid)
    world.queue.delete(pod())
    cache.forget_pod(pod())
    assert world.lifecycle.state("uid-a") is S.IN_FLIGHT
    world.queue.end_in_flight(queued.uid)
    assert world.lifecycle.state("uid-a") is S.GONE
    told = [entry.what for entry in world.lifecycle.histories.history_of("uid-a")]
    assert told[-4:] == ["-> assumed", "deleted while being scheduled", "-> in-flight", "-> gone"]
    assert len(world.lifecycle) == 0


def test_a_pod_bound_elsewhere_leaves_the_queue():
    world = World()
    cache = Cache(Table(), world.clock, lifecycle=world.lifecycle)
    world.add(pod("a"), pod("b"))
    world.pop()
    for name in "ab":
        cache.add_pod(pod(name, node="n1"))
        world.queue.delete(pod(name, node="n1"))
    world.queue.end_in_flight("uid-a")
    assert world.lifecycle.in_state(S.BOUND) == ["uid-a", "uid-b"]
    assert world.places() == {}


def test_a_second_copy_of_an_assumed_pod_does_not_change_its_state():
    world = World()
    cache = Cache(Table(), world.clock, lifecycle=world.lifecycle)
    world.add(pod())
    cache.assume_pod(world.pop().pod, "n1")
    world.queue.end_in_flight("uid-a")
    world.add(pod())
    assert world.lifecycle.state("uid-a") is S.ASSUMED
    copy = world.pop()
    assert world.lifecycle.state("uid-a") is S.ASSUMED
    world.queue.end_in_flight(copy.uid)
    assert world.lifecycle.state("uid-a") is S.ASSUMED
    world.queue.validate()
    cache.validate()


class TestHistories:
    def test_histories_are_filtered_by_pod_and_by_cause(self):
        histories = Histories(ManualClock(0))
        histories.add_entry("1", ("ns", "a"), "waits", cause="X")
        histories.add_entry("2", ("ns", "b"), "waits", cause="Y")
        histories.add_entry("1", ("ns", "a"), "moves", cause="Y")
        a = (HistoryEntry(0, "waits", "X"), HistoryEntry(0, "moves", "Y"))
        assert histories.history_of("1") == a
        assert histories.history_of("3") == ()
        assert histories.by_cause("Y") == {"1": a[1:], "2": (HistoryEntry(0, "waits", "Y"),)}
        found = histories.find("ns", "a")
        assert found is not None
        assert (found.uid, found.entries) == ("1", a)
        assert histories.find("ns", "c") is None

    def test_a_name_finds_the_history_of_the_newest_pod(self):
        histories = Histories(ManualClock(0), finished_max=0)
        histories.add_entry("1", ("ns", "a"), "waits", cause="X")
        histories.add_entry("2", ("ns", "a"), "waits", cause="X")
        histories.finish("1")
        found = histories.find("ns", "a")
        assert found is not None
        assert found.uid == "2"
        histories.finish("2")
        assert histories.find("ns", "a") is None

    def test_a_history_keeps_its_latest_entries(self):
        histories = Histories(ManualClock(0), entries_max=3)
        for number in range(5):
            histories.add_entry("1", ("ns", "a"), str(number), cause="X")
        history = histories.get("1")
        assert history is not None
        assert [entry.what for entry in history.entries] == ["2", "3", "4"]
        assert history.dropped == 2

    def test_all_unfinished_and_the_latest_finished_histories_are_kept(self):
        histories = Histories(ManualClock(0), finished_max=2)
        for uid in "12345":
            histories.add_entry(uid, ("ns", uid), "waits", cause="X")
        for uid in "1234":
            histories.finish(uid)
            if uid == "2":
                histories.reopen("1")
        assert [history.uid for history in histories] == ["1", "3", "4", "5"]

    def test_the_latest_end_of_a_pod_counts(self):
        histories = Histories(ManualClock(0), finished_max=2)
        for uid in "123":
            histories.add_entry(uid, ("ns", uid), "waits", cause="X")
        for uid in "1213":
            histories.finish(uid)
        assert [history.uid for history in histories] == ["1", "3"]

    def test_a_pod_that_comes_back_keeps_its_history(self):
        clock = ManualClock(0)
        lifecycle = Lifecycle(clock, Histories(clock, finished_max=1))
        lifecycle.move(pod(), S.ACTIVE, cause="add")
        lifecycle.move(pod(), S.GONE, cause="delete")
        lifecycle.move(pod(), S.ACTIVE, cause="add")
        for name in "bc":
            lifecycle.move(pod(name), S.ACTIVE, cause="add")
            lifecycle.move(pod(name), S.GONE, cause="delete")
        told = [entry.what for entry in lifecycle.histories.history_of("uid-a")]
        assert told == ["-> active", "-> gone", "-> active"]

    def test_finishing_the_history_of_an_unknown_pod_does_nothing(self):
        histories = Histories(ManualClock(0))
        histories.finish("1")
        assert len(histories) == 0

    def test_notes_about_pods_that_left_do_not_pile_up(self):
        clock = ManualClock(0)
        lifecycle = Lifecycle(clock, Histories(clock, finished_max=2))
        for number in range(10):
            lifecycle.add_entry(pod(f"p{number}"), "came late", cause="X")
        assert [history.uid for history in lifecycle.histories] == ["uid-p8", "uid-p9"]

    def test_pods_that_were_never_queued_have_no_history(self):
        lifecycle = reach(S.BOUND)
        lifecycle.move(pod(), S.GONE, cause="test")
        assert len(lifecycle.histories) == 0


def test_an_entry_of_a_history_is_printed_as_one_line():
    assert str(HistoryEntry(1_500_000_000, "-> active", "NodeAdd")) == (
        "1970-01-01T00:00:01.500000Z -> active (NodeAdd)"
    )
    assert PodHistory("1", ("ns", "a")).entries == ()


def test_the_diagram_has_every_move_once():
    lines = mermaid().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    active --> in_flight: popped" in lines
    assert len(lines) == 3 + sum(map(len, TRANSITIONS.values()))
    assert len(set(lines)) == len(lines)
