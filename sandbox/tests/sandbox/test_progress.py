"""What the views are fed: states of pods, counts, decisions, when things are settled."""

from __future__ import annotations

import io
import os
from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.event import Event
from moorage.api.meta import ObjectMeta, ObjectReference
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage_sandbox.sandbox.lines import JsonView, LinesView, Started
from moorage_sandbox.sandbox.progress import Change, PodState, Progress, state_of
from moorage_sandbox.testing.builders import pod, pod_manifest

STARTED = Started("https://127.0.0.1:1", "/tmp/k", 3, scheduler=True, seed=5)


def with_status(name: str = "p", *, node_name: str = "", **status: Any) -> Pod:
    manifest = pod_manifest(name, node_name=node_name)
    manifest["metadata"]["uid"] = f"uid-{name}"
    return from_dict(Pod, {**manifest, "status": status})


def refused(name: str = "p", reason: str = "Unschedulable", message: str = "no room") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return with_status(name, conditions=[condition])


def failed(count: int, uid: str = "e") -> Event:
    series = {"count": count} if count > 1 else None
    metadata = {"name": uid, "uid": uid}
    return from_dict(Event, {"reason": "FailedScheduling", "metadata": metadata, "series": series})


@pytest.mark.parametrize(
    ("seen", "state", "message"),
    [
        pytest.param(with_status(), PodState.PENDING, "", id="no attempt yet"),
        pytest.param(refused(), PodState.UNSCHEDULABLE, "no room", id="no node takes it"),
        pytest.param(
            refused(reason="SchedulingGated", message=""),
            PodState.GATED,
            "SchedulingGated",
            id="a gated pod",
        ),
        pytest.param(with_status(node_name="n"), PodState.BOUND, "", id="a bound pod"),
        pytest.param(
            with_status(node_name="n", phase="Running"), PodState.RUNNING, "", id="a running pod"
        ),
        pytest.param(
            with_status(node_name="n", phase="Failed", reason="OutOfcpu"),
            PodState.FINISHED,
            "OutOfcpu",
            id="a pod refused by its node",
        ),
    ],
)
def test_the_state_and_message_of_a_pod_follow_from_its_status(
    seen: Pod, state: PodState, message: str
) -> None:
    assert state_of(seen) == (state, message)


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        pytest.param(None, (PodState.PENDING, ""), id="unknown who is served: it may still come"),
        pytest.param({"other"}, (PodState.PENDING, ""), id="the scheduler name is served"),
        pytest.param(
            {"a", "default-scheduler"},
            (
                PodState.UNSCHEDULABLE,
                "spec.schedulerName is other, and no profile has that name "
                "(there are: a, default-scheduler)",
            ),
            id="the scheduler name is not served",
        ),
    ],
)
def test_the_state_of_a_pod_depends_on_the_served_scheduler_names(
    served: set[str] | None, expected: tuple[PodState, str]
) -> None:
    assert state_of(pod("p", schedulerName="other"), served) == expected


def test_a_run_until_all_is_settled_gives_pods_with_a_node_time_to_start() -> None:
    clock = ManualClock()
    progress = Progress(clock, lambda change: None)
    progress.pod_seen(refused("b"))
    progress.pod_seen(with_status("a", node_name="n1", phase="Pending"))
    clock.advance(1)
    assert not progress.is_at_rest()
    clock.advance(1)
    progress.pod_seen(with_status("a", node_name="n1", phase="Running"))
    assert progress.is_at_rest()


def test_a_pod_that_never_starts_is_not_waited_for_for_ever() -> None:
    clock = ManualClock()
    progress = Progress(clock, lambda change: None)
    progress.pod_seen(pod("a", node_name="n1"))
    clock.advance(9.9)
    assert not progress.is_at_rest()
    clock.advance(0.1)
    assert progress.is_at_rest()


def test_pods_decisions_and_settling_are_counted() -> None:
    clock, changes = ManualClock(), list[Change]()
    progress = Progress(clock, changes.append)
    clock.advance(3)
    assert progress.settled_seconds() == 3
    progress.pod_seen(pod("a"))
    progress.pod_seen(pod("b"))
    assert (progress.pods_ever, progress.counts[PodState.PENDING]) == (2, 2)
    clock.advance(5)
    assert progress.settled_seconds() == 0
    progress.pod_seen(pod("a", node_name="n1"))
    progress.pod_seen(pod("a", node_name="n1"))
    progress.event_seen(failed(1))
    manifest = refused("b")
    progress.pod_seen(pod("b"))
    progress.pod_gone(pod("b"))
    progress.pod_seen(manifest)
    clock.advance(1)
    assert progress.settled_seconds() == 1
    assert progress.decisions == 2
    progress.event_seen(failed(4))
    assert progress.decisions == 5
    assert [(each.pod, each.state.value, each.node) for each in changes] == [
        ("default/a", "pending", ""),
        ("default/b", "pending", ""),
        ("default/a", "bound", "n1"),
        ("default/b", "unschedulable", ""),
    ]
    assert [each.pod for each in progress.waiting] == ["default/b"]


def test_decisions_per_second_cover_the_last_seconds_only() -> None:
    clock = ManualClock()
    progress = Progress(clock, lambda _change: None)
    assert progress.decisions_per_second() == 0
    for index in range(30):
        progress.pod_seen(pod(f"p{index}", node_name="n"))
    clock.advance(2)
    assert progress.decisions_per_second() == 15
    clock.advance(10)
    progress.decisions_per_second()
    clock.advance(1)
    assert progress.decisions_per_second() == 0


def test_what_is_said_of_groups_that_no_plugin_schedules_is_listed_once() -> None:
    progress = Progress(ManualClock(), lambda _change: None)
    said = {"type": "moorage.dev/GroupScheduling", "status": "False", "message": "group g is off"}
    progress.pod_seen(with_status("a", conditions=[said]))
    for uid, note in (("1", "group g is off"), ("2", "group h is off")):
        event = Event(
            metadata=ObjectMeta(name=uid, uid=uid),
            reason="GroupsNotScheduled",
            regarding=ObjectReference(kind="PodGroup", namespace="default", name="g"),
            note=note,
        )
        progress.event_seen(event)
    assert progress.disabled_groups == ["group g is off", "group h is off"]
    progress.event_gone(event)
    assert progress.disabled_groups == ["group g is off"]


def _some_progress(on_change: Any) -> Progress:
    progress = Progress(ManualClock(), on_change)
    progress.pod_seen(pod("a", node_name="n1"))
    progress.pod_seen(refused("b"))
    return progress


def test_lines_name_changed_pods_and_count_the_rest() -> None:
    out, err = io.StringIO(), io.StringIO()
    view = LinesView(out, err)
    view.started(STARTED)
    progress = _some_progress(view.change)
    view.tick(progress)
    view.ready(1.234)
    for index in range(160):
        progress.pod_seen(pod(f"p{index}", node_name="n2"))
    view.tick(progress)
    view.message("something")
    view.ended(progress, settled=True)
    lines = out.getvalue().splitlines()
    assert lines[:7] == [
        "API server at https://127.0.0.1:1, 3 nodes, scheduler with seed 5",
        "",
        "    export KUBECONFIG=/tmp/k",
        "    kubectl get nodes",
        "",
        "default/a  bound to n1",
        "default/b  unschedulable: no room",
    ]
    assert lines[7:] == [
        "ready in 1.23 s",
        "",
        *[f"default/p{index}  bound to n2" for index in range(100)],
        "... and 60 more changes",
        "settled: 162 pods: 1 unschedulable, 161 bound; 161 decisions",
    ]
    assert err.getvalue() == "something\n"


def test_json_lines_report_every_change() -> None:
    out = io.StringIO()
    view = JsonView(out, io.StringIO())
    view.started(STARTED)
    view.ready(1.234)
    view.serving("https://127.0.0.1:2")
    progress = _some_progress(view.change)
    view.ended(progress, settled=False)
    assert out.getvalue().splitlines() == [
        '{"type":"started","url":"https://127.0.0.1:1","kubeconfig":"/tmp/k","nodes":3,'
        '"scheduler":true,"seed":5}',
        '{"type":"ready","seconds":1.23}',
        '{"type":"serving","url":"https://127.0.0.1:2"}',
        '{"type":"pod","pod":"default/a","state":"bound","node":"n1","message":"",'
        '"reason":"","owner":"","group":""}',
        '{"type":"pod","pod":"default/b","state":"unschedulable","node":"","message":"no room",'
        '"reason":"RejectedByPlugin","owner":"","group":""}',
        '{"type":"ended","settled":false,"pods":2,"decisions":1,"pending":0,"gated":0,'
        '"unschedulable":1,"bound":1,"running":0,"finished":0}',
    ]


def test_the_last_decisions_are_shown_as_the_pods_are_now() -> None:
    progress = Progress(ManualClock(), lambda _change: None)
    for each in (refused("b"), with_status("a", node_name="n1"), with_status("c", node_name="n2")):
        progress.pod_seen(each)
    progress.pod_seen(with_status("a", node_name="n1", phase="Running"))
    progress.pod_seen(with_status("b", node_name="n2"))
    progress.pod_gone(with_status("c", node_name="n2"))
    assert progress.recent == [
        Change("default/a", PodState.RUNNING, "n1"),
        Change("default/b", PodState.BOUND, "n2"),
    ]


@pytest.mark.parametrize("detached", [False, True])
def test_only_a_detached_sandbox_goes_on_when_nobody_reads_its_output(detached: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        view = LinesView(out, io.StringIO(), detached=detached)
        assert view.closed() is not detached
