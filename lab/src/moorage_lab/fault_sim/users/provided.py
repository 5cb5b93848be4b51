"""Pods that wait until something of the storage or the devices changes, which was there before."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.delayed_step import BREAKS, LABEL
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_lab.fault_sim.users.stored import (
    DRIVER,
    NO_PROVISIONER,
    claiming,
    csi_node,
    device_class,
    device_slice,
    mounting,
    resource_claim,
    storage_class,
    volume,
    volume_claim,
)
from moorage_lab.fault_sim.users.waits import SatisfiedWait, holder_pod, own_node, own_pod
from moorage_sandbox.testing.builders import Manifest


def _disk_goes_free(plot: Plot, tag: str) -> Maker:
    """Wait for a disk that only one pod of a node may have."""
    own_node(plot, tag)
    disk = {"name": "d", "gcePersistentDisk": {"pdName": tag}}
    holder = holder_pod(plot, tag, cpu="100m", volumes=[disk])
    own_pod(plot, tag, cpu="100m", volumes=[disk])
    return lambda later: later.add_deletion("Pod", holder)


def _topology_is_allowed(plot: Plot, tag: str) -> Maker:
    """Wait until a class may provide volumes in the zone of the node."""
    own_node(plot, tag)
    plot.add_creation({**storage_class(tag), "allowedTopologies": _in_zone(f"{tag}-far")})
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    changes = {"allowedTopologies": _in_zone(tag)}
    return lambda later: later.add_change("StorageClass", tag, changes, namespace="")


def _in_zone(zone: str) -> list[Manifest]:
    return [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]


def _needs_capacity(plot: Plot, tag: str, **fields: Any) -> None:
    """Let a pod wait for a volume of a driver whose storage is known."""
    own_node(plot, tag)
    plot.add_creation(_driver(tag, checks=True))
    plot.add_creation(storage_class(tag, provisioner=f"{tag}.example.com"))
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=[*mounting(f"{tag}-c"), *fields.get("volumes", ())])


def _driver(tag: str, *, checks: bool) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": f"{tag}.example.com"},
        "spec": {"storageCapacity": checks, "volumeLifecycleModes": ["Persistent", "Ephemeral"]},
    }


def _capacity(tag: str, amount: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": tag, "namespace": "default"},
        "storageClassName": tag,
        "nodeTopology": {"matchLabels": {ZONE: tag}},
        "capacity": amount,
    }


def _capacity_comes(plot: Plot, tag: str) -> Maker:
    _needs_capacity(plot, tag)
    return lambda later: later.add_creation(_capacity(tag, "10Gi"))


def _capacity_grows(plot: Plot, tag: str) -> Maker:
    plot.add_creation(_capacity(tag, "500Mi"))
    _needs_capacity(plot, tag)
    return lambda later: later.add_change("CSIStorageCapacity", tag, {"capacity": "10Gi"})


def _capacity_is_not_asked(plot: Plot, tag: str) -> Maker:
    """Let the driver no longer tell its storage, for a pod with an inline volume of the driver."""
    name = f"{tag}.example.com"
    _needs_capacity(plot, tag, volumes=[{"name": "inline", "csi": {"driver": name}}])
    changes = {"spec": {"storageCapacity": False}}
    return lambda later: later.add_change("CSIDriver", name, changes, namespace="")


def _bound_volume(plot: Plot, tag: str, name: str, **labels: str) -> None:
    """Create a volume with a claim that has it."""
    volume_object = volume(f"{name}-v", tag, tag)
    volume_object["metadata"]["labels"] = labels
    plot.add_creation(volume_object)
    plot.add_creation(volume_claim(f"{name}-c", tag, volumeName=f"{name}-v"))


def _volume_changes_zone(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    _bound_volume(plot, tag, tag, **{ZONE: f"{tag}-far"})
    plot.now += 1.0
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    changes = {"metadata": {"labels": {ZONE: tag}}}
    return lambda later: later.add_change("PersistentVolume", f"{tag}-v", changes, namespace="")


def _volume_is_given_up(plot: Plot, tag: str) -> Maker:
    """Wait for the only volume, which is kept for a claim that never comes."""
    own_node(plot, tag)
    plot.add_creation(storage_class(tag, provisioner=NO_PROVISIONER))
    claimed_volume = volume(f"{tag}-v", tag, tag)
    claimed_volume["spec"]["claimRef"] = {"namespace": "default", "name": f"{tag}-other"}
    plot.add_creation(claimed_volume)
    plot.add_creation(volume_claim(f"{tag}-c", tag))
    plot.now += 1.0
    own_pod(plot, tag, volumes=mounting(f"{tag}-c"))
    changes = {"spec": {"claimRef": None}}
    return lambda later: later.add_change("PersistentVolume", f"{tag}-v", changes, namespace="")


def _volume_is_detached(plot: Plot, tag: str) -> Maker:
    """Wait until a volume that no pod uses any more leaves the node, which can attach one."""
    node = own_node(plot, tag)
    plot.add_creation(storage_class(tag, waits=False, provisioner=NO_PROVISIONER))
    for each in "ab":
        _bound_volume(plot, tag, f"{tag}-{each}")
    plot.add_creation(csi_node(node, 1))
    source = {"persistentVolumeName": f"{tag}-a-v"}
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": tag},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": source},
    }
    plot.add_creation(attachment)
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", volumes=mounting(f"{tag}-b-c"))
    return lambda later: later.add_deletion("VolumeAttachment", tag, namespace="")


def _device_class_changes(plot: Plot, tag: str) -> Maker:
    """Wait until a class selects the devices that there are."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag, of=f"{tag}-other"))
    plot.add_creation(device_slice(tag, node))
    plot.add_creation(resource_claim(tag, f"{tag}-c"))
    plot.now += 0.5
    own_pod(plot, tag, **claiming(f"{tag}-c"))
    changes = {"spec": device_class(tag)["spec"]}
    return lambda later: later.add_change("DeviceClass", tag, changes, namespace="")


def _template_comes(plot: Plot, tag: str) -> Maker:
    """Wait for the claim that a controller makes from a template."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag))
    plot.add_creation(device_slice(tag, node))
    plot.now += 0.5
    entry = {"name": "one", "resourceClaimTemplateName": f"{tag}-t"}
    own_pod(plot, tag, cpu="100m", resourceClaims=[entry])
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"{tag}-t", "namespace": "default"},
        "spec": {"spec": resource_claim(tag, "")["spec"]},
    }
    return lambda later: later.add_creation(template)


def _template_claim_seen_late(plot: Plot, tag: str) -> Maker:
    """Let the watches of pods and of claims be late, each by its own time, while a claim is made.

    So a scheduler may hear from the pod's status of a claim that it has not seen.
    """
    comes = _template_comes(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("watch-slow", 1.0), seconds=3.0)
        comes(later)

    return enable_binding


PROVIDED_TROUBLE: tuple[SatisfiedWait, ...] = (_template_claim_seen_late,)
"""The changes of devices that come with a fault."""


def _resource_of_devices_comes(plot: Plot, tag: str) -> Maker:
    """Wait for a class that provides an extended resource by devices."""
    node, resource = own_node(plot, tag), f"{tag}.example.com/card"
    plot.add_creation(device_slice(tag, node))
    plot.now += 0.5
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {resource: "1"}, "limits": {resource: "1"}},
    }
    own_pod(plot, tag, containers=[container])
    device_class_object = device_class(tag)
    device_class_object["spec"]["extendedResourceName"] = resource
    return lambda later: later.add_creation(device_class_object)


def _two_for_one_device_at_once(plot: Plot, tag: str) -> Maker:
    """Let two pods with a claim each find one device at the same time; a second one comes later."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag))
    plot.add_creation(device_slice(tag, node))
    for each in "ab":
        plot.add_creation(resource_claim(tag, f"{tag}-{each}"))
    plot.now += 1.0
    for each in "ab":
        own_pod(plot, tag, f"{tag}-p{each}", **claiming(f"{tag}-{each}"))
        plot.now -= 0.3
    plot.now += 0.3
    more = {"spec": {"devices": device_slice(tag, "", 2)["spec"]["devices"]}}
    return lambda later: later.add_change("ResourceSlice", tag, more, namespace="")


def _device_held_in_vain(plot: Plot, tag: str) -> Maker:
    """Refuse the delayed step of a pod with a device: the device goes to a pod that waits."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag))
    plot.add_creation(device_slice(tag, node))
    for each in "ab":
        plot.add_creation(resource_claim(tag, f"{tag}-{each}"))

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-h", labels={LABEL: tag}, **claiming(f"{tag}-a"))
        own_pod(later, tag, **claiming(f"{tag}-b"))
        later.now += 2.4
        later.add_deletion("Pod", f"{tag}-h")

    return enable_binding


def _claim_reserved_in_vain(plot: Plot, tag: str) -> Maker:
    """Let a binding break after its claim was reserved, and another pod have the room since."""
    node = own_node(plot, tag)
    plot.add_creation(device_class(tag))
    plot.add_creation(device_slice(tag, node))
    plot.add_creation(resource_claim(tag, f"{tag}-c"))

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-h", labels={BREAKS: tag}, **claiming(f"{tag}-c", cpu="1500m"))
        later.now += 0.7
        own_pod(later, tag, priorityClassName="polite")

    return enable_binding


PROVIDED_DELAYED_STEPS: tuple[SatisfiedWait, ...] = (_device_held_in_vain, _claim_reserved_in_vain)
"""The devices that go free when the plugin DelayedStep turns a pod away."""

PROVIDED: tuple[SatisfiedWait, ...] = (
    _disk_goes_free,
    _topology_is_allowed,
    _capacity_comes,
    _capacity_grows,
    _capacity_is_not_asked,
    _volume_changes_zone,
    _volume_is_given_up,
    _volume_is_detached,
    _device_class_changes,
    _two_for_one_device_at_once,
    _template_comes,
    _resource_of_devices_comes,
)
"""The changes of storage and devices that a pod can wait for."""
