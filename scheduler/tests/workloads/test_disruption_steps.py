"""What a budget's status must say, for every way to state a budget and every state of its pods.

The controller in a cluster is in test_disruption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.meta import OwnerReference
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.workloads.disruption_steps import (
    BudgetError,
    Due,
    Scale,
    ScaleOf,
    budget_due,
    stale_target_ns,
)

NOON = "2026-01-01T12:00:00Z"
NOW_NS = parse_rfc3339(NOON)


def before(seconds: int) -> str:
    """Return the time this many seconds before noon."""
    minute, second = divmod(720 * 60 - seconds, 60)
    return f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:{second:02d}Z"


def pod(name: str = "a", *, ready: bool = True, leaving: bool = False, owner: str = "") -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "d"}
    if leaving:
        meta["deletionTimestamp"] = NOON
    if owner:
        meta["ownerReferences"] = [{"kind": "Set", "name": owner, "uid": owner, "controller": True}]
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return from_dict(Pod, {"metadata": meta, "status": {"conditions": [condition]}})


def owned(count: int, *, by: str = "s", ready: int | None = None) -> list[Pod]:
    return [
        pod(f"{by}-{i}", owner=by, ready=i < (count if ready is None else ready))
        for i in range(count)
    ]


def budget(status: Mapping[str, Any] | None = None, **spec: Any) -> PodDisruptionBudget:
    meta = {"name": "b", "namespace": "d", "generation": 3}
    return from_dict(PodDisruptionBudget, {"metadata": meta, "spec": spec, "status": status or {}})


def scales(**replicas: int) -> ScaleOf:
    def scale_of(owner: OwnerReference) -> Scale | None:
        count = replicas.get(owner.uid)
        return None if count is None else Scale(owner.uid, count)

    return scale_of


def counts(due: Due) -> tuple[Any, ...]:
    """Return (expected, desired, healthy, allowed)."""
    assert due.status is not None
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(due.status[name] for name in names)


@pytest.mark.parametrize(
    ("spec", "pods", "replicas", "wanted"),
    [
        pytest.param({"minAvailable": 2}, owned(3), {}, (3, 2, 3, 1), id="a number must stay"),
        pytest.param({"minAvailable": 5}, owned(3), {}, (3, 5, 3, 0), id="more than there are"),
        pytest.param(
            {"minAvailable": 1}, [pod("x"), pod("y")], {}, (2, 1, 2, 1), id="pods nobody owns"
        ),
        pytest.param(
            {"minAvailable": "50%"}, owned(3), {"s": 5}, (5, 3, 3, 0), id="a share is rounded up"
        ),
        pytest.param({"minAvailable": "0%"}, owned(3), {"s": 3}, (3, 0, 3, 3), id="none must stay"),
        pytest.param(
            {"maxUnavailable": 1}, owned(3), {"s": 3}, (3, 2, 3, 1), id="a number may be missing"
        ),
        pytest.param(
            {"maxUnavailable": 1}, owned(2), {"s": 3}, (3, 2, 2, 0), id="one is missing already"
        ),
        pytest.param(
            {"maxUnavailable": "30%"}, owned(10), {"s": 10}, (10, 7, 10, 3), id="a share may miss"
        ),
        pytest.param(
            {"maxUnavailable": "1%"},
            owned(10),
            {"s": 10},
            (10, 9, 10, 1),
            id="a small share is rounded up to one",
        ),
        pytest.param(
            {"maxUnavailable": 9}, owned(3), {"s": 3}, (3, 0, 3, 3), id="more than all may miss"
        ),
        pytest.param(
            {"maxUnavailable": 1},
            owned(2) + owned(1, by="t"),
            {"s": 4, "t": 2},
            (6, 5, 3, 0),
            id="scales of several owners add up",
        ),
        pytest.param(
            {"maxUnavailable": 1}, [pod("x")], {}, (0, 0, 1, 0), id="pods nobody owns have no scale"
        ),
        pytest.param({"minAvailable": 0}, [], {}, (0, 0, 0, 0), id="no pods: nothing is allowed"),
        pytest.param({}, owned(3), {"s": 3}, (0, 0, 3, 0), id="a budget that says nothing"),
        pytest.param(
            {"minAvailable": 1},
            owned(3, ready=2),
            {},
            (3, 1, 2, 1),
            id="only ready pods are healthy",
        ),
        pytest.param(
            {"minAvailable": 1},
            [pod("x"), pod("y", leaving=True)],
            {},
            (2, 1, 1, 0),
            id="pods that leave are not healthy",
        ),
    ],
)
def test_the_counts_in_a_budgets_status(spec, pods, replicas, wanted):
    assert counts(budget_due(budget(**spec), pods, scales(**replicas), NOW_NS)) == wanted


def test_a_whole_status():
    due = budget_due(budget(minAvailable=1), owned(2), scales(), NOW_NS)
    condition = {
        "type": "DisruptionAllowed",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": NOON,
        "reason": "SufficientPods",
        "message": "",
    }
    status = {
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "disruptionsAllowed": 1,
        "observedGeneration": 3,
        "disruptedPods": {},
        "conditions": [condition],
    }
    assert due == Due(status)
    assert budget_due(budget(status, minAvailable=1), owned(2), scales(), NOW_NS) == Due(None)


def test_the_condition_keeps_its_time_while_its_value_stays():
    old = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "lastTransitionTime": before(60),
    }
    other = {"type": "Other", "status": "True", "lastTransitionTime": before(90), "reason": "Any"}
    status = {"conditions": [old, other]}
    due = budget_due(budget(status, minAvailable=2), owned(2), scales(), NOW_NS)
    assert due.status is not None
    assert due.status["conditions"] == [
        other | {"observedGeneration": 0, "message": ""},
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": 3,
            "lastTransitionTime": before(60),
            "reason": "InsufficientPods",
            "message": "",
        },
    ]


@pytest.mark.parametrize(
    ("noted", "pods", "kept", "healthy", "again_seconds"),
    [
        pytest.param({"s-0": before(30)}, owned(2), {"s-0": before(30)}, 1, 90, id="just evicted"),
        pytest.param({"s-0": before(120)}, owned(2), {}, 2, None, id="not deleted in two minutes"),
        pytest.param(
            {"s-0": before(30)},
            [pod("s-0", leaving=True), pod("s-1")],
            {},
            1,
            None,
            id="deleted, as announced",
        ),
        pytest.param({"gone": before(30)}, owned(2), {}, 2, None, id="no such pod any more"),
        pytest.param({"s-0": "noon"}, owned(2), {}, 2, None, id="a time that cannot be read"),
        pytest.param(
            {"s-0": before(30), "s-1": before(50)},
            owned(2),
            {"s-0": before(30), "s-1": before(50)},
            0,
            70,
            id="the earliest of two decides when to look again",
        ),
    ],
)
def test_evicted_pods(noted, pods, kept, healthy, again_seconds):
    due = budget_due(budget({"disruptedPods": noted}, minAvailable=1), pods, scales(), NOW_NS)
    assert due.status is not None
    gone = {name: None for name in noted if name not in kept}
    assert (due.status["disruptedPods"], due.status["currentHealthy"]) == (gone | kept, healthy)
    again_ns = None if again_seconds is None else NOW_NS + again_seconds * NS_PER_SECOND
    assert due.again_ns == again_ns


def _no_scale(owner: OwnerReference) -> Scale | None:
    raise BudgetError("jobs.batch does not implement the scale subresource")


@pytest.mark.parametrize(
    ("spec", "scale_of", "why"),
    [
        pytest.param(
            {"maxUnavailable": 1}, scales(), 'found no controllers for pod "s-0"', id="no owner"
        ),
        pytest.param(
            {"minAvailable": "50%"},
            _no_scale,
            "jobs.batch does not implement the scale subresource",
            id="an owner without a scale",
        ),
        pytest.param(
            {"minAvailable": "half"},
            scales(s=2),
            'invalid value for IntOrString: "half" is not a percentage',
            id="no percentage",
        ),
    ],
)
def test_a_budget_that_cannot_be_computed_allows_nothing(spec, scale_of, why):
    said = {"disruptionsAllowed": 2, "currentHealthy": 3, "observedGeneration": 2}
    due = budget_due(budget(said, **spec), owned(2), scale_of, NOW_NS)
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 2,
        "lastTransitionTime": NOON,
        "reason": "SyncFailed",
        "message": why,
    }
    assert due == Due({"disruptionsAllowed": 0, "conditions": [condition]})
    after = said | {"disruptionsAllowed": 0, "conditions": [condition]}
    assert budget_due(budget(after, **spec), owned(2), scale_of, NOW_NS) == Due(None)


@pytest.mark.parametrize(
    ("condition", "fields", "wanted"),
    [
        pytest.param({}, {}, NOW_NS + 60 * NS_PER_SECOND, id="two minutes after it was said"),
        pytest.param({"status": "False"}, {}, None, id="taken back already"),
        pytest.param({"reason": "TerminationByKubelet"}, {}, None, id="kubelet takes its time"),
        pytest.param({"type": "Other"}, {}, None, id="another condition"),
        pytest.param({}, {"phase": "Failed"}, None, id="the pod has ended"),
        pytest.param({}, {"deletionTimestamp": NOON}, None, id="the pod is being deleted"),
    ],
)
def test_a_target_that_is_not_deleted(condition, fields, wanted):
    said = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": before(60)}
    found = from_dict(
        Pod,
        {
            "metadata": {"name": "a", "deletionTimestamp": fields.get("deletionTimestamp")},
            "status": {"phase": fields.get("phase", ""), "conditions": [said | condition]},
        },
    )
    assert stale_target_ns(found) == wanted
