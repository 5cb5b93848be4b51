"""Pods that wait for something of the storage or the devices of a cluster to come."""

from __future__ import annotations

from moorage_lab.fault_sim.delayed_step import LABEL
from moorage_lab.fault_sim.situations.situation import SOME, Situation, SituationTable, Steps
from moorage_lab.fault_sim.users.plot import ZONE
from moorage_lab.fault_sim.users.stored import (
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
"""The things of storage and devices that a pod can wait for."""

DELAYED_STEPS = SituationTable(disturbs=True)
"""The things of storage that go free when the plugin DelayedStep turns a pod away."""


@WAITS.declare()
def claim_comes(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(storage_class(s.tag), volume(f"{s.tag}-v", s.tag, s.tag))
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.create_objects(volume_claim(f"{s.tag}-c", s.tag))


@WAITS.declare()
def volume_comes(s: Situation) -> Steps:
    """Wait for a volume, with a claim that is bound at once or for its first consumer."""
    s.create_node()
    waits = s.rng.random() < 0.5
    s.create_objects(storage_class(s.tag, waits=waits, provisioner=NO_PROVISIONER))
    s.create_objects(volume_claim(f"{s.tag}-c", s.tag))
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.create_objects(volume(f"{s.tag}-v", s.tag, s.tag))


@WAITS.declare()
def class_comes(s: Situation) -> Steps:
    s.create_node()
    s.create_objects(volume_claim(f"{s.tag}-c", s.tag))
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    s.create_objects(storage_class(s.tag))


@WAITS.declare()
def reach_comes(s: Situation) -> Steps:
    """Wait until the node gets the label that the volume asks for."""
    node = s.create_node()
    reach = s.object_name("reach")
    create_volumes(s, volume(f"{s.tag}-v", reach, s.tag), volume_claim(f"{s.tag}-c", s.tag))
    s.wait_seconds(1.0)
    selector = {"kubernetes.io/hostname": node}
    s.create_pod(node_selector=selector, volumes=mounting(f"{s.tag}-c"))
    yield
    s.label_node(node, {"wait": reach})


def create_volumes(s: Situation, *objects: Manifest) -> None:
    """Create volumes and claims of a class that provides none, and binds claims at once."""
    s.create_objects(storage_class(s.tag, waits=False, provisioner=NO_PROVISIONER), *objects)


@WAITS.declare()
def driver_is_migrated(s: Situation) -> Steps:
    """Wait until the node's volumes of an old type are those of a driver, with its own zones."""
    node = s.create_node(labels={"topology.ebs.csi.aws.com/zone": f"{s.tag}-z"})
    old = volume(f"{s.tag}-v", s.tag, s.tag)
    zone = {"key": ZONE, "operator": "In", "values": [f"{s.tag}-z"]}
    del old["spec"]["csi"]
    old["spec"] |= {
        "awsElasticBlockStore": {"volumeID": "vol-0123456789abcdef0"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
    }
    create_volumes(s, old, csi_node(node, 5), volume_claim(f"{s.tag}-c", s.tag))
    s.wait_seconds(1.0)
    s.create_pod(volumes=mounting(f"{s.tag}-c"))
    yield
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    s.change_object("CSINode", node, metadata={"annotations": migrated})


@WAITS.declare()
def only_user_goes(s: Situation) -> Steps:
    s.create_node()
    mode = "ReadWriteOncePod"
    claim = volume_claim(f"{s.tag}-c", s.tag, accessModes=[mode])
    create_volumes(s, volume(f"{s.tag}-v", s.tag, s.tag, modes=mode), claim)
    s.wait_seconds(1.0)
    holder = s.create_holder(cpu="100m", volumes=mounting(f"{s.tag}-c"))
    s.create_pod(cpu="100m", volumes=mounting(f"{s.tag}-c"))
    yield
    s.delete_pod(holder)


def _create_attached(s: Situation) -> tuple[str, str]:
    """Let a node attach the one volume it can, while a pod waits with another volume.

    Returns the node, and the pod that has the volume.
    """
    node = s.create_node()
    create_volumes(s)
    for each in "ab":
        claim = volume_claim(f"{s.tag}-c{each}", s.tag, volumeName=f"{s.tag}-v{each}")
        s.create_objects(volume(f"{s.tag}-v{each}", s.tag, s.tag), claim)
    s.create_objects(csi_node(node, 1))
    s.wait_seconds(1.0)
    holder = s.create_pod("h", cpu="100m", volumes=mounting(f"{s.tag}-ca"))
    s.wait_seconds(2.0)
    s.create_pod(cpu="100m", volumes=mounting(f"{s.tag}-cb"))
    return node, holder


@WAITS.declare()
def attachment_goes(s: Situation) -> Steps:
    _, holder = _create_attached(s)
    yield
    s.delete_pod(holder)


@WAITS.declare()
def limit_is_raised(s: Situation) -> Steps:
    node, _ = _create_attached(s)
    yield
    s.change_object("CSINode", node, spec=csi_node(node, 2)["spec"])


def _create_two_claims(s: Situation) -> None:
    """Create a node, and two claims that wait for their first consumer."""
    s.create_node()
    s.create_objects(storage_class(s.tag, provisioner=NO_PROVISIONER))
    s.create_objects(*(volume_claim(f"{s.tag}-c{each}", s.tag) for each in "ab"))


@WAITS.declare(binds=SOME)
def two_for_one_volume(s: Situation) -> Steps:
    """Let two pods with a claim each find one volume at the same time; a second one comes later."""
    _create_two_claims(s)
    s.create_objects(volume(f"{s.tag}-va", s.tag, s.tag))
    s.wait_seconds(1.0)
    for each in "ab":
        s.create_pod(each, cpu="100m", volumes=mounting(f"{s.tag}-c{each}"))
        s.wait_seconds(-0.3)
    s.wait_seconds(0.3)
    yield
    s.create_objects(volume(f"{s.tag}-vb", s.tag, s.tag))


@DELAYED_STEPS.declare(within_seconds=6.0)
def volume_held_in_vain(s: Situation) -> Steps:
    """Fail the delayed step of a pod with a claim: its volume goes to a claim that waits."""
    _create_two_claims(s)
    s.create_objects(volume(f"{s.tag}-v", s.tag, s.tag))
    yield
    s.create_pod("h", labels={LABEL: s.tag}, volumes=mounting(f"{s.tag}-ca"), cpu="100m")
    s.create_pod(volumes=mounting(f"{s.tag}-cb"), cpu="100m")


def create_devices(s: Situation, *claims: str) -> None:
    """Create a node with one device, its class, and claims of these names."""
    node = s.create_node()
    s.create_objects(device_class(s.tag), device_slice(s.tag, node))
    s.create_objects(*(resource_claim(s.tag, f"{s.tag}-{each}") for each in claims))


def _wait_for_part(s: Situation, part: int) -> Steps:
    """Wait for one of three parts: the class of devices, the devices, or the claim."""
    node, claim = s.create_node(), s.object_name("c")
    parts = [device_class(s.tag), device_slice(s.tag, node), resource_claim(s.tag, claim)]
    missing = parts.pop(part)
    s.create_objects(*parts)
    s.wait_seconds(0.5)
    s.create_pod(**claiming(claim))
    yield
    s.create_objects(missing)


@WAITS.declare()
def device_class_comes(s: Situation) -> Steps:
    yield from _wait_for_part(s, 0)


@WAITS.declare()
def slice_comes(s: Situation) -> Steps:
    yield from _wait_for_part(s, 1)


@WAITS.declare()
def resource_claim_comes(s: Situation) -> Steps:
    yield from _wait_for_part(s, 2)


def _create_two_for_one_device(s: Situation) -> str:
    """Let one pod have the device that another one waits for; return the first."""
    create_devices(s, "a", "b")
    s.wait_seconds(0.5)
    holder = s.create_holder(**claiming(f"{s.tag}-a"))
    s.create_pod(**claiming(f"{s.tag}-b"))
    return holder


@WAITS.declare()
def device_goes_free(s: Situation) -> Steps:
    holder = _create_two_for_one_device(s)
    yield
    s.delete_pod(holder)


@WAITS.declare()
def slice_grows(s: Situation) -> Steps:
    """Wait for a second device in the slice that is known."""
    _create_two_for_one_device(s)
    yield
    add_device(s)


def add_device(s: Situation) -> None:
    """Let the slice have a second device."""
    devices = device_slice(s.tag, "", 2)["spec"]["devices"]
    s.change_object("ResourceSlice", s.tag, spec={"devices": devices})
