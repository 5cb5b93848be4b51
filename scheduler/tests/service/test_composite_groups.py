"""A PodGroup of 1.37 that is a part of a composite group is refused: no pod of it is placed.

Its condition, its Events and the conditions of its pods name the composite group.
"""

from __future__ import annotations

from typing import Any

from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.api.resources import COMPOSITE_POD_GROUPS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.kinds.built_in import resource_type
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

BETA = "scheduling.k8s.io/v1beta1"
PODS, GROUPS = resource_type("v1", "pods"), resource_type(BETA, "podgroups")
REF = {"workloadName": "w", "templateName": "t"}
REFUSED = (
    'pod group default/part is a part of CompositePodGroup "whole": composite groups are not '
    "scheduled"
)


async def create_group(live: VirtualCluster, name: str, **spec: Any) -> None:
    """Create a gang of two, and its members."""
    group = {
        "apiVersion": BETA,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec},
    }
    await live.client.create(GROUPS, group, namespace="default")
    member: Any = {"schedulingGroup": {"podGroupName": name}}
    for number in range(2):
        await live.create_objects(pod_manifest(f"{name}-{number}", cpu="1", **member))


async def create_composite(live: VirtualCluster) -> None:
    composite = {
        "apiVersion": COMPOSITE_POD_GROUPS.api_version,
        "kind": "CompositePodGroup",
        "metadata": {"name": "whole", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "workloadRef": REF},
    }
    await live.client.create(COMPOSITE_POD_GROUPS, composite, namespace="default")


def test_a_part_of_a_composite_group_is_refused_by_name() -> None:
    clock = ManualClock()
    config = LoadedConfiguration(gates=feature_gates({"GenericWorkload": True}, "1.37"))
    nodes = [node_manifest("n", cpu="9")]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, config=config) as live:
            await create_composite(live)
            await create_group(live, "part", parentCompositePodGroupName="whole", workloadRef=REF)
            await create_group(live, "alone")
            await live.until(lambda: live.scheduler.facts.bound == 2)
            await aio.sleep(600)  # longer than the flush of pods that wait
            assert live.scheduler.facts.bound == 2
            for resource, name in ((GROUPS, "part"), (PODS, "part-0")):
                found = await live.client.get(resource, name, namespace="default")
                condition = found["status"]["conditions"][0]  # type: ignore[index]
                assert (condition["status"], condition["message"]) == ("False", REFUSED)
                events = await live.events(name, reason="FailedScheduling")
                assert [each["message"] for each in events] == [REFUSED]

    run_virtual(main(), clock)


def test_the_refusal_is_a_fault_of_the_group() -> None:
    assert code_of_message(REFUSED) == ReasonCode.GROUP_INVALID
