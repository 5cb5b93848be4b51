"""Hints: which changes may help a pod that VolumeBinding rejected.

The hints are for StorageClasses, CSINodes, CSIDrivers, CSIStorageCapacities and failed bindings.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumebinding``, the hints; the
one for failed bindings is moorage's.
"""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.api.volume import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from moorage.plugins.volumes.finder import capacity_limit_bytes
from moorage.plugins.volumes.translation import MIGRATED_PLUGINS
from moorage.snapshot.volume_pods import claim_volume


def class_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue for a new class, and for a class whose allowed topologies changed."""
    del waiting
    assert isinstance(new, StorageClass)
    if not isinstance(old, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def csi_node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue for a new CSINode, and for a CSINode whose migrated plugins changed."""
    del waiting
    assert isinstance(new, CSINode)
    if not isinstance(old, CSINode):
        return True
    before, after = old.metadata.annotations, new.metadata.annotations
    return before.get(MIGRATED_PLUGINS, "") != after.get(MIGRATED_PLUGINS, "")


def csi_driver_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod with claims when a driver no longer checks capacity, or is gone.

    kube-scheduler asks only about inline volumes of the driver, whose capacity is never checked.
    """
    assert isinstance(old, CSIDriver)
    tracks = isinstance(new, CSIDriver) and new.spec.storage_capacity
    if tracks or not old.spec.storage_capacity:
        return False
    return any(
        claim_volume(volume) or (volume.csi is not None and volume.csi.driver == old.name)
        for volume in waiting.spec.volumes
    )


def capacity_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue for new capacity, and for capacity whose limit rose."""
    del waiting
    assert isinstance(new, CSIStorageCapacity)
    if not isinstance(old, CSIStorageCapacity):
        return True
    before, after = capacity_limit_bytes(old), capacity_limit_bytes(new)
    if after is None:
        return False
    return before is None or after > before


def given_back_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue when a pod with claims is no longer to be bound, so that its volumes go to others."""
    del waiting, new
    return isinstance(old, Pod) and any(map(claim_volume, old.spec.volumes))
