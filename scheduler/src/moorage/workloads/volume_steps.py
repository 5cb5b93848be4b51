"""The next step for a claim, a volume or a pod's ephemeral volumes: decisions without I/O.

``volumes`` carries a step out; the next step is decided when the watch shows the result.

Rules mirrored, simplified: kubernetes v1.36 ``pkg/controller/volume/persistentvolume``,
``ephemeral``, ``pvcprotection`` and ``pvprotection``; storage drivers are played.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.api.names import dns_subdomain_faults
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, ResourceType
from moorage.api.selectors import compile_label_selector
from moorage.api.volume import (
    BETA_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLAIM_PROTECTION,
    NO_PROVISIONER,
    SELECTED_NODE,
    VOLUME_PROTECTION,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

Json: TypeAlias = dict[str, object]
Key: TypeAlias = tuple[str, str]

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_WAIT: Final = "WaitForFirstConsumer"


class Create(msgspec.Struct, frozen=True):
    """Create an object."""

    resource: ResourceType
    body: Json
    namespace: str = ""


class Patch(msgspec.Struct, frozen=True):
    """Change an object by a merge patch, if it still has the version that the step is based on."""

    resource: ResourceType
    key: Key
    change: Json
    subresource: str = ""


class Release(Patch, frozen=True):
    """Remove the protection of an object that is being deleted and that nothing uses."""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object."""

    resource: ResourceType
    key: Key


Step: TypeAlias = Create | Patch | Delete


class VolumeWorld(msgspec.Struct, frozen=True):
    """The watched objects, by (namespace, name), and the claims that pods on nodes use."""

    claims: Mapping[Key, PersistentVolumeClaim]
    volumes: Mapping[Key, PersistentVolume]
    classes: Mapping[Key, StorageClass]
    pods: Mapping[Key, Pod]
    used: Mapping[Key, Collection[Key]]


class VolumeIndex(msgspec.Struct, frozen=True):
    """Index of volumes for the search by claims; made once for many claims.

    Parameters
    ----------
    free
        Available volumes without a reservation.
    reserved
        Reserved volumes by (namespace, name) of the claim.
    """

    free: Sequence[PersistentVolume]
    reserved: Mapping[Key, Sequence[PersistentVolume]]


def index_volumes(volumes: Iterable[PersistentVolume]) -> VolumeIndex:
    """Group volumes by the claims that may use them."""
    free: list[PersistentVolume] = []
    reserved: dict[Key, list[PersistentVolume]] = {}
    for volume in volumes:
        reference = volume.spec.claim_ref
        if volume.metadata.deletion_timestamp is not None:
            continue
        if reference is not None:
            reserved.setdefault((reference.namespace, reference.name), []).append(volume)
        elif volume.status.phase == "Available":
            free.append(volume)
    return VolumeIndex(free, reserved)


# -- claims ----------------------------------------------------------------------------------------


def claim_step(claim: PersistentVolumeClaim, world: VolumeWorld, index: VolumeIndex) -> Step | None:
    """Return the next step of a claim; None when there is no step.

    Parameters
    ----------
    index
        Index of the world's volumes.

    Raises
    ------
    ValueError
        The claim's selector or a quantity cannot be read.
    """
    if claim.metadata.deletion_timestamp is not None:
        used = (claim.namespace, claim.name) in world.used
        return None if used else _release(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION)
    if claim.spec.volume_name:
        return _named_volume_step(claim, world)
    volume = _reserved(claim, index)
    if volume is not None:
        return _tie(claim, volume)
    storage_class = world.classes.get(("", _class_of(claim)))
    waits = storage_class is not None and storage_class.volume_binding_mode == _WAIT
    if waits and SELECTED_NODE not in claim.metadata.annotations:
        return None
    volume = None if waits else _smallest(claim, index.free)
    if volume is not None:
        return _take(claim, volume)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return None
    return _provision(claim, storage_class, world)


def _named_volume_step(claim: PersistentVolumeClaim, world: VolumeWorld) -> Step | None:
    volume = world.volumes.get(("", claim.spec.volume_name))
    completed = BIND_COMPLETED in claim.metadata.annotations
    if volume is None:
        lost = completed and claim.status.phase != "Lost"
        return _claim_status(claim, {"phase": "Lost"}) if lost else None
    reference = volume.spec.claim_ref
    if reference is None:
        return _take(claim, volume)
    if not _is_for(volume, claim):
        return None
    if not reference.uid:
        return _take(claim, volume)
    if not completed:
        return _tie(claim, volume)
    if volume.status.phase != "Bound":
        return _status(PERSISTENT_VOLUMES, volume, {"phase": "Bound"})
    if claim.status.phase != "Bound":
        return _claim_status(
            claim,
            {
                "phase": "Bound",
                "accessModes": volume.spec.access_modes,
                "capacity": volume.spec.capacity,
            },
        )
    return _expand(claim, volume)


def asks_for_more(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim may have to be expanded: it does not have what it asks for."""
    asked = claim.spec.resources.requests.get("storage")
    return asked != claim.status.capacity.get("storage")


def _expand(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Step | None:
    """Expand a provisioned volume as its driver would, and then tell the claim."""
    if PROVISIONED_BY not in volume.metadata.annotations or not asks_for_more(claim):
        return None
    asked = claim.spec.resources.requests.get("storage", 0)
    if parse_quantity(asked) > _size(volume):
        change: Json = {
            "metadata": {"resourceVersion": volume.metadata.resource_version},
            "spec": {"capacity": {"storage": asked}},
        }
        return Patch(PERSISTENT_VOLUMES, ("", volume.name), change)
    if parse_quantity(claim.status.capacity.get("storage", 0)) < _size(volume):
        return _claim_status(claim, {"capacity": volume.spec.capacity})
    return None


def _take(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch:
    """Reserve a volume for a claim."""
    change: Json = {
        "metadata": {"resourceVersion": volume.metadata.resource_version},
        "spec": {"claimRef": _reference(claim)},
    }
    if volume.spec.claim_ref is None:
        change["metadata"] = {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        }
    return Patch(PERSISTENT_VOLUMES, ("", volume.name), change)


def _tie(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Step:
    """Write the reserved volume's name into the claim."""
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        return _take(claim, volume)
    annotations = {BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    change: Json = {
        "metadata": {
            "resourceVersion": claim.metadata.resource_version,
            "annotations": annotations,
        },
        "spec": {"volumeName": volume.name},
    }
    return Patch(PERSISTENT_VOLUME_CLAIMS, (claim.namespace, claim.name), change)


def _provision(
    claim: PersistentVolumeClaim, storage_class: StorageClass, world: VolumeWorld
) -> Create | None:
    """Create the volume as a storage driver would."""
    name = f"pvc-{claim.metadata.uid}"
    if ("", name) in world.volumes:
        return None
    spec: Json = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
        "accessModes": claim.spec.access_modes,
        "claimRef": _reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.name,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        **_source(storage_class.provisioner, name),
    }
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    terms = [
        {
            "matchExpressions": [
                {"key": item.key, "operator": "In", "values": item.values}
                for item in term.match_label_expressions
            ]
        }
        for term in storage_class.allowed_topologies
        if term.match_label_expressions
    ]
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    body: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {
                PROVISIONED_BY: storage_class.provisioner,
                BOUND_BY_CONTROLLER: "yes",
            },
        },
        "spec": spec,
    }
    return Create(PERSISTENT_VOLUMES, body)


def _source(provisioner: str, name: str) -> Json:
    """Return the source of a new volume: CSI, unless the provisioner is no name of a CSI driver.

    Provisioners as ``rancher.io/local-path`` are programs without a driver, and make such paths.
    """
    if not dns_subdomain_faults(provisioner.lower()):
        return {"csi": {"driver": provisioner, "volumeHandle": name}}
    return {"hostPath": {"path": f"/var/lib/volumes/{name}"}}


def _reserved(claim: PersistentVolumeClaim, index: VolumeIndex) -> PersistentVolume | None:
    volumes = index.reserved.get((claim.namespace, claim.name), ())
    return next((volume for volume in volumes if _is_for(volume, claim)), None)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and reference.uid in ("", claim.metadata.uid)
        and volume.metadata.deletion_timestamp is None
    )


def _smallest(
    claim: PersistentVolumeClaim, free: Iterable[PersistentVolume]
) -> PersistentVolume | None:
    """Return the smallest free volume that suits a claim which does not wait for a pod."""
    wanted = parse_quantity(claim.spec.resources.requests.get("storage", 0))
    selector = claim.spec.selector
    matcher = None if selector is None else compile_label_selector(selector)
    suited = [
        volume
        for volume in free
        if _class_of(volume) == _class_of(claim)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and set(volume.spec.access_modes) >= set(claim.spec.access_modes)
        and (matcher is None or matcher.matches(volume.metadata.labels))
        and _size(volume) >= wanted
    ]
    return min(suited, key=_size, default=None)


# -- volumes ---------------------------------------------------------------------------------------


def volume_step(volume: PersistentVolume, world: VolumeWorld) -> Step | None:
    """Return the next step of a volume: a phase, its deletion, or the end of its protection."""
    reference, phase = volume.spec.claim_ref, volume.status.phase
    deleted = volume.metadata.deletion_timestamp is not None
    if deleted and phase != "Bound":
        return _release(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)
    if reference is None or not reference.uid:
        return None if phase == "Available" else _phase(volume, "Available")
    claim = world.claims.get((reference.namespace, reference.name))
    if claim is not None and claim.metadata.uid == reference.uid:
        return None
    if phase not in ("Bound", "Released"):
        return None  # the watch has not shown its claim yet
    if phase == "Bound":
        return _phase(volume, "Released")
    if volume.spec.persistent_volume_reclaim_policy == "Delete":
        return Delete(PERSISTENT_VOLUMES, ("", volume.name))
    return None


def _phase(volume: PersistentVolume, phase: str) -> Patch:
    return _status(PERSISTENT_VOLUMES, volume, {"phase": phase})


# -- ephemeral volumes -----------------------------------------------------------------------------


def pod_steps(pod: Pod, world: VolumeWorld) -> list[Step]:
    """Return the claims to create for the ephemeral volumes of a pod."""
    if pod.metadata.deletion_timestamp is not None:
        return []
    steps: list[Step] = []
    for volume in pod.spec.volumes:
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        name = f"{pod.name}-{volume.name}"
        if template is None or (pod.namespace, name) in world.claims:
            continue
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "uid": pod.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        body: Json = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": pod.namespace,
                "labels": template.metadata.labels,
                "annotations": template.metadata.annotations,
                "ownerReferences": [owner],
            },
            "spec": msgspec.to_builtins(template.spec),
        }
        steps.append(Create(PERSISTENT_VOLUME_CLAIMS, body, pod.namespace))
    return steps


def orphaned_claims(world: VolumeWorld) -> list[Step]:
    """Return deletions of claims whose owning pod no longer exists."""
    uids = {pod.metadata.uid for pod in world.pods.values()}
    return [
        Delete(PERSISTENT_VOLUME_CLAIMS, key)
        for key, claim in world.claims.items()
        if claim.metadata.deletion_timestamp is None
        and any(
            owner.kind == "Pod" and owner.controller and owner.uid not in uids
            for owner in claim.metadata.owner_references
        )
    ]


# -- small things ----------------------------------------------------------------------------------


def _release(
    resource: ResourceType, obj: PersistentVolumeClaim | PersistentVolume, finalizer: str
) -> Release | None:
    finalizers = obj.metadata.finalizers
    if finalizer not in finalizers:
        return None
    metadata = {
        "resourceVersion": obj.metadata.resource_version,
        "finalizers": [each for each in finalizers if each != finalizer] or None,
    }
    return Release(resource, (obj.namespace, obj.name), {"metadata": metadata})


def _class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    beta = obj.metadata.annotations.get(BETA_CLASS)
    return (obj.spec.storage_class_name or "") if beta is None else beta


def _size(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def _reference(claim: PersistentVolumeClaim) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }


def _status(resource: ResourceType, obj: PersistentVolume, status: Json) -> Patch:
    change: Json = {
        "metadata": {"resourceVersion": obj.metadata.resource_version},
        "status": status,
    }
    return Patch(resource, (obj.namespace, obj.name), change, "status")


def _claim_status(claim: PersistentVolumeClaim, status: Json) -> Patch:
    change: Json = {
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "status": status,
    }
    return Patch(PERSISTENT_VOLUME_CLAIMS, (claim.namespace, claim.name), change, "status")
