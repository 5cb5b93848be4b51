"""Claims in a whole cluster under the virtual clock: bound, provisioned, and their pods Running.

Covers VolumeBinding's writes and waiting together with the volume controllers; single rules of
the plugin are in scheduler/tests/plugins, single steps in test_volume_steps.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
)
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import ApiError
from moorage.base.rng import Streams
from moorage.controllers.cluster import ClusterControllers
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

ZONE = "topology.kubernetes.io/zone"


def claim(name: str = "c", *, storage: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            **spec,
        },
    }


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "disks.example",
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def local_volume(name: str, node_name: str, *, storage: str = "1Gi") -> dict[str, Any]:
    term = {
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
        ]
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": storage},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def using(*claims: str, name: str = "p") -> dict[str, Any]:
    volumes = [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": each}}
        for index, each in enumerate(claims)
    ]
    return pod_manifest(name, volumes=volumes)


def nodes() -> list[dict[str, Any]]:
    return [node_manifest(f"n{i}", labels={ZONE: f"z{i}"}) for i in (1, 2, 3)]


def _volume_controllers(cluster: VirtualCluster) -> ClusterControllers:
    return ClusterControllers(
        cluster.client, clock=cluster.clock, streams=Streams(3), parts=(VolumeControllers,)
    )


class Volumes:
    """A cluster with volume controllers beside it."""

    def __init__(self, *, controllers: bool = True) -> None:
        self.clock = ManualClock()
        self._controllers = controllers

    def run(self, scenario: Any) -> None:
        async def main() -> None:
            controllers = (VolumeControllers,) if self._controllers else ()
            async with VirtualCluster(
                self.clock, nodes=nodes(), controllers=controllers
            ) as cluster:
                await scenario(cluster)

        run_virtual(main(), self.clock)


def stored(cluster: VirtualCluster, plural: str, name: str, namespace: str = "") -> Any:
    record = cluster.server.store.shelf(plural).get((namespace, name))
    return None if record is None else record.decode()


def test_a_part_that_breaks_ends_the_controllers_with_the_reason(monkeypatch):
    def broken(*_args: object) -> None:
        raise ValueError("broken")

    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock) as cluster:
            made = _volume_controllers(cluster)
            running = TaskOwner(lambda _name, _error: None).spawn(made.run(), name="controllers")
            await made.ready()
            monkeypatch.setattr("moorage.controllers.views.View.on_add", broken)
            await cluster.create_objects(using("c"))
            async with asyncio.timeout(60):
                await running

    with pytest.raises(ValueError, match="broken"):
        run_virtual(main(), clock)


def test_a_claim_of_the_default_class_is_provisioned_for_its_pod():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(claim(), using("c"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        found = stored(cluster, "persistentvolumeclaims", "c", "default")
        assert found["status"]["phase"] == "Bound"
        assert found["spec"]["storageClassName"] == "standard"
        annotations = found["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/selected-node"] == cluster.node_of("p")
        volume = stored(cluster, "persistentvolumes", found["spec"]["volumeName"])
        assert volume["status"]["phase"] == "Bound"

    Volumes().run(scenario)


@pytest.mark.parametrize(
    ("provisioner", "source"),
    [
        pytest.param("disks.example", "csi", id="a CSI driver"),
        pytest.param("rancher.io/local-path", "hostPath", id="no name of a CSI driver"),
    ],
)
def test_a_volume_has_the_source_that_its_provisioner_makes(provisioner: str, source: str):
    async def scenario(cluster: VirtualCluster) -> None:
        made = storage_class("own", provisioner=provisioner)
        await cluster.create_objects(made, claim(storageClassName="own"), using("c"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        found = stored(cluster, "persistentvolumeclaims", "c", "default")
        volume = stored(cluster, "persistentvolumes", found["spec"]["volumeName"])
        assert {"csi", "hostPath"} & volume["spec"].keys() == {source}

    Volumes().run(scenario)


def test_allowed_topologies_choose_the_node_and_stay_with_the_volume():
    async def scenario(cluster: VirtualCluster) -> None:
        allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]
        await cluster.create_objects(
            storage_class("zonal", allowedTopologies=allowed),
            claim(storageClassName="zonal"),
            using("c"),
        )
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        assert cluster.node_of("p") == "n2"
        await cluster.create_objects(using("c", name="q"))
        await cluster.until(lambda: cluster.phase_of("q") == "Running")
        assert cluster.node_of("q") == "n2"

    Volumes().run(scenario)


def test_local_volumes_are_matched_smallest_first_and_taken_once():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("local", provisioner="kubernetes.io/no-provisioner"),
            local_volume("big", "n1", storage="5Gi"),
            local_volume("small", "n3", storage="2Gi"),
        )
        await cluster.until(
            lambda: stored(cluster, "persistentvolumes", "small")["status"]["phase"] == "Available"
        )
        for index in range(3):
            await cluster.create_objects(
                claim(f"c{index}", storageClassName="local", storage="2Gi"),
                using(f"c{index}", name=f"p{index}"),
            )
        await cluster.until(
            lambda: sum(cluster.phase_of(f"p{index}") == "Running" for index in range(3)) == 2
        )
        await cluster.until(
            lambda: (
                "" in cluster.placements().values()
                and any(
                    "available persistent volumes" in cluster.condition_of(f"p{i}")[2]
                    for i in range(3)
                )
            )
        )
        assert sorted(cluster.placements().values()) == ["", "n1", "n3"]

    Volumes().run(scenario)


def test_an_immediate_claim_is_bound_before_its_pod_is_scheduled():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("now", volumeBindingMode="Immediate"), using("c")
        )
        await cluster.until(lambda: "not found" in cluster.condition_of("p")[2])
        await cluster.create_objects(claim(storageClassName="now"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")

    Volumes().run(scenario)


def test_an_ephemeral_volume_gets_a_claim_that_goes_with_the_pod():
    async def scenario(cluster: VirtualCluster) -> None:
        template = {"spec": claim()["spec"]}
        volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
        await cluster.create_objects(pod_manifest("p", volumes=[volume]))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        assert stored(cluster, "persistentvolumeclaims", "p-v", "default") is not None
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(
            lambda: not list(cluster.server.store.shelf("persistentvolumes").records(""))
        )
        assert stored(cluster, "persistentvolumeclaims", "p-v", "default") is None

    Volumes().run(scenario)


def test_a_deleted_claim_stays_until_the_last_pod_that_uses_it_has_gone():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(claim(), using("c"), using("c", name="q"))
        await cluster.until(lambda: {cluster.phase_of(name) for name in "pq"} == {"Running"})
        volume = stored(cluster, "persistentvolumeclaims", "c", "default")["spec"]["volumeName"]
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        await cluster.client.delete(PERSISTENT_VOLUMES, volume)
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(lambda: cluster.phase_of("p") == "")
        await aio.sleep(5)
        held = stored(cluster, "persistentvolumeclaims", "c", "default")["metadata"]
        assert held["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert "deletionTimestamp" in held
        kept = stored(cluster, "persistentvolumes", volume)["metadata"]
        assert kept["finalizers"] == ["kubernetes.io/pv-protection"]
        await cluster.create_objects(using("c", name="late"))
        await cluster.until(lambda: "is being deleted" in cluster.condition_of("late")[2])
        await cluster.client.delete(PODS, "q", namespace="default")
        await cluster.until(lambda: stored(cluster, "persistentvolumes", volume) is None)
        assert stored(cluster, "persistentvolumeclaims", "c", "default") is None

    Volumes().run(scenario)


def test_a_claim_stays_if_the_server_knows_a_pod_that_no_watch_has_shown(monkeypatch):
    monkeypatch.setattr(
        "moorage_sandbox.controllers.claim_users.VolumeClaimUsers._pod_changed", lambda *_args: None
    )

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(claim(), using("c"))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        await aio.sleep(5)
        assert stored(cluster, "persistentvolumeclaims", "c", "default") is not None

    Volumes().run(scenario)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"allowVolumeExpansion": True}, "", id="a class that allows it"),
        pytest.param({}, "the storageclass that provisions the pvc must support resize", id="not"),
    ],
)
def test_a_claim_is_expanded_by(fields, message):
    def size(cluster: VirtualCluster, plural: str, name: str, namespace: str = "") -> Any:
        found = stored(cluster, plural, name, namespace)
        return (found["status"] if namespace else found["spec"])["capacity"]["storage"]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("s", **fields), claim(storageClassName="s"), using("c")
        )
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        asked = cluster.patch_object(PERSISTENT_VOLUME_CLAIMS, "c", more, namespace="default")
        if message:
            with pytest.raises(ApiError, match=message):
                await asked
            return
        await asked
        await cluster.until(
            lambda: size(cluster, "persistentvolumeclaims", "c", "default") == "3Gi"
        )
        volume = stored(cluster, "persistentvolumeclaims", "c", "default")["spec"]["volumeName"]
        assert size(cluster, "persistentvolumes", volume) == "3Gi"

    Volumes().run(scenario)


def test_a_claim_that_is_not_bound_is_not_expanded():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(claim())
        more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        with pytest.raises(ApiError, match="Only bound persistent volume claims can be expanded"):
            await cluster.patch_object(PERSISTENT_VOLUME_CLAIMS, "c", more, namespace="default")

    Volumes().run(scenario)


def test_a_namespace_goes_with_its_claims():
    async def scenario(cluster: VirtualCluster) -> None:
        there = {"metadata": {"namespace": "away"}}
        await cluster.create_objects(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "away"}}
        )
        for made in (claim(), using("c")):
            await cluster.create_objects({**made, "metadata": made["metadata"] | there["metadata"]})
        await cluster.until(
            lambda: stored(cluster, "pods", "p", "away").get("status", {}).get("phase") == "Running"
        )
        await cluster.client.delete(NAMESPACES, "away")
        await cluster.until(lambda: stored(cluster, "namespaces", "away") is None, seconds=90)

    Volumes().run(scenario)


def test_a_volume_that_is_never_provisioned_times_out_and_frees_the_claim():
    volumes = Volumes(controllers=False)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("slow"), claim(storageClassName="slow"), using("c")
        )
        await cluster.until(
            lambda: "binding volumes: context deadline exceeded" in cluster.condition_of("p")[2],
            seconds=700,
        )
        assert cluster.seconds >= 600
        assert cluster.node_of("p") == ""

    volumes.run(scenario)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"volume.kubernetes.io/selected-node": None, "other": "x"},
            'binding volumes: provisioning failed for PVC "c"',
            id="a provisioner gives the claim back",
        ),
        pytest.param(
            {"volume.kubernetes.io/selected-node": None},
            'binding volumes: selectedNode annotation reset for PVC "c"',
            id="no annotation is left at all",
        ),
    ],
)
def test_a_claim_given_back_ends_the_binding(change, message):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("slow"), claim(storageClassName="slow"), using("c")
        )
        await cluster.until(
            lambda: (
                "volume.kubernetes.io/selected-node"
                in stored(cluster, "persistentvolumeclaims", "c", "default")["metadata"].get(
                    "annotations", {}
                )
            )
        )
        await cluster.patch_object(
            PERSISTENT_VOLUME_CLAIMS,
            "c",
            {"metadata": {"annotations": change}},
            namespace="default",
        )
        await cluster.until(lambda: message in cluster.condition_of("p")[2])

    Volumes(controllers=False).run(scenario)


def test_a_pod_deleted_while_its_volume_is_made_ends_its_binding_at_once():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("slow"), claim(storageClassName="slow"), using("c")
        )
        await cluster.until(
            lambda: (
                "annotations"
                in stored(cluster, "persistentvolumeclaims", "c", "default")["metadata"]
            )
        )
        assert cluster.scheduler.facts.bind_failures == 0
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(lambda: cluster.scheduler.facts.bind_failures == 1, seconds=3)
        # The claim keeps its node: what was written to the API is not undone.
        chosen = stored(cluster, "persistentvolumeclaims", "c", "default")["metadata"][
            "annotations"
        ]["volume.kubernetes.io/selected-node"]
        await cluster.create_objects(using("c", name="q"))
        tasks = TaskOwner()
        made = _volume_controllers(cluster)
        tasks.spawn(made.run(), name="controllers")
        try:
            await cluster.until(lambda: cluster.phase_of("q") == "Running")
        finally:
            await tasks.cancel_all()
        assert cluster.node_of("q") == chosen

    Volumes(controllers=False).run(scenario)


def test_pods_that_share_a_claim_end_on_its_node():
    async def scenario(cluster: VirtualCluster) -> None:
        names = [f"p{index}" for index in range(4)]
        await cluster.create_objects(claim(), *(using("c", name=name) for name in names))
        await cluster.until(
            lambda: all(cluster.phase_of(name) == "Running" for name in names), seconds=60
        )

    Volumes().run(scenario)


def test_a_volume_that_changes_while_its_pod_is_scheduled_is_bound_all_the_same():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            storage_class("local", provisioner="kubernetes.io/no-provisioner"),
            local_volume("only", "n2"),
            claim(storageClassName="local"),
        )
        await cluster.until(
            lambda: stored(cluster, "persistentvolumes", "only")["status"]["phase"] == "Available"
        )
        await cluster.create_objects(using("c"))
        await cluster.patch_object(PERSISTENT_VOLUMES, "only", {"metadata": {"labels": {"a": "b"}}})
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        assert cluster.node_of("p") == "n2"

    Volumes().run(scenario)
