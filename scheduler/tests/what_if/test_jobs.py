"""Jobs in a what-if: the pods that a Job makes again, and Jobs that fail because pods leave."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.what_if.change import AddTaint, Apply, Change, Delete, Drain, RemoveNode
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import bare, inputs_of

_LIMIT = "Job train fails: Job has reached the specified backoff limit"
_FAIL = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_IGNORE = {**_FAIL, "action": "Ignore"}


def _job(**spec: Any) -> Manifest:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "2"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": 2, "completions": 2, "backoffLimit": 6, "template": template, **spec}
    metadata = {"name": "train", "namespace": "default", "uid": "uid-train"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _pod(number: int, node_name: str, **annotations: str) -> Manifest:
    pod = bare(f"train-{number}", node_name, cpu="2")
    pod["metadata"] |= {
        "annotations": {"batch.kubernetes.io/job-completion-index": str(number), **annotations},
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": "uid-train",
                "controller": True,
            }
        ],
    }
    return pod


def _course(job: Manifest, *changes: Change, nodes: int = 3) -> ChangeComparison:
    return try_steps(inputs_of(job, _pod(0, "n1"), _pod(1, "n2"), nodes=nodes), changes)


@pytest.mark.parametrize(
    ("spec", "change", "moves", "lost"),
    [
        pytest.param({}, Drain("n1"), 1, {}, id="within its limit a job replaces the pod"),
        pytest.param({"backoffLimit": None}, Drain("n1"), 1, {}, id="no server gave it a limit"),
        pytest.param({"backoffLimit": 0}, Drain("n1"), 0, {_LIMIT: 2}, id="no failure is allowed"),
        pytest.param({"backoffLimit": 0}, RemoveNode("n1"), 0, {_LIMIT: 2}, id="its node is gone"),
        pytest.param(
            {"backoffLimit": 0},
            AddTaint("n1", "a", "", "NoExecute"),
            0,
            {_LIMIT: 2},
            id="a taint",
        ),
        pytest.param(
            {"backoffLimit": 0},
            Delete("Pod", "default", "train-0"),
            0,
            {_LIMIT: 2},
            id="a deletion",
        ),
        pytest.param(
            {
                "backoffLimit": 0,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {"rules": [_IGNORE]},
            },
            Drain("n1"),
            1,
            {},
            id="a policy ignores disruptions",
        ),
        pytest.param(
            {"podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": [_FAIL]}},
            Drain("n1"),
            0,
            {
                "Job train fails: Pod default/train-0 has condition DisruptionTarget matching "
                "FailJob rule at index 0": 2
            },
            id="a policy ends the job at a disruption",
        ),
        pytest.param(
            {"completionMode": "Indexed", "backoffLimitPerIndex": 1},
            Drain("n1"),
            1,
            {},
            id="an index may fail once",
        ),
    ],
)
def test_a_job_replaces_a_pod_or_fails(
    spec: dict[str, Any], change: Change, moves: int, lost: dict[str, int]
) -> None:
    """The rules are those of the job controller; a failed job ends its other pods, too."""
    course = _course(_job(**spec), change)
    assert len(course.moves) == moves
    failures = [each.job_failure for each in course.lost]
    assert {why: failures.count(why) for why in failures} == lost
    assert course.worse == tuple(f"{count} pods lost: {why}" for why, count in lost.items())
    assert not course.ended
    assert course.is_quiet


def test_an_index_keeps_its_number() -> None:
    """The pod that follows has the name of the same index."""
    course = _course(_job(completionMode="Indexed"), Drain("n2"))
    (move,) = course.moves
    assert move.successor.startswith("default/train-1-")


def test_a_job_that_has_succeeded_once_makes_no_more_pods() -> None:
    """Without completions, the first success means that the work is done."""
    job = {**_job(completions=None), "status": {"succeeded": 1}}
    course = _course(job, Drain("n1"))
    assert [each.pod for each in course.ended] == ["default/train-0"]
    assert not course.worse


def test_a_pod_of_another_owner_is_there_before_that_of_a_job() -> None:
    """A job pauses for ten seconds after a failure, so the room is taken."""
    other = bare("waits", cpu="4")
    inputs = inputs_of(
        _job(), _pod(0, "n1"), _pod(1, "n2"), bare("big", "n3", cpu="4"), other, nodes=3
    )
    course = try_steps(inputs, [Delete("Pod", "default", "train-0")])
    assert [each.pod for each in course.starts] == ["default/waits"]
    assert [each.to_node for each in course.moves] == ["n2"]


@pytest.mark.parametrize(
    "change", [pytest.param(Drain("n1"), id="drain"), pytest.param(RemoveNode("n1"), id="remove")]
)
def test_nobody_knows_what_another_controller_does_for_a_job(change: Change) -> None:
    """A Job that another controller manages gets no pods from the Job controller."""
    course = _course(_job(managedBy="example.com/queue"), change)
    owner = "Job train (managed by example.com/queue)"
    assert [each.unknown_owner for each in course.lost] == [owner]
    assert course.worse == (f"1 pod may be lost: {owner} is not known to make another",)


@pytest.mark.parametrize(
    ("cpu", "names"),
    [
        pytest.param("4", ("default/train-0", "default/train-1"), id="a pod waits"),
        pytest.param("1", (), id="no pod waits"),
    ],
)
def test_pods_of_jobs_are_named_where_other_pods_wait(cpu: str, names: tuple[str, ...]) -> None:
    """No container ends in a what-if, so a pod that waits may start earlier than it seems."""
    course = _course(_job(), Apply(bare("new", cpu=cpu)), nodes=2)
    assert course.job_pods == names
