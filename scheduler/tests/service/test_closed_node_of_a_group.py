"""A group that waits for its victims, while the node of one of its members is closed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.api.coscheduling import MIN_AVAILABLE_LABEL, NAME_LABEL
from moorage.api.resources import ELASTIC_QUOTAS, NODES
from moorage.api.yaml_text import write_yaml
from moorage.base.clock import ManualClock
from moorage.config.load import parse_config
from moorage.config.own import GroupMode, LoadedConfiguration, OwnProfile
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.plugins.quotas.builders import quota_manifest


def running_pod(node_name: str, priority: str) -> Manifest:
    """Return a pod that fills a node and stops slowly."""
    return pod_manifest(
        f"on-{node_name}",
        namespace="others",
        cpu="1",
        nodeSelector={"name": node_name},
        priorityClassName=priority,
        terminationGracePeriodSeconds=30,
        annotations={STOP_SECONDS: "20"},
    )


def member(name: str) -> Manifest:
    labels = {NAME_LABEL: "gang", MIN_AVAILABLE_LABEL: "2"}
    return pod_manifest(name, cpu="1", labels=labels, priorityClassName="high")


def nominations(live: VirtualCluster) -> dict[str, str]:
    """Return the nominated node of each member."""
    pods = {name: live.stored_pod(name) or {} for name in ("m0", "m1")}
    return {
        f"default/{name}": str(pod.get("status", {}).get("nominatedNodeName") or "")
        for name, pod in pods.items()
    }


def configuration(mode: GroupMode, *, quotas: bool) -> LoadedConfiguration:
    enabled, disabled = [{"name": "Coscheduling"}], [{"name": "PrioritySort"}]
    if quotas:
        enabled.append({"name": "CapacityScheduling"})
        disabled.append({"name": "DefaultPreemption"})
    points = {"multiPoint": {"enabled": enabled, "disabled": disabled}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": points}],
    }
    loaded = parse_config(write_yaml(document), source="test")
    profile = OwnProfile(scheduler_name="default-scheduler", group_mode=mode)
    return replace(loaded, own=replace(loaded.own, profiles=[profile]))


async def fill(live: VirtualCluster, *, quotas: bool) -> None:
    """Fill the nodes; the pods of n2 are more important than the others."""
    await live.create_objects(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}}
    )
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    for name, value in (("low", 1), ("middle", 5), ("high", 10)):
        await live.create_objects({**kind, "metadata": {"name": name}, "value": value})
    most = {"cpu": "1000", "memory": "640Gi"}
    for namespace, cpu in (("others", "0"), ("default", "3")) if quotas else ():
        quota = quota_manifest(namespace, {"cpu": cpu, "memory": "64Gi"}, most)
        await live.client.create(ELASTIC_QUOTAS, quota, namespace=namespace)
    names = {"n0": "low", "n1": "low", "n2": "middle"}
    await live.create_objects(*(running_pod(*each) for each in names.items()))
    await live.until(
        lambda: {live.phase_of(f"on-{name}", "others") for name in names} == {"Running"}
    )


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("quotas", [False, True], ids=["priorities", "elastic quotas"])
def test_a_member_whose_node_is_closed_leaves_the_room_of_the_others(
    quotas: bool, mode: GroupMode
) -> None:
    """The victims on the nodes of the others stop already, so these nodes would cost least."""
    clock = ManualClock()

    async def main() -> None:
        nodes = [node_manifest(f"n{at}", cpu="1", labels={"name": f"n{at}"}) for at in range(3)]
        async with VirtualCluster(
            clock, nodes=nodes, config=configuration(mode, quotas=quotas)
        ) as live:
            await fill(live, quotas=quotas)
            await live.create_objects(member("m0"), member("m1"))
            await live.until(lambda: set(nominations(live).values()) == {"n0", "n1"})
            places = nominations(live)
            closed = places["default/m0"]
            await live.patch_object(NODES, closed, {"spec": {"unschedulable": True}})
            expected = {**places, "default/m0": "n2"}
            await live.until(lambda: nominations(live) == expected, seconds=2)

    run_virtual(main(), clock)
