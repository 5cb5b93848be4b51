"""The queue of kubernetes v1.20 beside that of v1.36: each row tells one difference.

Rows of the history (scheduling spec, history section 1 and 5), in its order. Left out: kinds of
events and their labels, which are those of v1.36 in both; PreEnqueue, which v1.20 did not have and
which is asked in both.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from moorage.api.changes import UNSCHEDULABLE_TIMEOUT, Action, ClusterEvent, Resource
from moorage.api.meta import LabelSelector
from moorage.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, Toleration
from moorage.state.backoff_times import AttemptBackoff, FailureBackoff
from moorage.state.contracts import QueueSettings
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.state.build import (
    NODE_ADD,
    NODE_TAINT,
    POD_DELETE,
    PVC_ADD,
    SECOND,
    V1_20,
    VERSIONS,
    World,
    pod,
)

POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
POD_LABEL = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)

Scenario = Callable[[World], None]


def tolerating(waiting: Pod) -> Pod:
    spec = msgspec.structs.replace(waiting.spec, tolerations=[Toleration(operator="Exists")])
    return msgspec.structs.replace(waiting, spec=spec)


def waits(world: World) -> None:
    world.waiting()


def waits_out_of_backoff(world: World) -> None:
    world.waiting()
    world.at(20)


def backs_off(world: World) -> None:
    world.waiting()
    world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": "backoff"}


def meets(*events: ClusterEvent, error: bool = False, before: bool = False) -> Scenario:
    """An attempt during which these happen (or just before which), then it fails."""

    def scenario(world: World) -> None:
        world.add(pod())
        if before:
            for event in events:
                world.queue.move_all(event, None, None)
        queued = world.pop()
        if not before:
            for event in events:
                world.queue.move_all(event, None, None)
        world.fail(queued, *(() if error else ("Fit",)))

    return scenario


def event(*events: ClusterEvent) -> Scenario:
    def scenario(world: World) -> None:
        for each in events:
            world.queue.move_all(each, None, None)

    return scenario


def changed(change: Callable[[Pod], Pod]) -> Scenario:
    def scenario(world: World) -> None:
        world.queue.update(pod(), change(pod()))

    return scenario


def status_only(waiting: Pod) -> Pod:
    metadata = msgspec.structs.replace(
        waiting.metadata, resource_version="2", generation=2, finalizers=["f"]
    )
    status = msgspec.structs.replace(waiting.status, nominated_node_name="n", phase="Pending")
    return msgspec.structs.replace(waiting, metadata=metadata, status=status)


def left_for(seconds: float) -> Scenario:
    def scenario(world: World) -> None:
        world.at(seconds)
        world.queue.flush_unschedulable_leftover()

    return scenario


def nothing(world: World) -> None:
    pass


@pytest.mark.parametrize(
    ("before", "happens", "new", "old"),
    [
        pytest.param(
            meets(error=True),
            nothing,
            "backoff",
            "unschedulable",
            id="after an error: v1.36 backs off, v1.20 waits for an event",
        ),
        pytest.param(
            meets(NODE_ADD, error=True),
            nothing,
            "backoff",
            "backoff",
            id="after an error with an event meanwhile: both back off",
        ),
        pytest.param(
            meets(PVC_ADD),
            nothing,
            "unschedulable",
            "backoff",
            id="an event during the attempt that cures nothing: v1.36 waits, v1.20 backs off",
        ),
        pytest.param(
            meets(PVC_ADD, NODE_ADD),
            nothing,
            "backoff",
            "backoff",
            id="an event during the attempt that cures: both back off",
        ),
        pytest.param(
            meets(NODE_ADD, before=True),
            nothing,
            "unschedulable",
            "unschedulable",
            id="an event before the attempt does not count",
        ),
        pytest.param(meets(), nothing, "unschedulable", "unschedulable", id="no event happened"),
        pytest.param(
            waits,
            event(NODE_TAINT),
            "unschedulable",
            "backoff",
            id="an event that no plugin registered: v1.36 moves no pod, v1.20 all pods",
        ),
        pytest.param(
            waits_out_of_backoff,
            event(PVC_ADD),
            "unschedulable",
            "active",
            id="an event that another plugin registered, after the backoff",
        ),
        pytest.param(
            waits, event(NODE_ADD), "backoff", "backoff", id="an event that cures the rejection"
        ),
        pytest.param(
            waits,
            left_for(60),
            "unschedulable",
            "unschedulable",
            id="a minute without an event moves no pod",
        ),
        pytest.param(
            waits,
            left_for(60.1),
            "unschedulable",
            "active",
            id="more than a minute without an event",
        ),
        pytest.param(
            waits, left_for(300.1), "active", "active", id="more than five minutes without an event"
        ),
        pytest.param(
            backs_off,
            changed(tolerating),
            "backoff",
            "active",
            id="an update of a pod in backoff: v1.36 keeps it there, v1.20 makes it active",
        ),
        pytest.param(
            backs_off,
            changed(status_only),
            "backoff",
            "active",
            id="any update of a pod in backoff counts",
        ),
        pytest.param(
            waits,
            changed(tolerating),
            "unschedulable",
            "active",
            id="an update that no hint registered: v1.36 moves nothing, v1.20 the updated pod",
        ),
        pytest.param(
            waits,
            changed(status_only),
            "unschedulable",
            "unschedulable",
            id="an update of nothing but status, versions and finalizers",
        ),
    ],
)
def test_each_queue_version_puts_a_pod_into_its_sub_queue(before, happens, new, old):
    ends = {}
    for name, version in VERSIONS.items():
        world = World(version=version)
        before(world)
        happens(world)
        ends[name] = world.places()
    assert ends == {"v1.36": {"a": new}, "v1.20": {"a": old}}


def failed(attempts: int, rejections: int, errors: int) -> QueuedPod:
    queued = QueuedPod(pod(), 10 * SECOND + SECOND // 2)
    queued.attempts = attempts
    queued.unschedulable_count = rejections
    queued.consecutive_errors_count = errors
    return queued


@pytest.mark.parametrize(
    ("queued", "new", "old"),
    [
        pytest.param(failed(0, 0, 0), 0, 0, id="never tried: no backoff"),
        pytest.param(failed(1, 1, 0), 11, 11.5, id="the first rejection, at 10.5 s"),
        pytest.param(failed(3, 3, 0), 14, 14.5, id="the third rejection"),
        pytest.param(failed(5, 5, 0), 20, 20.5, id="never more than ten seconds"),
        pytest.param(failed(99, 99, 0), 20, 20.5, id="after very many failures"),
        pytest.param(
            failed(4, 1, 0), 11, 18.5, id="attempts that were no rejections: only v1.20 counts them"
        ),
        pytest.param(
            failed(4, 3, 1), 11, 18.5, id="an error after rejections: v1.36 counts errors in a row"
        ),
    ],
)
def test_each_queue_version_computes_the_end_of_backoff(queued, new, old):
    assert FailureBackoff(QueueSettings()).ends_ns(queued) / SECOND == new
    assert AttemptBackoff(V1_20.settings).ends_ns(queued) / SECOND == old


def test_v1_20_waits_for_nothing_where_backoff_is_off():
    settings = msgspec.structs.replace(V1_20.settings, backoff_max_ns=0)
    assert AttemptBackoff(settings).ends_ns(failed(3, 3, 0)) == 0


@pytest.mark.parametrize(
    ("version", "held", "released"),
    [
        pytest.param("v1.36", 11.999, 12, id="v1.36: after the whole window"),
        pytest.param("v1.20", 11.499, 11.5, id="v1.20: at the very end"),
    ],
)
def test_each_queue_version_releases_from_backoff_at_its_moment(version, held, released):
    world = World(version=VERSIONS[version])
    world.at(10.5)
    world.waiting()
    world.queue.move_all(NODE_ADD, None, None)
    next_ns = world.next_release_ns()
    assert next_ns is not None
    assert world.seconds(next_ns) == released
    found = []
    for seconds in (held, released):
        world.at(seconds)
        world.queue.flush_backoff()
        found.append(world.places()["a"])
    assert found == ["backoff", "active"]


@pytest.mark.parametrize(
    ("version", "popped"),
    [
        pytest.param("v1.36", "a", id="v1.36: a pod is popped early"),
        pytest.param("v1.20", None, id="v1.20: backoff is waited out"),
    ],
)
def test_pods_popped_from_backoff_while_none_is_active(version, popped):
    world = World(version=VERSIONS[version])
    backs_off(world)
    wakes = world.wakes
    found = world.queue.pop()
    assert (found and found.pod.name) == popped
    # Who waits for a pod was woken when it entered backoffQ, or need not have been.
    assert wakes == (2 if popped else 1)


def test_v1_20_a_pod_released_later_wakes_the_waiting_pop():
    world = World(version=V1_20)
    backs_off(world)
    wakes = world.wakes
    world.at(5)
    world.queue.flush_backoff()
    assert world.wakes == wakes + 1


def longing(labels: dict[str, str] | None, *, namespaces: list[str] | None = None) -> Pod:
    """A pod that must be near pods with these labels, in its own namespace or those given."""
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels=labels) if labels is not None else None,
        topology_key="zone",
        namespaces=namespaces or [],
    )
    affinity = Affinity(
        pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    )
    plain = pod()
    return msgspec.structs.replace(
        plain, spec=msgspec.structs.replace(plain.spec, affinity=affinity)
    )


@pytest.mark.parametrize(
    ("waiting", "placed", "after"),
    [
        pytest.param(pod(), pod("b", node="n"), "unschedulable", id="a pod without affinity"),
        pytest.param(
            longing({"app": "db"}),
            pod("b", node="n", labels={"app": "db"}),
            "backoff",
            id="the pod that the affinity term selects",
        ),
        pytest.param(
            longing({"app": "db"}),
            pod("b", node="n", labels={"app": "web"}),
            "unschedulable",
            id="a pod that the affinity term does not select",
        ),
        pytest.param(
            longing({"app": "db"}),
            pod("b", node="n", namespace="other", labels={"app": "db"}),
            "unschedulable",
            id="a selected pod in another namespace",
        ),
        pytest.param(
            longing({"app": "db"}, namespaces=["other"]),
            pod("b", node="n", namespace="other", labels={"app": "db"}),
            "backoff",
            id="a selected pod in a namespace of the term",
        ),
        pytest.param(
            longing(None), pod("b", node="n"), "unschedulable", id="a term that selects no pod"
        ),
    ],
)
@pytest.mark.parametrize("event", [POD_ADD, POD_LABEL], ids=["placed", "relabelled"])
def test_v1_20_a_placed_pod_wakes_only_pods_with_affinity_to_it(waiting, placed, after, event):
    world = World(version=V1_20)
    world.add(waiting)
    world.fail(world.pop(), "Fit")
    world.queue.move_all(event, None, placed)
    assert world.places() == {"a": after}


def test_v1_20_a_term_may_choose_namespaces_by_label():
    waiting = longing({"app": "db"})
    affinity = waiting.spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    (term,) = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    term = msgspec.structs.replace(
        term, namespace_selector=LabelSelector(match_labels={"team": "b"})
    )
    near = PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    spec = msgspec.structs.replace(waiting.spec, affinity=Affinity(pod_affinity=near))
    world = World(version=V1_20)
    world.add(msgspec.structs.replace(waiting, spec=spec))
    world.fail(world.pop(), "Fit")
    for namespace, after in (("ns", "unschedulable"), ("other", "backoff")):
        placed = pod("b", node="n", namespace=namespace, labels={"app": "db"})
        world.queue.move_all(POD_ADD, None, placed)
        assert world.places() == {"a": after}


def test_v1_20_a_deleted_pod_wakes_every_waiting_pod():
    world = World(version=V1_20)
    world.waiting()
    world.queue.move_all(POD_DELETE, pod("b", node="n"), None)
    assert world.places() == {"a": "backoff"}


def test_v1_20_an_invalid_affinity_wakes_no_pod(caplog):
    waiting = longing({"app": "_not a value"})
    world = World(version=V1_20)
    world.add(waiting)
    world.fail(world.pop(), "Fit")
    world.queue.move_all(POD_ADD, None, pod("b", node="n"))
    assert world.places() == {"a": "unschedulable"}
    assert "pod affinity of ns/a cannot be read" in caplog.text


def test_v1_20_a_targeted_wildcard_concerns_one_pod_only():
    world = World(version=V1_20)
    world.waiting("a")
    world.waiting("b")
    world.queue.move_all(UNSCHEDULABLE_TIMEOUT, None, pod("b"))
    assert world.places() == {"a": "unschedulable", "b": "backoff"}


def test_v1_20_keeps_two_numbers_instead_of_events():
    world = World(version=V1_20)
    numbers = []

    def note() -> None:
        counts = world.queue.counts()
        numbers.append((counts.scheduling_cycle, counts.move_request_cycle))

    note()
    world.add(pod("a"), pod("b"))
    first = world.pop()
    note()
    world.queue.move_all(NODE_TAINT, None, None)
    note()
    second = world.pop()
    note()
    world.queue.activate([first.pod])
    note()
    assert numbers == [(0, -1), (1, -1), (1, 1), (2, 1), (2, 2)]
    assert set(+world.seen.kept) == {"PodPopped"}
    # An old attempt is judged by the newest number, too: it was moved during the second one.
    world.fail(first, "Fit")
    world.fail(second, "Fit")
    assert world.places() == {"a": "backoff", "b": "backoff"}


def test_v1_36_an_unregistered_event_does_not_change_move_request_cycle():
    world = World()
    world.add(pod())
    world.pop()
    world.queue.move_all(NODE_TAINT, None, None)
    assert world.queue.counts().move_request_cycle == -1
    world.queue.move_all(NODE_ADD, None, None)
    assert world.queue.counts().move_request_cycle == 1


def test_v1_20_an_update_of_a_pod_in_flight_queues_a_second_copy():
    world = World(version=V1_20)
    world.add(pod())
    queued = world.pop()
    world.queue.update(pod(), tolerating(pod()))
    assert world.places() == {"a": "active"}
    world.fail(queued, "Fit")
    assert world.places() == {"a": "active"}
    assert world.pop().pod == tolerating(pod())


@pytest.mark.parametrize(
    ("happens", "after"),
    [
        pytest.param(event(NODE_ADD), "gated", id="not after every event"),
        pytest.param(event(POD_DELETE), "active", id="after an event of its gate"),
        pytest.param(changed(status_only), "gated", id="not after an update of its status"),
        pytest.param(changed(tolerating), "active", id="after an update of its spec"),
        pytest.param(left_for(1000), "gated", id="not after the passing of time"),
    ],
)
def test_v1_20_a_gate_is_asked_again(happens, after):
    world = World(version=V1_20)
    world.close_gate("a")
    world.add(pod())
    world.gates.clear()
    happens(world)
    assert world.places() == {"a": after}


def test_v1_20_an_updated_pod_in_backoff_may_be_gated():
    world = World(version=V1_20)
    backs_off(world)
    world.close_gate("a")
    world.queue.update(pod(), tolerating(pod()))
    assert world.places() == {"a": "gated"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("gate_opens", "after"), [(False, "gated"), (True, "backoff")], ids=["still closed", "open"]
)
def test_pre_enqueue_is_asked_before_a_gated_pod_enters_backoff(version, gate_opens, after):
    world = World(version=VERSIONS[version])
    world.waiting()
    world.close_gate("a")
    world.queue.activate([pod()])
    assert world.places() == {"a": "gated"}
    if gate_opens:
        world.gates.clear()
    world.queue.move_all(POD_DELETE, None, None)
    assert world.places() == {"a": after}
