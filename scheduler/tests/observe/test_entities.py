"""Scope: metrics of 1.37 that count a pod group once; which metrics older versions declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.base.clock import ManualClock
from moorage.config.feature_gates import FeatureGates, feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.framework.containment import Containment
from moorage.kinds.built_in import resource_type
from moorage.observe.access import AccessFacts
from moorage.observe.calls import CallFacts
from moorage.service.process.metrics import exposition_of
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

BUILD = "kubernetes_build_info"
QUEUED, INCOMING = "scheduler_queued_entities", "scheduler_queue_incoming_entities_total"
PENDING = "scheduler_pending_pods"


def shown(live: VirtualCluster, gates: FeatureGates) -> dict[tuple[str, ...], float]:
    """Return the values of the queue's metrics that are not 0, by name and labels."""
    page = exposition_of(
        live.scheduler,
        calls=CallFacts("server"),
        access=AccessFacts(),
        containment=Containment(),
        gates=gates,
    ).page_text("")[0]
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name in (QUEUED, INCOMING, PENDING, BUILD) and sample.value
    }


def play(version: str, scenario: Callable[[VirtualCluster, FeatureGates], Any], **on: bool) -> None:
    """Play a scenario with a scheduler and a server of one version."""
    clock, gates = ManualClock(), feature_gates(on, version)

    async def main() -> None:
        config = LoadedConfiguration(gates=gates)
        async with VirtualCluster(
            clock, nodes=[node_manifest("n", cpu="1")], config=config
        ) as live:
            await scenario(live, gates)

    run_virtual(main(), clock)


async def create_gang(live: VirtualCluster, name: str, members: int) -> None:
    """Create a gang of two, and some of its members; none fits."""
    version = "scheduling.k8s.io/v1beta1"
    gang = {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    await live.client.create(resource_type(version, "podgroups"), gang, namespace="default")
    for number in range(members):
        group: Any = {"schedulingGroup": {"podGroupName": name}}
        await live.create_objects(pod_manifest(f"{name}-{number}", cpu="9", **group))


def test_a_group_is_one_entity_and_its_members_are_pods() -> None:
    found: dict[tuple[str, ...], float] = {}

    async def scenario(live: VirtualCluster, gates: FeatureGates) -> None:
        await create_gang(live, "large", 2)
        await create_gang(live, "waits", 1)
        await live.create_objects(pod_manifest("single", cpu="9"))
        queue = live.scheduler.core.queue
        await live.until(lambda: (queue.counts().backoff, queue.counts().gated) == (1, 1))
        found.update(shown(live, gates))

    play("1.37", scenario, GenericWorkload=True)
    queued = {labels[1:]: value for labels, value in found.items() if labels[0] == QUEUED}
    assert queued == {
        ("unschedulable", "pod"): 1,
        ("unschedulable", "podgroup"): 1,
        ("gated", "podgroup"): 1,
    }
    pending = {labels[1]: value for labels, value in found.items() if labels[0] == PENDING}
    assert pending == {"unschedulable": 2, "backoff": 1, "incomplete": 1}
    incoming = {labels[1:]: value for labels, value in found.items() if labels[0] == INCOMING}
    assert incoming["ScheduleAttemptFailure", "unschedulable", "podgroup"] == 1
    assert incoming["ScheduleAttemptFailure", "unschedulable", "pod"] == 1
    assert incoming["UnscheduledPodAdd", "active", "pod"] == 1


@pytest.mark.parametrize(
    ("version", "entities", "built_as"),
    [
        pytest.param(
            "1.37", True, ("1", "37", "v1.37.0"), id="1.37 counts pods as entities without groups"
        ),
        pytest.param("1.36", False, ("1", "36", "v1.36.2"), id="1.36 has no metrics of entities"),
    ],
)
def test_the_metrics_of_entities_without_groups(
    version: str, entities: bool, built_as: tuple[str, ...]
) -> None:
    async def scenario(live: VirtualCluster, gates: FeatureGates) -> None:
        await live.create_objects(pod_manifest("single", cpu="9"))
        await live.until(lambda: live.scheduler.core.queue.counts().unschedulable == 1)
        found = shown(live, gates)
        expected = {(QUEUED, "unschedulable", "pod"): 1.0} if entities else {}
        assert {key: value for key, value in found.items() if key[0] == QUEUED} == expected
        assert any(key[0] == INCOMING for key in found) is entities
        assert found[PENDING, "unschedulable"] == 1
        built = [key for key in found if key[0] == BUILD]
        assert [sorted(labels) for _, *labels in built] == [sorted(built_as)]

    play(version, scenario)
