"""LimitRange: defaults for containers, and bounds that pods and claims keep to."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import PODS, Cluster, pod

RANGES = "/api/v1/namespaces/default/limitranges"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def limits(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {"limits": list(items)},
    }


def sized(requests: dict[str, str] | None = None, bounds: dict[str, str] | None = None) -> Any:
    found = pod()
    resources = {"requests": requests, "limits": bounds}
    found["spec"]["containers"][0]["resources"] = {k: v for k, v in resources.items() if v}
    return found


async def test_defaults_of_a_limit_follow_from_its_maximum_and_minimum():
    found = await Cluster().ok(
        "POST", RANGES, limits({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}})
    )
    assert found["spec"]["limits"] == [
        {
            "type": "Container",
            "max": {"cpu": "2"},
            "min": {"memory": "1Mi"},
            "default": {"cpu": "2"},
            "defaultRequest": {"cpu": "2", "memory": "1Mi"},
        }
    ]


async def test_containers_get_default_amounts_and_an_annotation_names_them():
    cluster = Cluster()
    item = {
        "type": "Container",
        "default": {"cpu": "500m", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"},
    }
    await cluster.ok("POST", RANGES, limits(item))
    found = await cluster.ok("POST", PODS, sized({"memory": "64Mi"}))
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": {"memory": "64Mi", "cpu": "100m"},
        "limits": {"cpu": "500m", "memory": "1Gi"},
    }
    assert found["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container c; cpu, "
        "memory limit for container c"
    }
    assert found["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("item", "sent", "why"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "100m"}},
            sized({"cpu": "50m"}),
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="less than the minimum",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            sized({"cpu": "1"}, {"cpu": "2"}),
            "maximum cpu usage per Container is 1, but limit is 2",
            id="more than the maximum",
        ),
        pytest.param(
            {"type": "Pod", "max": {"memory": "1Gi"}},
            sized({"memory": "64Mi"}),
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
            id="a bound on a pod asks for a limit",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            sized({"cpu": "100m"}, {"cpu": "300m"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="a limit too far above the request",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "1", "memory": "1Gi"}},
            sized({"cpu": "500m"}),
            "[minimum cpu usage per Pod is 1, but request is 500m, minimum memory usage per Pod "
            "is 1Gi.  No request is specified]",
            id="several faults",
        ),
    ],
)
async def test_a_pod_out_of_bounds_is_refused(item, sent, why):
    cluster = Cluster()
    await cluster.ok("POST", RANGES, limits(item))
    status, found = await cluster.call("POST", PODS, sent)
    assert (status, found["message"]) == (403, f'pods "a" is forbidden: {why}')


async def test_a_claim_out_of_bounds_is_refused():
    cluster = Cluster()
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    await cluster.ok("POST", RANGES, limits(item))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "a"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "2Gi"}},
        },
    }
    status, found = await cluster.call("POST", CLAIMS, claim)
    assert (status, found["message"]) == (
        403,
        'persistentvolumeclaims "a" is forbidden: maximum storage usage per '
        "PersistentVolumeClaim is 1Gi, but request is 2Gi",
    )


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
            id="a minimum above the maximum",
        ),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "1"}},
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
            id="a pod has no defaults",
        ),
    ],
)
async def test_an_inconsistent_limit_range_is_refused(item, fault):
    status, found = await Cluster().call("POST", RANGES, limits(item))
    assert status == 422
    assert fault in found["message"]
