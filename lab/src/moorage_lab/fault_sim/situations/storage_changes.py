"""Pods that wait until something of the storage or the devices changes, which was there before."""

from __future__ import annotations

from moorage_lab.fault_sim.delayed_step import BREAKS, LABEL
from moorage_lab.fault_sim.situations.situation import SOME, Situation, SituationTable, Steps
from moorage_lab.fault_sim.situations.storage import add_device, create_devices, create_volumes
from moorage_lab.fault_sim.users.plot import ZONE
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
from moorage_sandbox.testing.builders import Manifest

WAITS = SituationTable()
"""The changes of storage and devices that a pod can wait for."""

LATE_WATCHES = SituationTable(disturbs=True)
"""The changes of devices that come with a fault."""

DELAYED_STEPS = SituationTable(disturbs=True)
"""The devices that go free when the plugin DelayedStep turns a pod away."""


@WAITS.declare()
def disk_goes_free(s: Situation) -> Steps:
    """Wait for a disk that only one pod of a node may have."""
    disk = {"name": "d", "gcePersistentDisk": {"pdName": s.tag}}
    holder = s.create_rivals(cpu="100m", volumes=[disk])
    yield
    s.delete_pod(holder)


@WAITS.declare()
def topology_is_allowed(s: Situation) -> Steps:
    """Wait until a class may provide volumes in the zone of the node."""
    s.create_node()
    far = {**storage_class(s.tag), "allowedTopologies": _in_zone(f"{s.tag}-far")}
    s.create_objects(far, volume_claim(f"{s.tag}-c", s.tag))
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.change_object("StorageClass", s.tag, allowedTopologies=_in_zone(s.tag))


def _in_zone(zone: str) -> list[Manifest]:
    return [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]


def _need_capacity(s: Situation, *volumes: Manifest) -> str:
    """Let a pod wait for a volume of a driver whose storage is known; return the driver."""
    s.create_node()
    name = f"{s.tag}.example.com"
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": {"storageCapacity": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]},
    }
    s.create_objects(driver, storage_class(s.tag, provisioner=name))
    s.create_objects(volume_claim(f"{s.tag}-c", s.tag))
    s.create_pod(volumes=[*mounting(f"{s.tag}-c"), *volumes])
    return name


def _capacity(tag: str, amount: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": tag, "namespace": "default"},
        "storageClassName": tag,
        "nodeTopology": {"matchLabels": {ZONE: tag}},
        "capacity": amount,
    }


@WAITS.declare()
def capacity_comes(s: Situation) -> Steps:
    _need_capacity(s)
    yield
    s.create_objects(_capacity(s.tag, "10Gi"))


@WAITS.declare()
def capacity_grows(s: Situation) -> Steps:
    s.create_objects(_capacity(s.tag, "500Mi"))
    _need_capacity(s)
    yield
    s.change_object("CSIStorageCapacity", s.tag, capacity="10Gi")


@WAITS.declare()
def capacity_is_not_asked(s: Situation) -> Steps:
    """Let the driver no longer tell its storage, for a pod with an inline volume of the driver."""
    inline = {"name": "inline", "csi": {"driver": f"{s.tag}.example.com"}}
    driver = _need_capacity(s, inline)
    yield
    s.change_object("CSIDriver", driver, spec={"storageCapacity": False})


def _bound_volume(s: Situation, name: str, **labels: str) -> tuple[Manifest, Manifest]:
    """Return a volume with a claim that has it."""
    bound = volume(f"{name}-v", s.tag, s.tag)
    bound["metadata"]["labels"] = labels
    return bound, volume_claim(f"{name}-c", s.tag, volumeName=f"{name}-v")


@WAITS.declare()
def volume_changes_zone(s: Situation) -> Steps:
    s.create_node()
    create_volumes(s, *_bound_volume(s, s.tag, **{ZONE: f"{s.tag}-far"}))
    s.wait_seconds(1.0)
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.change_object("PersistentVolume", f"{s.tag}-v", metadata={"labels": {ZONE: s.tag}})


@WAITS.declare()
def volume_is_given_up(s: Situation) -> Steps:
    """Wait for the only volume, which is kept for a claim that never comes."""
    s.create_node()
    claimed = volume(f"{s.tag}-v", s.tag, s.tag)
    claimed["spec"]["claimRef"] = {"namespace": "default", "name": f"{s.tag}-other"}
    s.create_objects(storage_class(s.tag, provisioner=NO_PROVISIONER), claimed)
    s.create_objects(volume_claim(f"{s.tag}-c", s.tag))
    s.wait_seconds(1.0)
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.change_object("PersistentVolume", f"{s.tag}-v", spec={"claimRef": None})


@WAITS.declare()
def volume_is_detached(s: Situation) -> Steps:
    """Wait until a volume that no pod uses any more leaves the node, which can attach one."""
    node = s.create_node()
    a, b = (_bound_volume(s, f"{s.tag}-{each}") for each in "ab")
    create_volumes(s, *a, *b, csi_node(node, 1))
    source = {"persistentVolumeName": f"{s.tag}-a-v"}
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": s.tag},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": source},
    }
    s.create_objects(attachment)
    s.wait_seconds(1.0)
    s.create_pod(cpu="100m", volumes=mounting(f"{s.tag}-b-c"))
    yield
    s.delete_object("VolumeAttachment", s.tag)


@WAITS.declare()
def device_class_changes(s: Situation) -> Steps:
    """Wait until a class selects the devices that there are."""
    node, claim = s.create_node(), s.object_name("c")
    other = device_class(s.tag, of=f"{s.tag}-other")
    s.create_objects(other, device_slice(s.tag, node), resource_claim(s.tag, claim))
    s.wait_seconds(0.5)
    s.create_pod(**claiming(claim))
    yield
    s.change_object("DeviceClass", s.tag, spec=device_class(s.tag)["spec"])


@WAITS.declare(binds=SOME)
def two_for_one_device_at_once(s: Situation) -> Steps:
    """Let two pods with a claim each find one device at the same time; a second one comes later."""
    create_devices(s, "a", "b")
    s.wait_seconds(1.0)
    for each in "ab":
        s.create_pod(f"p{each}", **claiming(f"{s.tag}-{each}"))
        s.wait_seconds(-0.3)
    s.wait_seconds(0.3)
    yield
    add_device(s)


def _wait_for_template(s: Situation) -> Manifest:
    """Let a pod wait for the claim that a controller makes from a template; return the template."""
    create_devices(s)
    s.wait_seconds(0.5)
    entry = {"name": "one", "resourceClaimTemplateName": f"{s.tag}-t"}
    s.create_pod(cpu="100m", resourceClaims=[entry])
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"{s.tag}-t", "namespace": "default"},
        "spec": {"spec": resource_claim(s.tag, "")["spec"]},
    }


@WAITS.declare()
def template_comes(s: Situation) -> Steps:
    template = _wait_for_template(s)
    yield
    s.create_objects(template)


@LATE_WATCHES.declare(within_seconds=10.0)
def template_claim_seen_late(s: Situation) -> Steps:
    """Let the watches of pods and of claims be late, each by its own time, while a claim is made.

    So a scheduler may hear from the pod's status of a claim that it has not seen.
    """
    template = _wait_for_template(s)
    yield
    s.disturb(("watch-slow", 1.0), seconds=3.0)
    s.create_objects(template)


@WAITS.declare()
def resource_of_devices_comes(s: Situation) -> Steps:
    """Wait for a class that provides an extended resource by devices."""
    node, amounts = s.create_node(), {f"{s.tag}.example.com/card": "1"}
    s.create_objects(device_slice(s.tag, node))
    s.wait_seconds(0.5)
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": amounts, "limits": amounts},
    }
    s.create_pod(containers=[container])
    provides = device_class(s.tag)
    provides["spec"]["extendedResourceName"] = f"{s.tag}.example.com/card"
    yield
    s.create_objects(provides)


@DELAYED_STEPS.declare()
def device_held_in_vain(s: Situation) -> Steps:
    """Refuse the delayed step of a pod with a device: the device goes to a pod that waits."""
    create_devices(s, "a", "b")
    yield
    holder = s.create_pod("h", labels={LABEL: s.tag}, **claiming(f"{s.tag}-a"))
    s.create_pod(**claiming(f"{s.tag}-b"))
    s.wait_seconds(2.4)
    s.delete_pod(holder)


@DELAYED_STEPS.declare()
def claim_reserved_in_vain(s: Situation) -> Steps:
    """Let a binding break after its claim was reserved, and another pod have the room since."""
    create_devices(s, "c")
    yield
    s.create_pod("h", labels={BREAKS: s.tag}, **claiming(f"{s.tag}-c", cpu="1500m"))
    s.wait_seconds(0.7)
    s.create_pod(priorityClassName="polite")
