"""Jobs that would select pods of others, and quotas and limit ranges that bound nothing real."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import create_errors, created, named, template

UID = "batch.kubernetes.io/controller-uid"
NAME = "batch.kubernetes.io/job-name"


def job(name: str = "x", **spec: Any) -> Obj:
    found = named("jobs", name, spec={"template": template(restartPolicy="Never")} | spec)
    found["metadata"]["uid"] = f"uid-of-{name}"
    return found


def quota(*, scopes: list[str] | None = None, **spec: Any) -> Obj:
    return named("resourcequotas", spec=({"scopes": scopes} if scopes else {}) | spec)


def test_a_copy_of_another_job_is_refused_with_the_labels_it_must_have():
    other = created("jobs", job("old"))
    copied = copy.deepcopy(other)
    copied["metadata"] |= {"name": "new", "uid": "uid-of-new"}
    labels = (
        '{"app":"web","controller-uid":"uid-of-old","job-name":"old",'
        f'"{UID}":"uid-of-old","{NAME}":"old"}}'
    )
    where = "spec.template.metadata.labels"
    assert create_errors("jobs", copied) == [
        f"{where}[controller-uid]: Invalid value: {labels}: must be 'uid-of-new'",
        f"{where}[job-name]: Invalid value: {labels}: must be 'new'",
        f"{where}[{UID}]: Invalid value: {labels}: must be 'uid-of-new'",
        f"{where}[{NAME}]: Invalid value: {labels}: must be 'new'",
        f'spec.selector: Invalid value: {{"matchLabels":{{"{UID}":"uid-of-old"}}}}: `selector` '
        "not auto-generated",
    ]


def test_a_job_with_its_own_selector_needs_manual_selector():
    selector = {"matchLabels": {"app": "web"}}
    shown = f'{{"matchLabels":{{"app":"web","{UID}":"uid-of-x"}}}}'
    assert create_errors("jobs", job(selector=selector)) == [
        f"spec.selector: Invalid value: {shown}: `selector` not auto-generated"
    ]
    assert create_errors("jobs", job(selector=selector, manualSelector=True)) == []


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({}, ["spec.selector: Required value"], id="none"),
        pytest.param(
            {"selector": {"matchLabels": {"app": "db"}}},
            [
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not '
                "match template `labels`"
            ],
            id="one that does not fit",
        ),
    ],
)
def test_a_manual_selector_must_match_the_pod_template(spec, messages):
    assert create_errors("jobs", job(manualSelector=True, **spec)) == messages


@pytest.mark.parametrize(
    ("obj", "messages"),
    [
        pytest.param(
            quota(hard={"foo": "1"}),
            [
                'spec.hard[foo]: Invalid value: "foo": must be a standard resource type or fully '
                "qualified",
                'spec.hard[foo]: Invalid value: "foo": must be a standard resource for quota',
            ],
            id="something unknown",
        ),
        pytest.param(
            quota(
                hard={
                    "pods": "1500m",
                    "count/configmaps": "500m",
                    "requests.example.com/gpu": "1",
                    "requests.hugepages-2Mi": "4Mi",
                    "cpu": "500m",
                }
            ),
            [
                'spec.hard[pods]: Invalid value: "1500m": must be an integer',
                'spec.hard[count/configmaps]: Invalid value: "500m": must be an integer',
            ],
            id="a part of a thing",
        ),
        pytest.param(
            quota(scopes=["BestEffort"], hard={"pods": "1", "cpu": "1", "count/secrets": "1"}),
            [
                'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
            ],
            id="amounts of pods without amounts",
        ),
        pytest.param(
            quota(scopes=["Terminating"], hard={"limits.cpu": "1", "services": "1"}),
            [
                'spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to '
                "resource",
            ],
            id="services that end",
        ),
        pytest.param(
            quota(scopes=["Odd"], hard={"services": "1"}),
            ['spec.scopes: Invalid value: ["Odd"]: unsupported scope'],
            id="an unknown scope",
        ),
        pytest.param(
            quota(
                hard={"requests.storage": "1Gi"},
                scopeSelector={
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]
                },
            ),
            [
                "spec.scopeSelector.matchExpressions: Invalid value: "
                '{"matchExpressions":[{"scopeName":"PriorityClass","operator":"Exists"}]}: '
                "unsupported scope applied to resource",
            ],
            id="storage by priority",
        ),
        pytest.param(
            quota(scopes=["VolumeAttributesClass"], hard={"requests.storage": "1Gi"}),
            [],
            id="storage by the class of its attributes",
        ),
    ],
)
def test_resource_quotas_are_checked(obj, messages):
    assert create_errors("resourcequotas", obj) == messages


@pytest.mark.parametrize(
    ("item", "messages"),
    [
        pytest.param(
            {"type": "Odd"},
            [
                'spec.limits[0].type: Invalid value: "Odd": must be a standard limit type or '
                "fully qualified"
            ],
            id="of nothing known",
        ),
        pytest.param({"type": "example.com/Odd"}, [], id="of something of somebody's"),
        pytest.param(
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
            [
                "spec.limits[0].limits: Required value: either minimum or maximum storage value "
                "is required, but neither was provided"
            ],
            id="claims without storage",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}},
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is '
                "less than 1"
            ],
            id="limits below requests",
        ),
        pytest.param(
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "4"},
                "maxLimitRequestRatio": {"cpu": "5"},
            },
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "5": ratio 5 is greater '
                "than max/min = 4.000000"
            ],
            id="a ratio nobody can reach",
        ),
    ],
)
def test_limit_ranges_are_checked(item, messages):
    assert create_errors("limitranges", named("limitranges", spec={"limits": [item]})) == messages
