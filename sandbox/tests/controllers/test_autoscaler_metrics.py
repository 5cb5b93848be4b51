"""The formula between measurements and a number of replicas."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage_sandbox.controllers.autoscaler_metrics import MetricError, Proposal, Target, propose

NOW_NS = 10_000 * NS_PER_SECOND
HALF = Target("cpu", percent=50)


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready: str = "True",
    age: int = 3600,
    changed: int | None = None,
    request: str | None = "100m",
    **metadata: Any,
) -> Pod:
    """A pod that started ``age`` seconds ago and changed its readiness ``changed`` seconds ago."""
    started_ns = NOW_NS - age * NS_PER_SECOND
    changed_ns = started_ns if changed is None else NOW_NS - changed * NS_PER_SECOND
    resources = {"requests": {"cpu": request}} if request else {}
    return from_dict(
        Pod,
        {
            "metadata": {"name": name, **metadata},
            "spec": {"containers": [{"name": "main", "resources": resources}]},
            "status": {
                "phase": phase,
                "startTime": rfc3339(started_ns),
                "conditions": [
                    {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(changed_ns)}
                ],
            },
        },
    )


def pods(count: int) -> list[Pod]:
    return [pod(f"p{number}") for number in range(count)]


def used(*amounts: int) -> dict[str, int]:
    """Pod to thousandths of a core; a negative amount stands for a pod that is not measured."""
    return {f"p{number}": amount for number, amount in enumerate(amounts) if amount >= 0}


@pytest.mark.parametrize(
    ("target", "found", "milli", "expected"),
    [
        pytest.param(HALF, pods(2), used(100, 100), Proposal(4, 100, 100), id="twice the target"),
        pytest.param(HALF, pods(3), used(60, 60, 40), Proposal(3, 53, 53), id="within a tenth"),
        pytest.param(HALF, pods(4), used(10, 10, 20, 20), Proposal(2, 15, 15), id="rounded up"),
        pytest.param(
            Target("cpu", milli=25), pods(2), used(100, 100), Proposal(8, 100, None), id="by value"
        ),
        pytest.param(
            HALF,
            [*pods(1), pod("p1", phase="Pending")],
            used(100),
            Proposal(2, 100, 100),
            id="a pod that is pending counts as idle before pods are added",
        ),
        pytest.param(
            HALF,
            [*pods(1), pod("p1", phase="Pending")],
            used(10),
            Proposal(1, 10, 10),
            id="a pod that is pending does not count before pods are taken away",
        ),
        pytest.param(
            HALF,
            pods(3),
            used(100, 100, -1),
            Proposal(4, 100, 100),
            id="a pod without measurements counts as idle before pods are added",
        ),
        pytest.param(
            HALF,
            pods(3),
            used(10, 10, -1),
            Proposal(3, 10, 10),
            id="and as fully used before pods are taken away",
        ),
        pytest.param(
            HALF,
            [*pods(2), pod("p2", phase="Failed"), pod("p3", deletionTimestamp=rfc3339(NOW_NS))],
            used(100, 100, 0, 0),
            Proposal(4, 100, 100),
            id="pods that end do not count",
        ),
        pytest.param(
            HALF,
            [*pods(1), pod("p1", ready="False", age=60)],
            used(100, 900),
            Proposal(2, 100, 100),
            id="a pod that starts counts as idle whatever it uses",
        ),
        pytest.param(
            HALF,
            [*pods(1), pod("p1", ready="False", age=3600, changed=10)],
            used(100, 100),
            Proposal(4, 100, 100),
            id="a pod that was ready once counts",
        ),
        pytest.param(
            HALF,
            [*pods(1), pod("p1", ready="False", age=3600)],
            used(100, 100),
            Proposal(2, 100, 100),
            id="a pod that was never ready counts as idle",
        ),
    ],
)
def test_the_proposed_number_of_replicas(target, found, milli, expected):
    assert propose(target, len(found), found, milli, now_ns=NOW_NS) == expected


@pytest.mark.parametrize(
    ("found", "milli", "message"),
    [
        pytest.param([], {}, "no pods returned by selector", id="no pods"),
        pytest.param(pods(1), {}, "no metrics returned matched known pods", id="no measurements"),
        pytest.param(
            [pod("p0", request=None)],
            used(1),
            "missing request for cpu in container main of Pod p0",
            id="no request",
        ),
    ],
)
def test_no_replicas_are_proposed_without_a_usable_metric(found, milli, message):
    with pytest.raises(MetricError, match=message):
        propose(HALF, 1, found, milli, now_ns=NOW_NS)
