"""The failure handler: where the pod goes, what it hopes for, and what is told about it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.client.event_series import SeriesBook
from moorage.engine.decision import CLEAR_NOMINATION, Nomination
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import Status, error, unschedulable
from moorage.service.attempts.failure import failed_scheduling
from scheduler.tests.service.build import World, pod

REJECTED = Diagnosis(
    num_nodes=1,
    reason_counts={"Insufficient cpu": 1},
    unschedulable_plugins=frozenset({"NodeResourcesFit"}),
)
WHY = "0/1 nodes are available: 1 Insufficient cpu."


def fail(
    world: World,
    *,
    shown: Pod | None,
    nomination: Nomination | None = CLEAR_NOMINATION,
    status: Status | None = None,
    diagnosis: Diagnosis | None = REJECTED,
) -> None:
    """Pop a pod, let the watch show a version of it, and fail its attempt."""
    queued = world.popped(pod())
    if shown is None:
        world.store.remove(pod())
    else:
        world.store.put_pod(shown)
    world.watch_queue("end_in_flight", "add_unschedulable_if_not_present")
    nominate = world.queue.nominate

    def add(one: Pod, info: Any) -> None:
        world.log.append(f"nominate {None if info is None else info.node_name!r}")
        nominate(one, info)

    setattr(world.queue, "nominate", add)  # noqa: B010 - mypy forbids the plain form
    status = status or unschedulable(WHY)
    world.handler().handle(queued, status, diagnosis, message=status.message, nomination=nomination)
    world.queue.validate()


REQUEUED = "queue.add_unschedulable_if_not_present p"
DONE = "queue.end_in_flight uid-p"


@pytest.mark.parametrize(
    ("shown", "log", "place"),
    [
        pytest.param(
            pod(version="2"),
            [REQUEUED, "nominate ''", "event FailedScheduling", "patch Unschedulable nominated=''"],
            "unschedulable",
            id="the pod exists: requeued, nominated, Event, status patch",
        ),
        pytest.param(None, [DONE, "nominate ''"], "", id="the pod is deleted"),
        pytest.param(
            pod(version="2", node_name="n7"),
            [DONE, "nominate ''", "event FailedScheduling"],
            "",
            id="the pod was bound meanwhile: its status is not touched",
        ),
        pytest.param(
            pod(uid="another"), [DONE], "", id="another pod has the name: no Event and no patch"
        ),
    ],
)
def test_the_failed_pods_newest_version_decides_where_it_goes(
    shown: Pod | None, log: list[str], place: str
) -> None:
    world = World()
    fail(world, shown=shown)
    assert world.log == log
    assert world.place("p") == place


@pytest.mark.parametrize(
    ("status", "diagnosis", "reason", "place"),
    [
        pytest.param(unschedulable(WHY), REJECTED, "Unschedulable", "unschedulable", id="rejected"),
        pytest.param(
            unschedulable("no nodes available to schedule pods"),
            None,
            "Unschedulable",
            "backoff",
            id="rejected without a rejecting plugin",
        ),
        pytest.param(error("broken"), None, "SchedulerError", "backoff", id="an error"),
    ],
)
def test_the_condition_carries_reason_and_message(
    status: Status, diagnosis: Diagnosis | None, reason: str, place: str
) -> None:
    world = World()
    fail(world, shown=pod(version="2"), status=status, diagnosis=diagnosis)
    ((name, condition, nominated),) = world.statuses
    assert condition is not None
    assert (name, condition.type, condition.status, condition.reason, condition.message) == (
        *("p", "PodScheduled", "False"),
        reason,
        status.message,
    )
    assert condition.observed_generation == 7
    assert nominated == ""
    assert world.place("p") == place
    (note,) = world.notes
    assert note == failed_scheduling(pod(version="2"), status.message)
    assert (note.type, note.action) == ("Warning", "Scheduling")


def test_plugins_that_rejected_the_pod_in_preemption_may_wake_it_too() -> None:
    world = World()
    diagnosis = Diagnosis(
        num_nodes=2,
        unschedulable_plugins=frozenset({"Fit"}),
        preemption_rejectors=frozenset({"Spread"}),
    )
    fail(world, shown=pod(version="2"), diagnosis=diagnosis)
    (waiting,) = world.queue.pending().unschedulable
    assert waiting.unschedulable_plugins == ("Fit", "Spread")


@pytest.mark.parametrize(
    ("nomination", "written", "held"),
    [
        pytest.param(None, None, "n1", id="the nomination is left alone"),
        pytest.param(CLEAR_NOMINATION, "", "", id="the nomination is cleared"),
        pytest.param(Nomination("n2"), "n2", "n2", id="the nomination is set"),
    ],
)
def test_the_nomination_follows_the_decision(
    nomination: Nomination | None, written: str | None, held: str
) -> None:
    world = World()
    fail(world, shown=pod(version="2", nominated="n1"), nomination=nomination)
    ((_, _, nominated),) = world.statuses
    assert nominated == written
    assert (world.queue.nominator.node_of("uid-p") or "") == held


def test_the_next_attempt_uses_the_newest_version_of_the_pod() -> None:
    world = World()
    fail(world, shown=pod(version="2", labels={"a": "b"}))
    (waiting,) = world.queue.pending().unschedulable
    assert waiting.pod.metadata.resource_version == "2"


def test_a_text_that_json_cannot_carry_is_mended() -> None:
    world = World()
    fail(world, shown=pod(version="2"), status=error("no file \udcff, Überlauf"), diagnosis=None)
    ((_, condition, _),) = world.statuses
    assert condition is not None
    assert condition.message == world.notes[0].note == "no file ?, Überlauf"


def test_a_long_text_is_cut_in_the_event_and_whole_in_the_condition() -> None:
    long = "x" * 2000
    world = World()
    fail(world, shown=pod(version="2"), status=error(long), diagnosis=None)
    ((_, condition, _),) = world.statuses
    assert condition is not None
    assert condition.message == long
    write = SeriesBook(host="here").observe(world.notes[0], now_ns=0)
    assert write is not None
    assert write.body["note"] == "x" * 1020 + " ..."


def test_a_rejection_that_repeats_the_one_before_keeps_the_reported_reason() -> None:
    world = World()
    world.store.put_pod(pod(version="2"))
    status = unschedulable("another reason, by other ties")
    queued = world.popped(pod())
    queued.message = WHY
    world.handler().repeat(queued, status, None, nomination=None)
    assert (world.place("p"), queued.message, queued.has_news) == ("backoff", WHY, False)
    assert (world.notes, world.statuses) == ([], [])


def test_a_rejection_that_repeats_the_one_before_reports_the_end_of_a_nomination() -> None:
    """The status counts as a nomination again once the pod is nominated by its status."""
    world = World()
    world.store.put_pod(pod(version="2", nominated="n1"))
    queued = world.popped(pod())
    world.handler().repeat(queued, unschedulable(WHY), None, nomination=CLEAR_NOMINATION)
    assert (world.notes, world.statuses) == ([], [("p", None, "")])
