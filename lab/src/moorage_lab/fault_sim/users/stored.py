"""Pods that wait for something of the storage or the devices of a cluster."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.delayed_step import LABEL
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait, own_node, own_pod
from moorage_sandbox.testing.builders import Manifest

DRIVER = "csi.example.com"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def storage_class(
    tag: str, *, waits: bool = True, provisioner: str = "moorage.dev/none"
) -> Manifest:
    """Return a class whose claims wait for their first pod, or not."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": tag},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def volume_claim(name: str, storage_class: str, **spec: Any) -> Manifest:
    """Return a claim of 1Gi of a class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def volume(name: str, tag: str, storage_class: str, *, modes: str = "ReadWriteOnce") -> Manifest:
    """Return a volume that only the nodes of a wait reach."""
    expression = {"key": "wait", "operator": "In", "values": [tag]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [modes],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": required},
        },
    }


def mounting(*claims: str) -> list[Manifest]:
    """Return the volumes of a pod that has claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]


def _claim_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(storage_class(tag))
    plot.add_creation(volume(f"{tag}-v", tag, tag))
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    return lambda later: later.add_creation(volume_claim(f"{tag}-c", tag))


def _volume_comes(plot: Plot, tag: str) -> Maker:
    """Wait for a volume, with a claim that is bound at once or for its first consumer."""
    own_node(plot, tag)
    plot.add_creation(storage_class(tag, waits=plot.rng.random() < 0.5, provisioner=NO_PROVISIONER))
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    return lambda later: later.add_creation(volume(f"{tag}-v", tag, tag))


def _class_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    return lambda later: later.add_creation(storage_class(tag))


def _reach_comes(plot: Plot, tag: str) -> Maker:
    """Wait until the node gets the label that the volume asks for."""
    node = own_node(plot, tag)
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    plot.add_creation(volume(f"{tag}-v", f"{tag}-reach", tag))
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    plot.now += 1.0
    own_pod(plot, tag, node_selector={"kubernetes.io/hostname": node}, volumes=mounting(f"{tag}-c"))
    changes = {"metadata": {"labels": {"wait": f"{tag}-reach"}}}
    return lambda later: later.add_change("Node", node, changes, namespace="")


def _driver_is_migrated(plot: Plot, tag: str) -> Maker:
    """Wait until the node's volumes of an old type are those of a driver, with its own zones."""
    node = own_node(plot, tag, labels={"topology.ebs.csi.aws.com/zone": f"{tag}-z"})
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    volume_object = volume(f"{tag}-v", tag, tag)
    zone = {"key": ZONE, "operator": "In", "values": [f"{tag}-z"]}
    del volume_object["spec"]["csi"]
    volume_object["spec"] |= {
        "awsElasticBlockStore": {"volumeID": "vol-0123456789abcdef0"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
    }
    plot.add_creation(volume_object)
    plot.add_creation(csi_node(node, 5))
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    plot.now += 1.0
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    changes = {"metadata": {"annotations": migrated}}
    return lambda later: later.add_change("CSINode", node, changes, namespace="")


def _only_user_goes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    mode = "ReadWriteOncePod"
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    plot.add_creation(volume(f"{tag}-v", tag, tag, modes=mode))
    plot.add_creation(volume_claim(f"{tag}-c", tag, accessModes=[mode]))
    plot.now += 1.0
    holder = own_pod(plot, tag, f"{tag}-h", cpu="100m", volumes=mounting(f"{tag}-c"))
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", volumes=mounting(f"{tag}-c"))
    return lambda later: later.add_deletion("Pod", holder)


def _attached(plot: Plot, tag: str) -> tuple[str, str]:
    """Let a node attach the one volume it can, while a pod waits with another volume.

    Returns the node, and the pod that has the volume.
    """
    node = own_node(plot, tag)
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    for each in "ab":
        plot.add_creation(volume(f"{tag}-v{each}", tag, tag))
        plot.add_creation(volume_claim(f"{tag}-c{each}", tag, volumeName=f"{tag}-v{each}"))
    plot.add_creation(csi_node(node, 1))
    plot.now += 1.0
    holder = own_pod(plot, tag, f"{tag}-h", cpu="100m", volumes=mounting(f"{tag}-ca"))
    plot.now += 2.0
    own_pod(plot, tag, cpu="100m", volumes=mounting(f"{tag}-cb"))
    return node, holder


def _attachment_goes(plot: Plot, tag: str) -> Maker:
    _, holder = _attached(plot, tag)
    return lambda later: later.add_deletion("Pod", holder)


def _limit_is_raised(plot: Plot, tag: str) -> Maker:
    node, _ = _attached(plot, tag)
    more = {"spec": csi_node(node, 2)["spec"]}
    return lambda later: later.add_change("CSINode", node, more, namespace="")


def _two_claims(plot: Plot, tag: str) -> None:
    """Create a node, and two claims that wait for their first consumer."""
    own_node(plot, tag)
    plot.add_creation(storage_class(tag, provisioner=NO_PROVISIONER))
    for each in "ab":
        plot.add_creation(volume_claim(f"{tag}-c{each}", tag))


def _two_for_one_volume(plot: Plot, tag: str) -> Maker:
    """Let two pods with a claim each find one volume at the same time; a second one comes later."""
    _two_claims(plot, tag)
    plot.add_creation(volume(f"{tag}-va", tag, tag))
    plot.now += 1.0
    for each in "ab":
        own_pod(plot, tag, f"{tag}-{each}", cpu="100m", volumes=mounting(f"{tag}-c{each}"))
        plot.now -= 0.3
    plot.now += 0.3
    return lambda later: later.add_creation(volume(f"{tag}-vb", tag, tag))


def _volume_held_in_vain(plot: Plot, tag: str) -> Maker:
    """Fail the delayed step of a pod with a claim: its volume goes to a claim that waits."""
    _two_claims(plot, tag)
    plot.add_creation(volume(f"{tag}-v", tag, tag))

    def enable_binding(later: Plot) -> None:
        fields: dict[str, Any] = {"cpu": "100m"}
        mounts = mounting(f"{tag}-ca")
        own_pod(later, tag, f"{tag}-h", labels={LABEL: tag}, volumes=mounts, **fields)
        own_pod(later, tag, volumes=mounting(f"{tag}-cb"), **fields)

    return enable_binding


def csi_node(node: str, count: int) -> Manifest:
    """Return the CSINode of a node that can attach so many volumes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": node, "allocatable": {"count": count}}]},
    }


def device_class(tag: str, *, of: str = "") -> Manifest:
    """Return a class of the devices of a wait."""
    selector = {"cel": {"expression": f'device.driver == "{of or tag}.example.com"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": tag},
        "spec": {"selectors": [selector]},
    }


def device_slice(tag: str, node: str, devices: int = 1) -> Manifest:
    """Return a slice with devices of a wait on a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": tag},
        "spec": {
            "driver": f"{tag}.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(devices)],
        },
    }


def resource_claim(tag: str, name: str) -> Manifest:
    """Return a claim of one device of a wait."""
    request = {"name": "one", "exactly": {"deviceClassName": tag}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def claiming(name: str, cpu: str = "100m") -> dict[str, Any]:
    """Return the fields of a pod that has a claim of devices."""
    return {"cpu": cpu, "resourceClaims": [{"name": "one", "resourceClaimName": name}]}


def _lacks(plot: Plot, tag: str, part: int) -> Maker:
    """Wait for one of three parts: the class of devices, the devices, or the claim."""
    node = own_node(plot, tag)
    parts = [device_class(tag), device_slice(tag, node), resource_claim(tag, f"{tag}-c")]
    missing = parts.pop(part)
    for each in parts:
        plot.add_creation(each)
    plot.now += 0.5
    own_pod(plot, tag, **claiming(f"{tag}-c"))
    return lambda later: later.add_creation(missing)


def _device_class_comes(plot: Plot, tag: str) -> Maker:
    return _lacks(plot, tag, 0)


def _slice_comes(plot: Plot, tag: str) -> Maker:
    return _lacks(plot, tag, 1)


def _resource_claim_comes(plot: Plot, tag: str) -> Maker:
    return _lacks(plot, tag, 2)


def _two_for_one_device(plot: Plot, tag: str) -> str:
    """Let one pod have the device that another one waits for; return the first."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag))
    plot.add_creation(device_slice(tag, node))
    for each in "ab":
        plot.add_creation(resource_claim(tag, f"{tag}-{each}"))
    plot.now += 0.5
    holder = own_pod(plot, tag, f"{tag}-h", **claiming(f"{tag}-a"))
    plot.now += 1.0
    own_pod(plot, tag, **claiming(f"{tag}-b"))
    return holder


def _device_goes_free(plot: Plot, tag: str) -> Maker:
    holder = _two_for_one_device(plot, tag)
    return lambda later: later.add_deletion("Pod", holder)


def _slice_grows(plot: Plot, tag: str) -> Maker:
    """Wait for a second device in the slice that is known."""
    _two_for_one_device(plot, tag)
    more = {"spec": {"devices": device_slice(tag, "", 2)["spec"]["devices"]}}
    return lambda later: later.add_change("ResourceSlice", tag, more, namespace="")


STORED: tuple[SatisfiedWait, ...] = (
    _claim_comes,
    _volume_comes,
    _class_comes,
    _reach_comes,
    _driver_is_migrated,
    _only_user_goes,
    _attachment_goes,
    _limit_is_raised,
    _two_for_one_volume,
    _device_class_comes,
    _slice_comes,
    _resource_claim_comes,
    _device_goes_free,
    _slice_grows,
)
"""The things of storage and devices that a pod can wait for."""

STORED_DELAYED_STEPS: tuple[SatisfiedWait, ...] = (_volume_held_in_vain,)
"""The things of storage that go free when the plugin DelayedStep turns a pod away."""
