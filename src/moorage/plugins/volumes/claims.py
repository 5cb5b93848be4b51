"""Claims, volumes and classes as the volume plugins read them; shared by all four.

Rules: scheduling spec, volumes, conventions
(kubernetes v1.36 ``component-helpers/storage/volume``).
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.volume_pods import VOLUMES, ClaimVolume, claim_volume

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

_STORAGE: Final = "storage"


class VolumeError(Exception):
    """Something about a pod's volumes is broken; the text is the reason of a status."""


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the class a claim asks for; "" for none."""
    beta = claim.metadata.annotations.get(BETA_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta


def volume_class(volume: PersistentVolume) -> str:
    """Return the class of a PersistentVolume; "" for none."""
    beta = volume.metadata.annotations.get(BETA_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has a volume and the controller has finished binding it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_nano(claim: PersistentVolumeClaim) -> int | None:
    """Return the storage a claim asks for, nano bytes; None when it names none.

    Raises
    ------
    VolumeError
        It is no quantity.
    """
    amount = claim.spec.resources.requests.get(_STORAGE)
    try:
        return None if amount is None else parse_quantity(amount)
    except ValueError as problem:
        raise VolumeError(
            f'persistentvolumeclaim "{claim.name}": resources.requests.storage: {problem}'
        ) from None


def capacity_nano(volume: PersistentVolume) -> int:
    """Return the size of a volume, nano bytes; one that cannot be read counts as nothing."""
    try:
        return parse_quantity(volume.spec.capacity.get(_STORAGE, 0))
    except ValueError:
        return 0


def delays_binding(claim: PersistentVolumeClaim, listers: Listers) -> bool:
    """Whether the claim's class waits for a pod before it binds.

    Raises
    ------
    VolumeError
        The class does not say when it binds.
    """
    name = claim_class(claim)
    storage_class = listers.storage_classes.get(name) if name else None
    return storage_class is not None and waits_for_consumer(storage_class)


def waits_for_consumer(storage_class: StorageClass) -> bool:
    """Whether a class waits for a pod before it binds.

    Raises
    ------
    VolumeError
        The class does not say when it binds.
    """
    if storage_class.volume_binding_mode is None:
        raise VolumeError(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def claim_not_found(name: str) -> str:
    """Return the text of a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the text of a PersistentVolume that is not there."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """Return the text of a StorageClass that is not there."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def ownership_fault(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return why the claim of an ephemeral volume is not this pod's; None if it is.

    The pod must control the claim, by uid.
    """
    controller = next((o for o in claim.metadata.owner_references if o.controller), None)
    if (
        claim.metadata.namespace == pod.metadata.namespace
        and controller is not None
        and controller.uid == pod.metadata.uid
    ):
        return None
    return (
        f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod "
        f"{pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
    )


def claims_of(pod: PodInfo) -> tuple[ClaimVolume, ...]:
    """Return the volumes of a pod that are claims, in order."""
    return pod.part(VOLUMES).value.claims


def _references(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool) -> bool:
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    volumes = (claim_volume(volume) for volume in pod.spec.volumes)
    return any(
        volume is not None
        and (ephemeral or not volume.ephemeral)
        and volume.name_for(pod.metadata.name) == claim.metadata.name
        for volume in volumes
    )


def used_claim_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod when a claim it uses appears or changes, also one of an ephemeral volume."""
    del old
    assert isinstance(new, PersistentVolumeClaim)
    return _references(waiting, new, ephemeral=True)


def named_claim_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod when a claim it names appears or changes; ephemeral volumes name none."""
    del old
    assert isinstance(new, PersistentVolumeClaim)
    return _references(waiting, new, ephemeral=False)
