"""A nominated pod that a plugin rejects in PreFilter, whose node is closed while victims stop."""

from __future__ import annotations

import pytest

from moorage.api.resources import ELASTIC_QUOTAS, NODES
from moorage.api.yaml_text import write_yaml
from moorage.base.clock import ManualClock
from moorage.config.load import parse_config
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.plugins.quotas.builders import quota_manifest

SLOW_STOP = 25.0
QUICK_STOP = 1.0


def running_pod(node_name: str, priority: str, stop: float) -> Manifest:
    """Return a pod that fills a node and stops some seconds after its deletion."""
    return pod_manifest(
        f"on-{node_name}",
        cpu="1",
        nodeSelector={"name": node_name},
        priorityClassName=priority,
        terminationGracePeriodSeconds=30,
        annotations={STOP_SECONDS: str(stop)},
    )


def nominated(live: VirtualCluster) -> str:
    """Return the node that the preemptor is nominated to."""
    pod = live.stored_pod("high") or {}
    return str(pod.get("status", {}).get("nominatedNodeName") or "")


@pytest.mark.parametrize("preemption", ["DefaultPreemption", "PreemptionToleration"])
def test_a_pod_that_pre_filter_rejects_preempts_elsewhere_once_its_node_is_closed(
    preemption: str,
) -> None:
    """The quota counts victims until they have left, so no Filter says that n0 is closed."""
    plugins = {"preFilter": {"enabled": [{"name": "CapacityScheduling"}]}}
    if preemption != "DefaultPreemption":
        disabled = [{"name": "DefaultPreemption"}]
        plugins["postFilter"] = {"enabled": [{"name": preemption}], "disabled": disabled}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    config = parse_config(write_yaml(document), source="test")
    clock = ManualClock()

    async def main() -> None:
        nodes = [node_manifest(name, cpu="1", labels={"name": name}) for name in ("n0", "n1")]
        async with VirtualCluster(clock, nodes=nodes, config=config) as live:
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            for name, value in (("low", 1), ("middle", 5), ("high", 10)):
                await live.create_objects({**kind, "metadata": {"name": name}, "value": value})
            share = {"cpu": "2", "memory": "64Gi"}
            quota = quota_manifest("default", share, share)
            await live.client.create(ELASTIC_QUOTAS, quota, namespace="default")
            await live.create_objects(
                running_pod("n0", "low", SLOW_STOP), running_pod("n1", "middle", QUICK_STOP)
            )
            await live.until(
                lambda: {live.phase_of(f"on-{name}") for name in ("n0", "n1")} == {"Running"}
            )
            await live.create_objects(pod_manifest("high", cpu="1", priorityClassName="high"))
            await live.until(lambda: nominated(live) == "n0")
            await live.patch_object(NODES, "n0", {"spec": {"unschedulable": True}})
            await live.until(lambda: nominated(live) == "n1", seconds=2)
            await live.until(lambda: live.placements()["default/high"] == "n1", seconds=5)

    run_virtual(main(), clock)
