"""DeviceTaintRules in a whole cluster, in virtual time: pods stay off devices, and come back.

Not covered: the joining of taints itself, which the tests of the plugin have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.kinds.built_in import resource_type
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from sandbox.tests.controllers.test_resource_claims import ONE, VERSION, device_class, offered

WAITS = "0/2 nodes are available: 2 cannot allocate all claims."


def rule(name: str = "broken", effect: str = "NoSchedule", **selector: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            **({"deviceSelector": selector} if selector else {}),
            "taint": {"key": "example.com/broken", "effect": effect},
        },
    }


def asking(name: str = "p", **toleration: str) -> list[Manifest]:
    """A claim for one device, and the pod that uses it."""
    spec: Any = ONE
    if toleration:
        exactly = {"deviceClassName": "gpu", "tolerations": [toleration]}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": "default"}
    claim = {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    entry = {"name": "dev", "resourceClaimName": name}
    return [claim, pod_manifest(name, resourceClaims=[entry])]


RULES = resource_type("resource.k8s.io/v1beta2", "devicetaintrules")
MERGE = "application/merge-patch+json"
Story = Callable[[VirtualCluster], Awaitable[None]]


def play(story: Story, *, version: str = "1.37", **gates: bool) -> None:
    clock = ManualClock()
    config = LoadedConfiguration(gates=feature_gates(gates, version))

    async def main() -> None:
        nodes = [node_manifest("n1"), node_manifest("n2")]
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            await cluster.create_objects(
                device_class(), offered("n1", "g0"), offered("n2", "g0", "g1")
            )
            await story(cluster)

    run_virtual(main(), clock)


async def gone(cluster: VirtualCluster) -> None:
    await cluster.client.delete(RULES, "broken")


async def narrowed(cluster: VirtualCluster) -> None:
    changed = b'{"spec": {"deviceSelector": {"pool": "n1"}}}'
    await cluster.client.patch(RULES, "broken", changed, content_type=MERGE)


async def effect_dropped(cluster: VirtualCluster) -> None:
    changed = b'{"spec": {"taint": {"effect": "None"}}}'
    await cluster.client.patch(RULES, "broken", changed, content_type=MERGE)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({}, id="a rule without a selector taints every device"),
        pytest.param({"driver": "gpu.example"}, id="a rule for the driver"),
    ],
)
@pytest.mark.parametrize("change", [gone, narrowed, effect_dropped])
def test_a_pod_waits_for_the_end_of_a_rule_and_is_tried_within_its_backoff(
    selector: dict[str, str], change: Story
) -> None:
    async def story(cluster: VirtualCluster) -> None:
        await cluster.client.create(RULES, rule(**selector))
        await cluster.create_objects(*asking())
        await aio.sleep(60)
        assert cluster.condition_of("p")[2].startswith(WAITS)
        await change(cluster)
        await cluster.until(lambda: bool(cluster.node_of("p")), seconds=2)
        assert cluster.node_of("p") == "n2" or change is not narrowed

    play(story)


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        pytest.param({"pool": "n2"}, {"n1"}, id="a pool"),
        pytest.param({"driver": "gpu.example", "pool": "n1"}, {"n2"}, id="a pool of a driver"),
        pytest.param({"device": "g0"}, {"n2"}, id="devices by name, in every pool"),
        pytest.param({"driver": "other.example"}, {"n1", "n2"}, id="another driver's devices"),
    ],
)
def test_only_selected_devices_are_left_out(selector: dict[str, str], nodes: set[str]) -> None:
    async def story(cluster: VirtualCluster) -> None:
        await cluster.client.create(RULES, rule(**selector))
        await aio.sleep(1)
        await cluster.create_objects(*asking())
        await cluster.until(lambda: bool(cluster.node_of("p")))
        assert cluster.node_of("p") in nodes

    play(story)


def test_a_claim_that_tolerates_the_taint_of_a_rule_gets_a_device() -> None:
    async def story(cluster: VirtualCluster) -> None:
        await cluster.client.create(RULES, rule(effect="NoExecute"))
        await aio.sleep(1)
        await cluster.create_objects(*asking("p", key="example.com/broken", operator="Exists"))
        await cluster.until(lambda: bool(cluster.node_of("p")))

    play(story)


@pytest.mark.parametrize(
    ("version", "gates"),
    [
        pytest.param("1.36", {}, id="1.36 reads no rule by default"),
        pytest.param("1.37", {"DRADeviceTaintRules": False}, id="the gate is off"),
    ],
)
def test_without_the_gate_a_rule_has_no_effect(version: str, gates: dict[str, bool]) -> None:
    async def story(cluster: VirtualCluster) -> None:
        await cluster.client.create(RULES, rule())
        await aio.sleep(1)
        await cluster.create_objects(*asking())
        await cluster.until(lambda: bool(cluster.node_of("p")))

    play(story, version=version, **gates)


def test_rules_are_read_under_1_36_with_the_gate_on() -> None:
    async def story(cluster: VirtualCluster) -> None:
        await cluster.client.create(RULES, rule())
        await cluster.create_objects(*asking())
        await aio.sleep(60)
        assert cluster.condition_of("p")[2].startswith(WAITS)

    play(story, version="1.36", DRADeviceTaintRules=True)
