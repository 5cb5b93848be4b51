"""Autoscalers in a whole cluster under the virtual clock: scale, status, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS
from moorage.client.requests import patch_body
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import play, pods, running, stored, workload

RESOURCE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def autoscaler(*metrics: dict[str, Any], target: str = "web", **spec: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": 2,
            "maxReplicas": 6,
            "metrics": list(metrics or (RESOURCE,)),
            **spec,
        },
    }


def deployment(usage: str, *, replicas: int = 2) -> dict[str, Any]:
    """A workload whose containers request 10m of cpu each."""
    made: dict[str, Any] = workload("Deployment", replicas=replicas)
    made["spec"]["template"]["metadata"]["annotations"] = {"moorage.dev/cpu-usage": usage}
    return made


def wanted(cluster: VirtualCluster) -> int:
    replicas: int = stored(cluster, DEPLOYMENTS, "web")["spec"]["replicas"]
    return replicas


def status(cluster: VirtualCluster) -> Any:
    return stored(cluster, HORIZONTAL_POD_AUTOSCALERS, "web").get("status") or {}


def conditions(cluster: VirtualCluster) -> dict[str, tuple[str, str]]:
    return {
        each["type"]: (each["status"], each["reason"])
        for each in status(cluster).get("conditions") or ()
    }


async def set_usage(cluster: VirtualCluster, usage: str) -> None:
    told = {"metadata": {"annotations": {"moorage.dev/cpu-usage": usage}}}
    for each in pods(cluster):
        name = each["metadata"]["name"]
        await cluster.client.patch(PODS, name, patch_body(told), namespace="default")


def test_a_workload_grows_with_its_use_and_shrinks_five_minutes_later():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(deployment("10m"), autoscaler())
        await cluster.until(lambda: wanted(cluster) == 4, seconds=40)
        await cluster.until(lambda: status(cluster).get("currentReplicas") == 4, seconds=40)
        assert status(cluster)["currentMetrics"] == [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "current": {"averageValue": "10m", "averageUtilization": 100},
                },
            }
        ]
        assert conditions(cluster)["ScalingActive"] == ("True", "ValidMetricFound")
        await cluster.until(lambda: wanted(cluster) == 6, seconds=40)
        await cluster.until(
            lambda: conditions(cluster).get("ScalingLimited") == ("True", "TooManyReplicas"),
            seconds=40,
        )
        rescales = await cluster.events("web", reason="SuccessfulRescale")
        above = "reason: cpu resource utilization (percentage of request) above target"
        assert sorted(each["message"] for each in rescales) == [
            f"New size: 4; {above}",
            f"New size: 6; {above}",
        ]
        await cluster.until(lambda: len(running(cluster)) == 6)
        await set_usage(cluster, "1m")
        began = cluster.seconds
        await cluster.until(lambda: wanted(cluster) == 2, seconds=400)
        assert 285 < cluster.seconds - began < 330
        assert status(cluster)["lastScaleTime"]

    play(scenario)


@pytest.mark.parametrize(
    ("made", "scaler", "condition", "reason", "note"),
    [
        pytest.param(
            deployment("10m"),
            autoscaler(target="gone"),
            ("AbleToScale", "False"),
            "FailedGetScale",
            'deployments.apps "gone" not found',
            id="no such workload",
        ),
        pytest.param(
            deployment("10m"),
            autoscaler(
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "q"},
                        "target": {"type": "Value", "value": "1"},
                    },
                }
            ),
            ("ScalingActive", "False"),
            "FailedGetExternalMetric",
            "metrics of type External are not served here; use Resource or ContainerResource",
            id="a metric that is not served",
        ),
        pytest.param(
            deployment("10m"),
            autoscaler(
                {
                    "type": "Resource",
                    "resource": {
                        "name": "memory",
                        "target": {"type": "Utilization", "averageUtilization": 50},
                    },
                }
            ),
            ("ScalingActive", "False"),
            "FailedGetResourceMetric",
            "missing request for memory in container main of Pod web-",
            id="a request that is missing",
        ),
    ],
)
def test_a_condition_and_an_event_tell_why_scaling_fails(made, scaler, condition, reason, note):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(made, scaler)
        kind, value = condition
        await cluster.until(lambda: conditions(cluster).get(kind) == (value, reason), seconds=60)
        [event, *_] = await cluster.events("web", reason=reason)
        assert event["message"].startswith(note)
        assert wanted(cluster) == 2

    play(scenario)


def test_bounds_hold_without_any_measurement():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(deployment("5m", replicas=9), autoscaler())
        await cluster.until(lambda: wanted(cluster) == 6, seconds=40)

    play(scenario)


def test_a_workload_of_zero_replicas_is_left_alone():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(deployment("10m", replicas=0), autoscaler())
        disabled = ("False", "ScalingDisabled")
        await cluster.until(
            lambda: conditions(cluster).get("ScalingActive") == disabled, seconds=40
        )
        assert wanted(cluster) == 0

    play(scenario)
