"""Scope: the metrics of preemption that kube-scheduler has since 1.37, with the gate of groups.

Left out: names, labels and buckets (`test_metrics`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.api import resources
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.framework.containment import Containment
from moorage.kinds.built_in import resource_type
from moorage.observe.access import AccessFacts
from moorage.observe.calls import CallFacts
from moorage.observe.catalogue import METRICS
from moorage.service.process.metrics import exposition_of
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

BETA = "scheduling.k8s.io/v1beta1"
NEW = tuple(
    metric.name
    for metric in METRICS
    if "preemption" in metric.name and metric.since and metric.gate == "GenericWorkload"
)
EVALUATION, EXECUTION = (
    f"scheduler_preemption_{part}_duration_seconds_count" for part in ("evaluation", "execution")
)


HIGH: dict[str, Any] = {"priorityClassName": "high"}


async def create_group(
    live: VirtualCluster, name: str, members: dict[str, Any], **spec: Any
) -> None:
    """Create a gang of two pods, 1 cpu each."""
    group = {
        "apiVersion": BETA,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, **members, **spec},
    }
    await live.client.create(resource_type(BETA, "podgroups"), group, namespace="default")
    members = members | {"schedulingGroup": {"podGroupName": name}}
    for number in range(2):
        await live.create_objects(pod_manifest(f"{name}-{number}", cpu="1", **members))


async def create_budget(live: VirtualCluster) -> None:
    """Create a budget that protects every pod of the namespace."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": "default"},
        "spec": {"minAvailable": 9, "selector": {}},
    }
    await live.client.create(resources.POD_DISRUPTION_BUDGETS, budget, namespace="default")


async def a_pod_evicts_a_group(live: VirtualCluster) -> None:
    await create_group(live, "old", {}, disruptionMode={"all": {}})
    await live.until(lambda: live.scheduler.facts.bound == 2)
    await create_budget(live)
    await live.create_objects(pod_manifest("new", cpu="1", **HIGH))
    await live.until(lambda: live.scheduler.facts.bound == 3)


async def a_group_evicts_pods(live: VirtualCluster) -> None:
    for number in range(2):
        await live.create_objects(pod_manifest(f"old-{number}", cpu="1"))
    await live.until(lambda: live.scheduler.facts.bound == 2)
    await create_group(live, "new", HIGH)
    await live.until(lambda: live.scheduler.facts.bound == 4)


def samples(
    scenario: Callable[[VirtualCluster], Any], version: str = "1.37"
) -> tuple[dict[tuple[str, ...], float], set[str]]:
    """Play a scenario; return samples that are not 0 by name and labels, and declared names."""
    clock, gates = ManualClock(), feature_gates({"GenericWorkload": True}, version)
    found: dict[tuple[str, ...], float] = {}
    declared: set[str] = set()

    async def main() -> None:
        config = LoadedConfiguration(gates=gates)
        nodes = [node_manifest("n", cpu="2")]
        async with VirtualCluster(clock, nodes=nodes, config=config) as live:
            high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 9}
            high["metadata"] = {"name": "high"}
            await live.client.create(resources.PRIORITY_CLASSES, high)
            await scenario(live)
            page = exposition_of(
                live.scheduler,
                calls=CallFacts("server"),
                access=AccessFacts(),
                containment=Containment(),
                gates=gates,
            ).page_text("")[0]
        for family in text_string_to_metric_families(page.decode()):
            if family.name in NEW or f"{family.name}_total" in NEW:
                declared.add(family.name)
                for each in family.samples:
                    if each.value and not each.name.endswith("_bucket"):
                        found[each.name, *each.labels.values()] = each.value

    run_virtual(main(), clock)
    return found, declared


def without_durations(found: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    return {key: value for key, value in found.items() if "duration_seconds_sum" not in key[0]}


def test_a_pod_that_evicts_a_protected_group() -> None:
    found, _ = samples(a_pod_evicts_a_group)
    assert without_durations(found) == {
        ("scheduler_preemption_pdb_violations_total", "pod"): 2,
        ("scheduler_preemption_workload_disruptions_count", "pod"): 1,
        ("scheduler_preemption_workload_disruptions_sum", "pod"): 1,
        (EVALUATION, "pod", "Success"): 1,
        (EXECUTION, "pod", "success"): 1,
    }


def test_a_group_that_evicts_pods() -> None:
    found, _ = samples(a_group_evicts_pods)
    assert without_durations(found) == {
        ("scheduler_workload_preemption_attempts_total", "Success"): 1,
        ("scheduler_workload_preemption_victims_count",): 1,
        ("scheduler_workload_preemption_victims_sum",): 2,
        (EVALUATION, "podgroup", "Success"): 1,
        (EXECUTION, "podgroup", "success"): 1,
    }


@pytest.mark.parametrize(("version", "count"), [("1.37", len(NEW)), ("1.36", 0)])
def test_only_1_37_declares_them(version: str, count: int) -> None:
    async def nothing(live: VirtualCluster) -> None:
        del live

    assert len(samples(nothing, version)[1]) == count
