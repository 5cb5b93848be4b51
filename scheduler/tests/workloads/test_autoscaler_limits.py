"""Windows and policies: how fast an autoscaler may grow and shrink."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.workloads.autoscaler_limits import ScalingMemory


def replicas_over_time(
    wanted: list[int], *, current: int = 10, every: int = 15, **behavior: Any
) -> list[tuple[int, str]]:
    """Replicas after each period, and what limited them; the number follows what is allowed."""
    spec: dict[str, Any] = {"minReplicas": 2, "maxReplicas": 100}
    if behavior:
        spec["behavior"] = behavior
    memory, seen = ScalingMemory(), []
    for number, asked in enumerate(wanted):
        now_ns = (10_000 + number * every) * NS_PER_SECOND
        bounded = memory.bound(spec, current, asked, now_ns=now_ns)
        if bounded.replicas != current:
            memory.changed(bounded.replicas - current, now_ns)
        current = bounded.replicas
        why = bounded.limited[1]
        seen.append((current, bounded.able[0] if why == "DesiredWithinRange" else why))
    return seen


READY = "ReadyForNewScale"


def rules(policies: list[tuple[str, int, int]], **more: Any) -> dict[str, Any]:
    keys = ("type", "value", "periodSeconds")
    return {"policies": [dict(zip(keys, each, strict=True)) for each in policies], **more}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(replicas_over_time([12]), [(12, READY)], id="a small step up"),
        pytest.param(
            replicas_over_time([60, 60, 60]),
            [(20, "ScaleUpLimit"), (40, "ScaleUpLimit"), (60, READY)],
            id="twice the replicas in a period",
        ),
        pytest.param(replicas_over_time([9], current=1), [(4, "ScaleUpLimit")], id="four at least"),
        pytest.param(
            replicas_over_time([150], current=90), [(100, "TooManyReplicas")], id="the maximum"
        ),
        pytest.param(
            replicas_over_time([3], scaleDown={"stabilizationWindowSeconds": 0}),
            [(3, READY)],
            id="down at once without a window",
        ),
        pytest.param(
            replicas_over_time([10, 3, 3], every=160),
            [(10, READY), (10, "ScaleDownStabilized"), (3, READY)],
            id="down only when all recommendations of five minutes agree",
        ),
        pytest.param(
            replicas_over_time([1], current=5, scaleDown={"stabilizationWindowSeconds": 0}),
            [(2, "TooFewReplicas")],
            id="the minimum",
        ),
        pytest.param(
            replicas_over_time([30, 30, 30], scaleUp={"stabilizationWindowSeconds": 20}),
            [(20, "ScaleUpLimit"), (30, READY), (30, READY)],
            id="a window for growing",
        ),
        pytest.param(
            replicas_over_time([30, 30, 30, 30], scaleUp=rules([("Pods", 4, 60)])),
            [(14, "ScaleUpLimit")] * 4,
            id="four pods a minute",
        ),
        pytest.param(
            replicas_over_time([30] * 5, scaleUp=rules([("Pods", 4, 60)])),
            [(14, "ScaleUpLimit")] * 4 + [(18, "ScaleUpLimit")],
            id="four more in the next minute",
        ),
        pytest.param(
            replicas_over_time(
                [30], scaleUp=rules([("Pods", 1, 60), ("Percent", 50, 60)], selectPolicy="Min")
            ),
            [(11, "ScaleUpLimit")],
            id="the policy that allows least",
        ),
        pytest.param(
            replicas_over_time([30], scaleUp={"selectPolicy": "Disabled"}),
            [(10, "ScaleUpLimit")],
            id="no growth",
        ),
        pytest.param(
            replicas_over_time(
                [2, 2],
                scaleDown=rules([("Percent", 25, 15)], stabilizationWindowSeconds=0),
            ),
            [(7, "ScaleDownLimit"), (5, "ScaleDownLimit")],
            id="a quarter less in a period",
        ),
        pytest.param(
            replicas_over_time(
                [2], scaleDown={"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}
            ),
            [(10, "ScaleDownLimit")],
            id="no shrinking",
        ),
    ],
)
def test_replicas_over_time(found, expected):
    assert found == expected
