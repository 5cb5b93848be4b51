"""What happens while an attempt runs is kept, replayed when the pod comes back, then dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.state.contracts import Hint, NullObserver, QueueSettings
from moorage.state.in_flight import InFlight
from scheduler.tests.state.build import NODE_ADD, NODE_LABEL, NODE_TAINT, PVC_ADD, World, hint, pod


@pytest.mark.parametrize(
    ("rejectors", "pending", "events", "after"),
    [
        pytest.param(["Fit"], [], [], "unschedulable", id="no event: waits"),
        pytest.param(["Fit"], [], [NODE_ADD], "backoff", id="an event that helps: after backoff"),
        pytest.param(
            ["Fit"],
            [],
            [PVC_ADD],
            "unschedulable",
            id="an event that other plugins registered: waits",
        ),
        pytest.param(
            ["Label"], [], [NODE_LABEL], "unschedulable", id="the hint answers SKIP: waits"
        ),
        pytest.param(
            ["Fit", "Label"],
            [],
            [NODE_LABEL, NODE_ADD],
            "backoff",
            id="one of several events helps",
        ),
        pytest.param(
            [], ["Claim"], [PVC_ADD], "active", id="an event of the pending plugin: at once"
        ),
        pytest.param(
            ["Fit"],
            ["Claim"],
            [NODE_ADD],
            "backoff",
            id="an event of a rejector other than the pending plugin",
        ),
        pytest.param(
            ["Fit"],
            ["Claim"],
            [NODE_ADD, PVC_ADD],
            "active",
            id="events of both: the pending plugin decides",
        ),
        pytest.param([], [], [], "backoff", id="an error needs no event"),
        pytest.param([], [], [NODE_ADD], "backoff", id="an error is retried after backoff anyway"),
    ],
)
def test_a_failed_pod_goes_where_rejectors_and_events_in_flight_say(
    rejectors, pending, events, after
):
    world = World()
    world.add(pod())
    queued = world.pop()
    for event in events:
        world.queue.move_all(event, None, None)
    wakes = world.wakes
    world.fail(queued, *rejectors, pending=pending)
    assert world.places() == {"a": after}
    assert world.wakes - wakes == (after != "unschedulable")
    assert not +world.seen.kept


def test_events_before_the_pop_are_not_replayed():
    world = World()
    world.add(pod("a"), pod("b"))
    first = world.pop()
    world.queue.move_all(NODE_ADD, None, None)
    second = world.pop()
    world.fail(second, "Fit")
    world.fail(first, "Fit")
    assert world.places() == {"a": "backoff", "b": "unschedulable"}


@pytest.mark.parametrize("assumed", [False, True])
def test_the_pods_own_update_in_flight_is_replayed(assumed):
    update = ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL)
    seen = []

    def ask(waiting, old, new):
        seen.append((old.metadata.labels, new.metadata.labels))
        return Hint.QUEUE

    world = World(hints=[hint("Fit", update, ask)])
    world.add(pod())
    queued = world.pop()
    world.queue.update(pod(), pod(labels={"x": "y"}), assumed=assumed)
    world.fail(queued, "Fit")
    assert world.places() == {"a": "backoff"}
    assert seen == [({}, {"x": "y"})]


def test_activation_in_flight_is_for_that_pod_only():
    world = World()
    world.add(pod("a"), pod("b"))
    first, second = world.pop(), world.pop()
    world.queue.activate([pod("b")])
    world.fail(first, "Fit")
    world.fail(second, "Fit")
    assert world.places() == {"a": "unschedulable", "b": "backoff"}


def test_events_that_no_plugin_registered_are_not_kept():
    world = World()
    world.add(pod())
    world.pop()
    world.queue.move_all(NODE_TAINT, None, None)
    world.queue.move_all(NODE_ADD, None, None)
    assert +world.seen.kept == {"PodPopped": 1, "NodeAdd": 1}


def test_events_without_a_pod_in_flight_are_not_kept():
    world = World()
    world.queue.move_all(NODE_ADD, None, None)
    assert not world.seen.kept


def test_done_drops_events_that_no_pod_needs():
    #   [a] NodeAdd [b] NodeLabel PvcAdd [c]
    world = World()
    world.add(pod("a"), pod("b"), pod("c"))
    world.pop()
    world.queue.move_all(NODE_ADD, None, None)
    world.pop()
    world.queue.move_all(NODE_LABEL, None, None)
    world.queue.move_all(PVC_ADD, None, None)
    world.pop()
    kept = []
    for name in ("b", "a", "a", "c"):
        world.queue.end_in_flight(f"uid-{name}")
        world.queue.validate()
        kept.append({label: n for label, n in sorted(world.seen.kept.items()) if n})
    assert kept == [
        {"NodeAdd": 1, "NodeUpdateNodeLabel": 1, "PersistentVolumeClaimAdd": 1, "PodPopped": 2},
        {"PodPopped": 1},
        {"PodPopped": 1},
        {},
    ]


def test_a_second_copy_is_dropped_when_popped_too_early(caplog):
    world = World()
    world.add(pod())
    world.pop()
    world.add(pod())
    assert world.places() == {"a": "active"}
    assert world.queue.pop() is None
    assert world.places() == {"a": "in-flight"}
    assert "the same pod is tracked in multiple places in the scheduler: ns/a" in caplog.text


def test_a_second_copy_takes_over_when_the_attempt_ends():
    world = World()
    world.add(pod())
    world.pop()
    world.add(pod())
    world.queue.end_in_flight("uid-a")
    assert world.places() == {"a": "active"}
    assert world.pop().attempts == 1


def test_a_pod_given_back_beside_its_copy_is_dropped(caplog):
    world = World()
    world.add(pod())
    queued = world.pop()
    world.add(pod())
    world.fail(queued, "Fit")
    assert world.places() == {"a": "active"}
    assert "Pod ns/a is already present in the active queue" in caplog.text
    assert world.pop() is not queued


def test_coming_back_after_done_is_retried_after_backoff(caplog):
    world = World()
    world.add(pod())
    queued = world.pop()
    world.queue.end_in_flight(queued.uid)
    world.fail(queued, "Fit")
    assert world.places() == {"a": "backoff"}
    assert "not known" in caplog.text


def test_lost_events_count_as_helping():
    world = World(settings=QueueSettings(in_flight_events_max=3))
    world.add(pod("a"), pod("b"))
    first = world.pop()
    for _ in range(4):
        world.queue.move_all(PVC_ADD, None, None)
    second = world.pop()
    world.queue.validate()
    world.fail(second, "Fit")
    world.fail(first, "Fit")
    assert world.places() == {"a": "backoff", "b": "unschedulable"}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("begin"), st.sampled_from("abcd")),
            st.tuples(st.just("done"), st.sampled_from("abcd")),
            st.tuples(st.just("event"), st.just("")),
        ),
        max_size=40,
    )
)
def test_replay_equals_one_list_for_each_pod(steps):
    """Against the obvious: every pod in flight keeps its own list of events."""
    kept = InFlight(1000, NullObserver())
    naive: dict[str, list[int]] = {}
    for number, (what, uid) in enumerate(steps):
        if what == "begin" and uid not in naive:
            kept.begin(uid)
            naive[uid] = []
        elif what == "done":
            kept.end_in_flight(uid)
            naive.pop(uid, None)
        elif what == "event":
            kept.record_event(NODE_ADD, None, number)
            for events in naive.values():
                events.append(number)
        kept.validate()
        replay = {each: [item.new for item in kept.events_for(each) or ()] for each in naive}
        assert replay == naive
        longest = max((len(events) for events in naive.values()), default=0)
        assert len(kept.events()) == longest
        assert kept.events_for("nobody") is None
