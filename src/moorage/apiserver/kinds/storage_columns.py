"""Table columns and rows of volumes, claims and the objects of CSI drivers.

Place in the flow: Table output of lists, gets and watches. Mirrors kubernetes v1.36
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.kind import Column
from moorage.apiserver.kinds.cells import AGE, NAME, UNSET, age, name_of
from moorage.apiserver.kinds.core_columns import shown_or_unset
from moorage.apiserver.kinds.tree import Json, child, items, objects, text

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}

VOLUME_COLUMNS = (
    NAME,
    Column("Capacity", description="Size of the volume"),
    Column("Access Modes", description="Ways it can be mounted"),
    Column("Reclaim Policy", description="What happens to it when its claim goes"),
    Column("Status", description="Phase of the volume"),
    Column("Claim", description="Claim it belongs to"),
    Column("StorageClass", description="Its storage class"),
    Column("VolumeAttributesClass", description="Its volume attributes class"),
    Column("Reason", description="Why it failed"),
    AGE,
    Column("VolumeMode", description="Filesystem or Block", priority=1),
)


def volume_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a persistent volume's row."""
    spec = child(obj, "spec")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        str(child(spec, "capacity").get("storage", "0")),
        access_modes(items(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        storage_class_of(obj),
        shown_or_unset(spec.get("volumeAttributesClassName")),
        text(obj, "status", "reason"),
        age(obj, now_ns),
        text(spec, "volumeMode") or UNSET,
    ]


CLAIM_COLUMNS = (
    NAME,
    Column("Status", description="Phase of the claim"),
    Column("Volume", description="Volume it is bound to"),
    Column("Capacity", description="Size of that volume"),
    Column("Access Modes", description="Ways it can be mounted"),
    Column("StorageClass", description="Its storage class"),
    Column("VolumeAttributesClass", description="Its volume attributes class"),
    AGE,
    Column("VolumeMode", description="Filesystem or Block", priority=1),
)


def claim_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a claim's row."""
    spec = child(obj, "spec")
    bound = bool(text(spec, "volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        text(spec, "volumeName"),
        str(child(obj, "status", "capacity").get("storage", "0")) if bound else "",
        access_modes(items(obj, "status", "accessModes")) if bound else "",
        storage_class_of(obj),
        shown_or_unset(spec.get("volumeAttributesClassName")),
        age(obj, now_ns),
        text(spec, "volumeMode") or UNSET,
    ]


def storage_class_of(obj: Json) -> str:
    """Storage class of a volume or claim; the old annotation takes precedence."""
    annotations = child(obj, "metadata", "annotations")
    if _CLASS_ANNOTATION in annotations:
        return str(annotations[_CLASS_ANNOTATION])
    return text(obj, "spec", "storageClassName")


def access_modes(modes: list[Any]) -> str:
    """Return access modes in short form, in a fixed order, each once."""
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(obj: Json) -> str:
    if text(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return text(obj, "status", "phase")


STORAGE_CLASS_COLUMNS = (
    NAME,
    Column("Provisioner", description="Who makes the volumes"),
    Column("ReclaimPolicy", description="What happens to a volume when its claim goes"),
    Column("VolumeBindingMode", description="When claims are bound"),
    Column("AllowVolumeExpansion", "boolean", description="Whether claims may grow"),
    AGE,
)


def storage_class_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a storage class's row."""
    name = name_of(obj)
    if child(obj, "metadata", "annotations").get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    return [
        name,
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion") is True,
        age(obj, now_ns),
    ]


CSI_NODE_COLUMNS = (NAME, Column("Drivers", "integer", description="Drivers on the node"), AGE)


def csi_node_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a CSI node's row."""
    return [name_of(obj), len(objects(obj, "spec", "drivers")), age(obj, now_ns)]


CSI_DRIVER_COLUMNS = (
    NAME,
    Column("AttachRequired", "boolean", description="Volumes have to be attached"),
    Column("PodInfoOnMount", "boolean", description="The driver is told about the pod"),
    Column("StorageCapacity", "boolean", description="The driver publishes capacities"),
    Column("TokenRequests", description="Audiences of the tokens it asks for"),
    Column("RequiresRepublish", "boolean", description="Volumes are published again and again"),
    Column("Modes", description="Kinds of volumes the driver serves"),
    AGE,
)


def csi_driver_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a CSI driver's row."""
    spec = child(obj, "spec")
    audiences = [text(each, "audience") for each in objects(spec, "tokenRequests")]
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        ",".join(audiences) if audiences else UNSET,
        spec.get("requiresRepublish") is True,
        ",".join(str(each) for each in items(spec, "volumeLifecycleModes")) or "<none>",
        age(obj, now_ns),
    ]


STORAGE_CAPACITY_COLUMNS = (
    NAME,
    Column("StorageClassName", description="Storage class the capacity is for"),
    Column("Capacity", description="Space that is left"),
)


def storage_capacity_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a storage capacity's row."""
    return [name_of(obj), text(obj, "storageClassName"), str(obj.get("capacity", UNSET))]


ATTACHMENT_COLUMNS = (
    NAME,
    Column("Attacher", description="Driver that attaches the volume"),
    Column("PV", description="Volume to attach"),
    Column("Node", description="Node to attach it to"),
    Column("Attached", "boolean", description="Whether it is attached"),
    AGE,
)


def attachment_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a volume attachment's row."""
    spec = child(obj, "spec")
    return [
        name_of(obj),
        text(spec, "attacher"),
        text(spec, "source", "persistentVolumeName"),
        text(spec, "nodeName"),
        child(obj, "status").get("attached") is True,
        age(obj, now_ns),
    ]
