"""Scope: autoscalers of autoscaling/v1 and the v2 objects they are stored as, and back.

The verbs of the API are in sandbox/tests/apiserver/test_autoscalers.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kinds.kind import Obj
from moorage.kinds.workloads.autoscaler_v1 import (
    CARRIED,
    autoscaler_from_v2,
    autoscaler_to_v2,
    cpu_metric,
)
from moorage_sandbox.apiserver.served_kinds import served_kinds

PREFIX = "autoscaling.alpha.kubernetes.io/"
TARGET = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
INGRESS = {"kind": "Ingress", "name": "front", "apiVersion": "networking.k8s.io/v1"}
SELECTOR = {"matchLabels": {"queue": "slow"}}
V1, V2 = (
    next(k for k in served_kinds() if k.resource.api_version == f"autoscaling/{version}")
    for version in ("v1", "v2")
)


def autoscaler(version: str, *, annotations: Obj | None = None, **parts: Any) -> Obj:
    meta: Obj = {"name": "web", "namespace": "default"}
    if annotations:
        meta["annotations"] = annotations
    found = {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta,
    }
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3}
    return found | {"spec": spec | parts.pop("spec", {}), "status": parts.pop("status", {})}


def v2(*metrics: Obj, **parts: Any) -> Obj:
    spec = {"metrics": list(metrics)} | parts.pop("spec", {})
    status = {"desiredReplicas": 0} | parts.pop("status", {})
    return autoscaler("v2", spec=spec, status=status, **parts)


def v1(carried: Obj | str | None = None, **parts: Any) -> Obj:
    status = {"currentReplicas": 0, "desiredReplicas": 0} | parts.pop("status", {})
    text = json.dumps(carried, separators=(",", ":")) if isinstance(carried, dict) else carried
    annotations = {CARRIED: text} if text is not None else None
    return autoscaler("v1", annotations=annotations, status=status, **parts)


def metric(kind: str, **source: Any) -> Obj:
    return {"type": kind, kind[0].lower() + kind[1:]: source}


def target(kind: str, **values: Any) -> Obj:
    return {"type": kind, **values}


RULES = {
    "stabilizationWindowSeconds": 60,
    "selectPolicy": "Min",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
    "tolerance": "50m",
}
MEMORY = metric("Resource", name="memory", target=target("AverageValue", averageValue="1Gi"))
SEEN_CPU = metric("Resource", name="cpu", current={"averageUtilization": 90, "averageValue": "1"})
CONDITION = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}
# A v2 object, and the same in v1; each says all the other does.
PAIRS = [
    pytest.param(v2(cpu_metric(50)), v1(spec={"targetCPUUtilizationPercentage": 50}), id="cpu"),
    pytest.param(
        v2(MEMORY, cpu_metric(50)),
        v1({"metrics": [MEMORY]}, spec={"targetCPUUtilizationPercentage": 50}),
        id="other metrics are carried, the cpu goes behind them",
    ),
    pytest.param(
        v2(cpu_metric(50), spec={"behavior": {"scaleUp": RULES}}),
        v1({"behavior": {"scaleUp": RULES}}, spec={"targetCPUUtilizationPercentage": 50}),
        id="a behavior is carried",
    ),
    pytest.param(
        v2(
            cpu_metric(80),
            status={
                "lastScaleTime": "2026-01-01T00:00:00Z",
                "currentReplicas": 2,
                "desiredReplicas": 3,
                "currentMetrics": [SEEN_CPU],
                "conditions": [CONDITION],
            },
        ),
        v1(
            {"currentMetrics": [SEEN_CPU], "conditions": [CONDITION]},
            spec={"targetCPUUtilizationPercentage": 80},
            status={
                "lastScaleTime": "2026-01-01T00:00:00Z",
                "currentReplicas": 2,
                "desiredReplicas": 3,
                "currentCPUUtilizationPercentage": 90,
            },
        ),
        id="what was measured, and conditions",
    ),
]


@pytest.mark.parametrize(("stored", "served"), PAIRS)
def test_an_autoscaler_is_converted_in_both_directions(stored, served):
    assert autoscaler_from_v2(stored) == served
    assert autoscaler_to_v2(served) == stored


@pytest.mark.parametrize(("stored", "served"), PAIRS)
def test_both_forms_have_the_shape_of_their_version(stored, served):
    assert V2.shape.fits(stored)
    assert V1.shape.fits(served)


def test_an_autoscaler_without_a_metric_aims_at_80_percent_cpu():
    assert autoscaler_to_v2(v1()) == v2(cpu_metric(80))


def test_v1_shows_the_first_cpu_target_and_the_last_cpu_status():
    seen = [metric("Resource", name="cpu", current={"averageUtilization": p}) for p in (10, 20)]
    found = autoscaler_from_v2(v2(cpu_metric(50), cpu_metric(60), status={"currentMetrics": seen}))
    assert found["spec"]["targetCPUUtilizationPercentage"] == 50
    assert found["status"]["currentCPUUtilizationPercentage"] == 20


def test_the_cpu_status_of_v1_becomes_a_metric_unless_annotations_carry_metrics():
    status = {"currentCPUUtilizationPercentage": 90}
    expected = [metric("Resource", name="cpu", current={"averageUtilization": 90})]
    assert autoscaler_to_v2(v1(status=status))["status"]["currentMetrics"] == expected
    carried = autoscaler_to_v2(v1({"currentMetrics": [SEEN_CPU]}, status=status))
    assert carried["status"]["currentMetrics"] == [SEEN_CPU]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"metrics": {}}', id="no list of metrics"),
        pytest.param('{"metrics": [[]]}', id="no objects in the list"),
        pytest.param('{"metrics": [{"type": 1}]}', id="a wrong type"),
        pytest.param('{"metrics": null, "nosuch": 1}', id="nulls and unknown fields"),
        pytest.param('{"metrics": ' + "[" * 2000 + "]" * 2000 + "}", id="too deep"),
        pytest.param('{"conditions": [{"lastTransitionTime": "then"}]}', id="no time"),
        pytest.param('{"behavior": []}', id="no behavior"),
    ],
)
def test_an_annotation_that_cannot_be_read_counts_as_absent(text):
    assert autoscaler_to_v2(v1(text)) == v2(cpu_metric(80))


def test_the_older_annotations_are_dropped_and_others_kept():
    stored = v2(cpu_metric(80), annotations={f"{PREFIX}metrics": "[]", "mine": "yes"})
    V2.default(stored)
    assert stored["metadata"]["annotations"] == {"mine": "yes"}
    served = v1() | {"metadata": {"name": "web", "annotations": {"mine": "yes"}}}
    assert autoscaler_to_v2(served)["metadata"] == served["metadata"]
    assert autoscaler_from_v2(stored)["metadata"]["annotations"] == {"mine": "yes"}


# --- whatever is stored -------------------------------------------------------------------------

TEXT = st.text(max_size=4)
QUANTITY = st.sampled_from(["1", "500m", "2Gi", "-3"])
PERCENT = st.integers(1, 200)
SELECTORS = st.dictionaries(TEXT, TEXT, max_size=1).map(lambda found: {"matchLabels": found})
IDENTIFIERS = st.fixed_dictionaries({"name": TEXT}, optional={"selector": SELECTORS})
REFERENCES = st.fixed_dictionaries(
    {"kind": TEXT, "name": TEXT}, optional={"apiVersion": st.text(min_size=1, max_size=4)}
)


def of_type(kind: str, **source: st.SearchStrategy[Any]) -> st.SearchStrategy[Obj]:
    return st.fixed_dictionaries(source).map(lambda found: metric(kind, **found))


def value(kind: str, name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Obj]:
    return values.map(lambda found: target(kind, **{name: found}))


AVERAGE = value("AverageValue", "averageValue", QUANTITY)
SHARE = value("Utilization", "averageUtilization", PERCENT)
VALUE = value("Value", "value", QUANTITY)
SPECS = st.one_of(
    of_type("Resource", name=TEXT, target=AVERAGE | SHARE),
    of_type("ContainerResource", name=TEXT, container=TEXT, target=AVERAGE | SHARE),
    of_type("Pods", metric=IDENTIFIERS, target=AVERAGE),
    of_type("Object", metric=IDENTIFIERS, describedObject=REFERENCES, target=AVERAGE | VALUE),
    of_type("External", metric=IDENTIFIERS, target=AVERAGE | VALUE),
)
SEEN = st.fixed_dictionaries({"averageValue": QUANTITY}, optional={"averageUtilization": PERCENT})
COUNTED = st.fixed_dictionaries({"value": QUANTITY}, optional={"averageValue": QUANTITY})
STATUSES = st.one_of(
    of_type("Resource", name=TEXT | st.just("cpu"), current=SEEN),
    of_type("ContainerResource", name=TEXT, container=TEXT, current=SEEN),
    of_type("Pods", metric=IDENTIFIERS, current=st.fixed_dictionaries({"averageValue": QUANTITY})),
    of_type("Object", metric=IDENTIFIERS, describedObject=REFERENCES, current=COUNTED),
    of_type("External", metric=IDENTIFIERS, current=COUNTED),
)
POLICIES = st.fixed_dictionaries(
    {"type": TEXT, "value": st.integers(1, 9), "periodSeconds": st.integers(1, 9)}
)
DIRECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 9),
        "selectPolicy": TEXT,
        "policies": st.lists(POLICIES, min_size=1, max_size=2),
        "tolerance": QUANTITY,
    },
)
CONDITIONS = st.fixed_dictionaries(
    {"type": TEXT, "status": TEXT},
    optional={
        "lastTransitionTime": st.just("2026-01-01T00:00:00Z"),
        "reason": st.text(min_size=1, max_size=4),
        "message": st.text(min_size=1, max_size=4),
    },
)
CPU = PERCENT.map(cpu_metric)


@st.composite
def stored_autoscalers(draw: st.DrawFn) -> Obj:
    # Of the metrics, v1 tells one share of cpu apart; it stands last when it comes back.
    metrics = draw(st.lists(SPECS, max_size=3))
    metrics += draw(st.lists(CPU, min_size=0 if metrics else 1, max_size=1))
    spec: Obj = {}
    found = draw(st.dictionaries(st.sampled_from(["scaleUp", "scaleDown"]), DIRECTIONS))
    if found:
        spec["behavior"] = found
    status: Obj = {"desiredReplicas": draw(st.integers(0, 9))}
    replicas = draw(st.integers(0, 9))
    if replicas:
        status["currentReplicas"] = replicas
    for name, each in (("currentMetrics", STATUSES), ("conditions", CONDITIONS)):
        listed = draw(st.lists(each, max_size=2))
        if listed:
            status[name] = listed
    return v2(*metrics, spec=spec, status=status)


@given(stored_autoscalers())
def test_an_autoscaler_survives_conversion_to_v1_and_back(stored):
    before = copy.deepcopy(stored)
    served = autoscaler_from_v2(stored)
    assert V1.shape.type_errors(served) == []
    for text in served["metadata"].get("annotations", {}).values():
        json.loads(text)
    assert autoscaler_to_v2(served) == stored == before
    assert autoscaler_from_v2(autoscaler_to_v2(served)) == served


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "object", "pods", "resource", "target", "scaleUp", "policies"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["metrics", "behavior", "conditions"]), ANYTHING))
def test_any_annotation_content_converts_to_an_object_of_the_right_shape(values):
    served = v1(values)
    stored = autoscaler_to_v2(served)
    assert V2.shape.type_errors(stored) == []
    V2.default(stored)
    V2.validate(stored, None, subresource=None)
