"""Scope: what of a Job's pod template may change, and when (kubernetes v1.36)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import container, created, named, template, update_errors

IMMUTABLE = "field is immutable"
STARTED = {"startTime": "2026-01-01T00:00:00Z"}
NODE = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]
    }
}
POD = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
}
REQUESTS = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}


def job(*, suspend: bool = True, status: Obj | None = None, **spec: Any) -> Obj:
    made = named(
        "jobs",
        spec={"suspend": suspend, "template": template(**{"restartPolicy": "Never", **spec})},
    )
    stored = created("jobs", made)
    stored["metadata"]["resourceVersion"] = "1"
    stored["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    if status is not None:
        stored["status"] = status
    return stored


def changed(old: Obj, spec: Obj, metadata: Obj) -> list[str]:
    new = copy.deepcopy(old)
    held = new["spec"]["template"]
    held["spec"].update(spec)
    held["metadata"] |= metadata
    return [message for message in update_errors("jobs", new, old) if IMMUTABLE in message]


DIRECTIVES = [
    pytest.param({"nodeSelector": {"disk": "ssd"}}, {}, id="the node selector"),
    pytest.param({"tolerations": [{"operator": "Exists"}]}, {}, id="tolerations"),
    pytest.param({"schedulingGates": [{"name": "a.b/c"}]}, {}, id="scheduling gates"),
    pytest.param({"affinity": {"nodeAffinity": NODE}}, {}, id="node affinity"),
    pytest.param({}, {"labels": {"app": "web", "more": "yes"}}, id="labels"),
    pytest.param({}, {"annotations": {"a": "b"}}, id="annotations"),
    pytest.param({"containers": [container(**REQUESTS)]}, {}, id="resources of containers"),
]
FIXED = [
    pytest.param({"containers": [container(image="other:2")]}, {}, id="an image"),
    pytest.param({"affinity": {"podAffinity": POD}}, {}, id="pod affinity"),
    pytest.param(
        {"affinity": {"nodeAffinity": NODE, "podAffinity": POD}}, {}, id="both affinities"
    ),
    pytest.param({"schedulerName": "other"}, {}, id="the scheduler"),
    pytest.param({"priorityClassName": "other"}, {}, id="the priority class"),
    pytest.param({"containers": [container(), container(name="b")]}, {}, id="a new container"),
]
OPEN = [
    pytest.param(None, id="that never started"),
    pytest.param(STARTED | {"active": 0}, id="whose pods are gone"),
    pytest.param(STARTED, id="without a count of active pods"),
]


@pytest.mark.parametrize("status", OPEN)
@pytest.mark.parametrize(("spec", "metadata"), DIRECTIVES)
def test_scheduling_directives_of_a_suspended_job_may_change(spec, metadata, status):
    assert changed(job(status=status), spec, metadata) == []


@pytest.mark.parametrize(("spec", "metadata"), FIXED)
def test_everything_else_of_a_suspended_job_stays(spec, metadata):
    assert len(changed(job(), spec, metadata)) == 1


@pytest.mark.parametrize(("spec", "metadata"), DIRECTIVES)
@pytest.mark.parametrize(
    "old",
    [
        pytest.param(job(suspend=False), id="a job that runs"),
        pytest.param(job(status=STARTED | {"active": 1}), id="a suspended job with a pod"),
    ],
)
def test_no_directive_may_change_of(old, spec, metadata):
    assert len(changed(old, spec, metadata)) == 1


def test_a_cleared_affinity_may_have_held_node_affinity_only():
    gone: Obj = {"affinity": None}
    assert changed(job(affinity={"nodeAffinity": NODE}), gone, {}) == []
    assert len(changed(job(affinity={"podAffinity": POD}), gone, {})) == 1
