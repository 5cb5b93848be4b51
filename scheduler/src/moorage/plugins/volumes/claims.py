"""Functions on claims, volumes and classes that all four volume plugins share.

Rules: scheduling spec, volumes section 0
(kubernetes v1.36 ``component-helpers/storage/volume``).
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.volume import (
    BETA_CLASS,
    BIND_COMPLETED,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.volume_pods import ClaimVolume, claim_volume, volumes_of

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

_STORAGE: Final = "storage"


class VolumeError(Exception):
    """A claim, volume or class of a pod is invalid; the text is the reason of a status."""


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the name of the class that a claim asks for; "" for none."""
    beta = claim.metadata.annotations.get(BETA_CLASS)
    return (claim.spec.storage_class_name or "") if beta is None else beta


def volume_class(volume: PersistentVolume) -> str:
    """Return the name of the class of a PersistentVolume; "" for none."""
    beta = volume.metadata.annotations.get(BETA_CLASS)
    return volume.spec.storage_class_name if beta is None else beta


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has a volume and the controller has finished binding it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_nano(claim: PersistentVolumeClaim) -> int | None:
    """Return the storage that a claim requests, nano bytes; None without a request.

    Raises
    ------
    VolumeError
        The request is not a valid quantity.
    """
    amount = claim.spec.resources.requests.get(_STORAGE)
    try:
        return None if amount is None else parse_quantity(amount)
    except ValueError as problem:
        raise VolumeError(
            f'persistentvolumeclaim "{claim.name}": resources.requests.storage: {problem}'
        ) from None


def capacity_nano(volume: PersistentVolume) -> int:
    """Return the capacity of a volume, nano bytes; an invalid quantity counts as 0."""
    try:
        return parse_quantity(volume.spec.capacity.get(_STORAGE, 0))
    except ValueError:
        return 0


def delays_binding(claim: PersistentVolumeClaim, listers: Listers) -> bool:
    """Whether binding the claim waits for a pod, by the claim's class.

    Raises
    ------
    VolumeError
        The class has no volumeBindingMode.
    """
    name = claim_class(claim)
    storage_class = listers.storage_classes.get(name) if name else None
    return storage_class is not None and waits_for_consumer(storage_class)


def waits_for_consumer(storage_class: StorageClass) -> bool:
    """Whether claims of a class wait for a pod before they are bound.

    Raises
    ------
    VolumeError
        The class has no volumeBindingMode.
    """
    if storage_class.volume_binding_mode is None:
        raise VolumeError(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def claim_not_found(name: str) -> str:
    """Return the reason for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the reason for a PersistentVolume that does not exist."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """Return the reason for a StorageClass that does not exist."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def ownership_fault(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return why the claim of an ephemeral volume does not belong to this pod; None if it does.

    The claim's controller reference must have the pod's uid.
    """
    controller = claim.metadata.controller
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
    """Return the volumes of a pod that refer to a claim, in the order of the spec."""
    return volumes_of(pod).claims


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
    """Queue a pod when a claim of its volumes, also of ephemeral volumes, is new or changed."""
    del old
    assert isinstance(new, PersistentVolumeClaim)
    return _references(waiting, new, ephemeral=True)


def named_claim_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod when a claim that its spec names is new or changed; not for ephemeral volumes."""
    del old
    assert isinstance(new, PersistentVolumeClaim)
    return _references(waiting, new, ephemeral=False)
