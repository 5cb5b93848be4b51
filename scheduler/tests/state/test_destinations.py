"""Event x state -> destination: the whole table of the queue's behaviour, hints on.

Covers where a pod ends up. Leaves out backoff arithmetic (test_backoff), what happens in flight
(test_in_flight), gates in detail (test_gating).
"""

from collections.abc import Callable

import msgspec
import pytest

from moorage.api.changes import UNSCHEDULABLE_TIMEOUT, Action, ClusterEvent, Resource
from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod, Toleration
from moorage.state.contracts import Hint, HintFn, RegisteredHint
from scheduler.tests.state.build import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    POD_DELETE,
    PVC_ADD,
    World,
    hint,
    naming,
    pod,
)

Step = Callable[[World], None]


def nowhere(world: World) -> None:
    pass


def active(world: World) -> None:
    world.add(pod())


def backoff(world: World) -> None:
    world.add(pod())
    world.fail(world.pop())


def unschedulable(world: World) -> None:
    world.waiting()


def unschedulable_long_ago(world: World) -> None:
    world.waiting()
    world.at(30)


def gated(world: World) -> None:
    world.close_gate("a")
    world.add(pod())


def in_flight(world: World) -> None:
    world.add(pod())
    world.pop()


def added(world: World) -> None:
    world.queue.add(pod())


def updated(world: World) -> None:
    world.queue.update(pod(), pod(labels={"x": "y"}))


def updated_without_old(world: World) -> None:
    world.queue.update(None, pod())


def deleted(world: World) -> None:
    world.queue.delete(pod())


def activated(world: World) -> None:
    world.queue.activate([pod()])


def gate_opens(world: World) -> None:
    world.gates.clear()


def event(cluster_event: ClusterEvent) -> Step:
    def happen(world: World) -> None:
        world.queue.move_all(cluster_event, None, None)

    return happen


def then(*steps: Step) -> Step:
    def happen(world: World) -> None:
        for step in steps:
            step(world)

    return happen


def later(seconds: float, step: Step) -> Step:
    def happen(world: World) -> None:
        world.at(seconds)
        step(world)

    return happen


def flush_backoff(world: World) -> None:
    world.queue.flush_backoff()


def flush_leftover(world: World) -> None:
    world.queue.flush_unschedulable_leftover()


@pytest.mark.parametrize(
    ("before", "happens", "after"),
    [
        pytest.param(nowhere, added, "active", id="a new pod becomes active"),
        pytest.param(nowhere, updated, "active", id="an update of an unknown pod queues it"),
        pytest.param(
            nowhere, updated_without_old, "active", id="an update without its old version queues it"
        ),
        pytest.param(nowhere, deleted, None, id="deleting an unknown pod does nothing"),
        pytest.param(nowhere, activated, None, id="activating an unknown pod does nothing"),
        pytest.param(active, added, "active", id="an active pod added again stays active"),
        pytest.param(active, updated, "active", id="an active pod stays active when updated"),
        pytest.param(
            active, updated_without_old, "active", id="an active pod updated blindly stays active"
        ),
        pytest.param(active, deleted, None, id="a deleted active pod leaves"),
        pytest.param(active, activated, "active", id="activating an active pod changes nothing"),
        pytest.param(active, event(NODE_ADD), "active", id="events do not touch active pods"),
        pytest.param(backoff, added, "active", id="a pod in backoff added again becomes active"),
        pytest.param(backoff, updated, "backoff", id="a pod in backoff stays there when updated"),
        pytest.param(backoff, deleted, None, id="a deleted pod in backoff leaves"),
        pytest.param(backoff, event(NODE_ADD), "backoff", id="events do not touch backoff"),
        pytest.param(backoff, activated, "active", id="activation cuts backoff short"),
        pytest.param(
            backoff, later(2, flush_backoff), "active", id="a pod whose backoff is over is active"
        ),
        pytest.param(
            backoff, later(1, flush_backoff), "backoff", id="backoff is not over at its very end"
        ),
        pytest.param(unschedulable, added, "active", id="a waiting pod added again becomes active"),
        pytest.param(
            unschedulable,
            updated,
            "unschedulable",
            id="an update that no plugin registered moves nothing",
        ),
        pytest.param(unschedulable, deleted, None, id="a deleted waiting pod leaves"),
        pytest.param(
            unschedulable, event(NODE_ADD), "backoff", id="an event that helps starts its backoff"
        ),
        pytest.param(
            unschedulable_long_ago,
            event(NODE_ADD),
            "active",
            id="an event that helps after the backoff makes it active",
        ),
        pytest.param(
            unschedulable_long_ago,
            event(PVC_ADD),
            "unschedulable",
            id="an event that another plugin registered does not move the pod",
        ),
        pytest.param(
            unschedulable_long_ago,
            event(NODE_TAINT),
            "unschedulable",
            id="an event that no plugin registered does not move the pod",
        ),
        pytest.param(unschedulable, activated, "active", id="activation needs no event"),
        pytest.param(
            unschedulable, later(300, flush_leftover), "unschedulable", id="five minutes: not yet"
        ),
        pytest.param(
            unschedulable,
            later(300.1, flush_leftover),
            "active",
            id="more than five minutes: tried again",
        ),
        pytest.param(gated, added, "gated", id="a gated pod added again is asked again and stays"),
        pytest.param(
            gated,
            then(gate_opens, added),
            "active",
            id="a gated pod added again is let in by an open gate",
        ),
        pytest.param(gated, updated, "gated", id="an update its gate did not register: stays"),
        pytest.param(gated, deleted, None, id="a deleted gated pod leaves"),
        pytest.param(
            gated,
            then(gate_opens, event(NODE_ADD)),
            "gated",
            id="another plugin's event does not open a gate",
        ),
        pytest.param(
            gated,
            then(gate_opens, event(POD_DELETE)),
            "active",
            id="an event of the gating plugin opens a gate",
        ),
        pytest.param(
            gated, event(POD_DELETE), "gated", id="a gate may stay closed after its event"
        ),
        pytest.param(gated, activated, "gated", id="activation does not force a gate"),
        pytest.param(gated, then(gate_opens, activated), "active", id="activation asks the gate"),
        pytest.param(gated, later(1000, flush_leftover), "gated", id="time does not open a gate"),
        pytest.param(in_flight, added, "active", id="added in flight: a second copy is queued"),
        pytest.param(in_flight, updated, "in-flight", id="an update in flight is only recorded"),
        pytest.param(in_flight, deleted, "in-flight", id="deleted in flight: the attempt ends it"),
        pytest.param(in_flight, activated, "in-flight", id="activated in flight: recorded"),
        pytest.param(in_flight, event(NODE_ADD), "in-flight", id="events in flight: recorded"),
    ],
)
def test_each_event_moves_a_pod_to_its_sub_queue(before, happens, after):
    world = World()
    before(world)
    happens(world)
    assert world.places() == ({} if after is None else {"a": after})


@pytest.mark.parametrize(
    ("rejectors", "pending", "answers", "after"),
    [
        pytest.param(
            ["P"], [], {"P": Hint.QUEUE}, "backoff", id="the hint answers QUEUE: after backoff"
        ),
        pytest.param(
            ["P"], [], {"P": Hint.SKIP}, "unschedulable", id="the hint answers SKIP: keeps waiting"
        ),
        pytest.param(
            [],
            ["P"],
            {"P": Hint.QUEUE},
            "active",
            id="the hint of the pending plugin answers QUEUE: at once",
        ),
        pytest.param(
            [],
            ["P"],
            {"P": Hint.SKIP},
            "unschedulable",
            id="the hint of the pending plugin answers SKIP",
        ),
        pytest.param(
            ["P"],
            ["Q"],
            {"P": Hint.QUEUE, "Q": Hint.SKIP},
            "backoff",
            id="a rejector queues, the pending plugin does not: after backoff",
        ),
        pytest.param(
            ["P"],
            ["Q"],
            {"P": Hint.QUEUE, "Q": Hint.QUEUE},
            "active",
            id="both answer QUEUE: the pending plugin decides",
        ),
        pytest.param(
            ["P", "Q"],
            [],
            {"P": Hint.SKIP, "Q": Hint.QUEUE},
            "backoff",
            id="one of two rejectors is enough",
        ),
        pytest.param(
            ["P"], [], {"Q": Hint.QUEUE}, "unschedulable", id="hints of other plugins are not asked"
        ),
        pytest.param(["P"], [], {"P": None}, "backoff", id="no hint function: always queue"),
        pytest.param(["P"], [], {"P": 1 / 3}, "backoff", id="a hint that breaks: queue"),
    ],
)
def test_the_hint_decides_whether_a_pod_moves(rejectors, pending, answers, after, caplog):
    def answer(value: object) -> HintFn | None:
        def ask(waiting: Pod, old: object, new: object) -> Hint:
            if isinstance(value, Hint):
                return value
            raise ZeroDivisionError

        return None if value is None else ask

    hints = [RegisteredHint(name, NODE_ADD, answer(value)) for name, value in answers.items()]
    world = World(hints=hints)
    world.add(pod())
    world.fail(world.pop(), *rejectors, pending=pending)
    assert world.places() == {"a": "unschedulable"}
    world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": after}
    assert ("broke" in caplog.text) == (1 / 3 in answers.values())


def test_a_waiting_pods_own_update_is_judged_by_hints():
    asked = []

    def ask(waiting, old, new):
        asked.append((waiting.metadata.labels, old.metadata.labels, new.metadata.labels))
        return Hint.QUEUE

    world = World(hints=[hint("Fit", ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL), ask)])
    world.waiting()
    world.queue.update(pod(), pod(labels={"x": "y"}))
    assert asked == [({"x": "y"}, {}, {"x": "y"})]
    assert world.places() == {"a": "backoff"}


def test_an_event_moves_only_the_pods_it_may_help_in_order_of_arrival():
    world = World()
    for name, plugin in (("a", "Fit"), ("b", "Claim"), ("c", "Fit"), ("d", "Label")):
        world.waiting(name, plugin)
    world.at(60)
    world.queue.move_all(NODE_ADD, None, None)
    world.queue.move_all(NODE_LABEL, None, None)
    assert world.places() == {
        "a": "active",
        "b": "unschedulable",
        "c": "active",
        "d": "unschedulable",
    }
    assert world.drain() == ["a", "c"]


def test_order_of_arrival_holds_across_different_rejectors():
    world = World()
    for name, plugins in (("a", ["Fit"]), ("b", ["Fit", "Label"]), ("c", ["Fit"])):
        world.waiting(name, *plugins)
    world.at(60)
    world.queue.move_all(NODE_ADD, None, None)
    assert world.drain() == ["a", "b", "c"]


def test_an_update_that_helped_is_not_looked_at_further():
    """Two changes at once: the first one's hint queues, nothing is left to ask about the second."""
    asked = []

    def ask(waiting: Pod, old: object, new: object) -> Hint:
        asked.append(waiting.name)
        return Hint.QUEUE if len(asked) == 1 else Hint.SKIP

    world = World(hints=[hint("Fit", ClusterEvent(Resource.POD, Action.UPDATE), ask)])
    world.waiting()
    relabeled = pod(labels={"x": "y"})
    spec = msgspec.structs.replace(relabeled.spec, tolerations=[Toleration(operator="Exists")])
    world.queue.update(pod(), msgspec.structs.replace(relabeled, spec=spec))
    assert asked == ["a"]
    assert world.places() == {"a": "backoff"}


def test_a_pod_that_fails_the_precheck_does_not_move():
    world = World()
    world.waiting("a", priority=5)
    world.waiting("b", priority=1)
    world.queue.move_all(NODE_ADD, None, None, precheck=lambda waiting: waiting.priority <= 3)
    assert world.places() == {"a": "unschedulable", "b": "backoff"}


def test_a_pod_of_an_unknown_profile_is_retried_on_every_event(caplog):
    world = World()
    world.add(pod(profile="nobody"))
    world.fail(world.pop(), "Fit")
    world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": "backoff"}
    assert "'nobody'" in caplog.text


def test_a_targeted_wildcard_concerns_one_pod_only():
    world = World()
    world.waiting("a")
    world.waiting("b")
    world.queue.move_all(UNSCHEDULABLE_TIMEOUT, None, pod("b"))
    assert world.places() == {"a": "unschedulable", "b": "backoff"}


def test_a_pod_recreated_under_its_name_replaces_the_old_one():
    world = World()
    world.waiting("a")
    world.queue.update(pod("a"), pod("a", uid="uid-a2"))
    assert world.places() == {"a": "active"}
    assert world.pop().uid == "uid-a2"
    assert world.seen.rejected["Fit"] == 0


@pytest.mark.parametrize("before", [active, backoff, unschedulable, gated])
def test_an_added_pod_replaces_the_pod_of_its_name_with_another_uid(before):
    world = World()
    before(world)
    world.gates.clear()
    world.queue.add(pod(uid="uid-a2"))
    assert world.places() == {"a": "active"}
    assert world.pop().uid == "uid-a2"
    assert world.lifecycle.state("uid-a").value == "gone"
    assert world.seen.now() == {}
    assert not +world.seen.rejected


def about(*names: str) -> Callable[[object, object], list[Pod] | None]:
    return lambda old, new: [pod(name) for name in names]


def anybody(old: object, new: object) -> None:
    return None


def broken(old: object, new: object) -> list[Pod]:
    raise RuntimeError("who knows")


@pytest.mark.parametrize(
    ("concerns", "asked"),
    [
        pytest.param(about("c", "b", "gone"), ["b", "c"], id="the named pods, in order of arrival"),
        pytest.param(about(), [], id="no pod, where no pod is named"),
        pytest.param(anybody, ["a", "b", "c"], id="all pods, where any pod may be concerned"),
        pytest.param(
            None, ["a", "b", "c"], id="all pods, without a function for the concerned pods"
        ),
        pytest.param(
            broken, ["a", "b", "c"], id="all pods, where the function for the concerned pods breaks"
        ),
    ],
)
def test_a_hint_is_asked_about_the_pods_an_event_concerns(concerns, asked):
    told: list[str] = []

    def ask(waiting: Pod, old: object, new: object) -> Hint:
        told.append(waiting.name)
        return Hint.SKIP

    world = World(hints=[RegisteredHint("Fit", NODE_ADD, ask, concerns)])
    for name in "abc":
        world.waiting(name)
    world.queue.move_all(NODE_ADD, None, None)
    assert told == asked


def test_a_hint_is_asked_about_the_pods_that_name_a_claim():
    """By spec and by status, in one namespace, whatever became of the pod meanwhile."""
    told: list[str] = []

    def ask(waiting: Pod, old: object, new: object) -> Hint:
        told.append(waiting.name)
        return Hint.SKIP

    def users(old: object, new: object) -> ClaimUsers:
        return ClaimUsers("ns", "wanted")

    world = World(hints=[RegisteredHint("Fit", NODE_ADD, ask, users)])
    pods = [
        naming("made", template="t", made="wanted"),
        naming("named", claims=["other", "wanted"]),
        naming("both", claims=["wanted"], template="t", made="wanted"),
        naming("other", claims=["other"]),
        naming("not-made-yet", template="t"),
        naming("elsewhere", claims=["wanted"], namespace="elsewhere"),
        pod("plain"),
    ]
    for each in pods:
        world.add(each)
        world.fail(world.pop(), "Fit")
    world.queue.move_all(NODE_ADD, None, None)
    assert told == ["made", "named", "both"]

    made = naming("not-made-yet", template="t", made="wanted")
    world.queue.update(
        pods[4], msgspec.structs.replace(made, metadata=pod("not-made-yet").metadata)
    )
    world.queue.delete(pods[1])
    world.places()
    told.clear()
    world.queue.move_all(NODE_ADD, None, None)
    assert told == ["made", "both", "not-made-yet"]


def test_the_pods_an_event_concerns_come_from_all_hints_of_the_rejectors():
    world = World(
        hints=[
            RegisteredHint("Gang", NODE_ADD, None, about("a")),
            RegisteredHint("Other", NODE_ADD, None, about("b")),
            RegisteredHint("Fit", NODE_ADD, None),
        ]
    )
    for name, plugins in (("a", ["Gang"]), ("b", ["Gang", "Other"]), ("c", ["Gang"])):
        world.waiting(name, *plugins)
    world.waiting("d", "Gang", "Fit")
    world.at(60)
    world.queue.move_all(NODE_ADD, None, None)
    assert world.drain() == ["a", "b", "d"]
