"""What elastic quotas tell of their use: the sums, and how they follow the pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.resources import ELASTIC_QUOTAS, PODS
from moorage.controllers.elastic_quotas import quota_used
from moorage.workloads.objects import Whole
from moorage_sandbox.testing.builders import pod, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import play, stored
from scheduler.tests.plugins.quotas.builders import quota_manifest


@pytest.mark.parametrize(
    ("spec", "pods", "used"),
    [
        pytest.param({}, [], {}, id="nothing bounded, nothing used"),
        pytest.param(
            {"min": {"cpu": "4"}, "max": {"cpu": 8, "memory": "1Gi"}},
            [],
            {"cpu": "0", "memory": "0"},
            id="bounded resources are listed, used or not",
        ),
        pytest.param(
            {"max": {"cpu": 8, "nvidia.com/gpu": 4}},
            [{"cpu": "1500m"}, {"cpu": "2500m", "memory": "3Gi"}],
            {"cpu": "4", "nvidia.com/gpu": "0", "memory": "3Gi"},
            id="and what is used, bounded or not",
        ),
        pytest.param(
            {}, [{"memory": "1000"}, {"memory": "1Mi"}], {"memory": "1049576"}, id="odd bytes"
        ),
    ],
)
def test_the_used_amounts_of_a_quota(
    spec: dict[str, Any], pods: list[dict[str, Any]], used: dict[str, str]
):
    quota = from_dict(Whole, {"spec": spec})
    running = [pod(f"p{i}", **each) for i, each in enumerate(pods)]
    assert quota_used(quota, running) == used


def test_the_used_amounts_follow_the_running_pods():
    def used(cluster: VirtualCluster, name: str = "quota") -> Any:
        return stored(cluster, ELASTIC_QUOTAS, name).get("status", {}).get("used")

    async def scenario(cluster: VirtualCluster) -> None:
        first = quota_manifest("default", {"cpu": 2}, {"cpu": 4, "memory": "1Gi"})
        await cluster.client.create(ELASTIC_QUOTAS, first, namespace="default")
        await cluster.until(lambda: used(cluster) == {"cpu": "0", "memory": "0"})
        await cluster.create_objects(
            pod_manifest("a", cpu="1"),
            pod_manifest("b", cpu="500m", memory="2Gi"),
            pod_manifest("too-large", cpu="64"),
        )
        await cluster.until(lambda: used(cluster) == {"cpu": "1500m", "memory": "2Gi"})
        other = {**first, "metadata": {**first["metadata"], "name": "second"}}
        await cluster.client.create(ELASTIC_QUOTAS, other, namespace="default")
        await cluster.client.delete(PODS, "b", namespace="default")
        await cluster.until(lambda: used(cluster) == {"cpu": "1", "memory": "0"}, seconds=60)
        assert used(cluster, "second") is None, "one quota counts for a namespace"
        await cluster.client.delete(ELASTIC_QUOTAS, "quota", namespace="default")
        await cluster.until(lambda: used(cluster, "second") == {"cpu": "1", "memory": "0"})

    play(scenario)
