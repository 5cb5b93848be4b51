"""Pods on nodes that have volumes other pods may clash with: by node, by claim, by disk.

Kept by the table as pods come and go, trials included, so that the volume plugins never walk
pods. Most pods have no such volume and cost one look at their shape.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

import msgspec

from moorage.api.pod import Pod, Volume
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ClaimKey = tuple[str, str]
"""Namespace and name of a claim."""
DiskKey = tuple[str, ...]
"""Identity of an inline volume that pods may fight over."""


class ClaimVolume(msgspec.Struct, frozen=True):
    """A volume of a pod that is a claim.

    Parameters
    ----------
    volume
        Name of the volume in the pod.
    claim_name
        Name of the claim; "" may be written by the user. Of no meaning for ephemeral volumes.
    ephemeral
        Whether the claim is made for the pod, and named ``<pod>-<volume>``.
    """

    volume: str
    claim_name: str
    ephemeral: bool = False

    def name_for(self, pod_name: str) -> str:
        """Return the name of the claim of a pod of this name."""
        return f"{pod_name}-{self.volume}" if self.ephemeral else self.claim_name


class PodVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod that some scheduling rule is about.

    Parameters
    ----------
    claims
        Volumes that are claims, in order.
    attachable
        Volumes that may count against attach limits, in order: claims and in-tree disks.
    disks
        Inline volumes that may clash with another pod's.
    """

    claims: tuple[ClaimVolume, ...] = ()
    attachable: tuple[ClaimVolume | Volume, ...] = ()
    disks: tuple[Volume, ...] = ()

    @property
    def any(self) -> bool:
        """Whether the pod has any such volume."""
        return bool(self.attachable or self.disks)


def is_migratable(volume: Volume) -> bool:
    """Whether an inline volume is of an in-tree type that a CSI driver took over."""
    return (
        volume.aws_elastic_block_store is not None
        or volume.gce_persistent_disk is not None
        or volume.azure_disk is not None
        or volume.azure_file is not None
        or volume.cinder is not None
        or volume.vsphere_volume is not None
        or volume.portworx_volume is not None
    )


def disk_key(volume: Volume) -> DiskKey | None:
    """Return the key that two clashing inline volumes share; None for harmless types."""
    if volume.gce_persistent_disk is not None:
        return ("gce", volume.gce_persistent_disk.pd_name)
    if volume.aws_elastic_block_store is not None:
        return ("ebs", volume.aws_elastic_block_store.volume_id)
    if volume.iscsi is not None:
        return ("iscsi", volume.iscsi.iqn)
    if volume.rbd is not None:
        return ("rbd", volume.rbd.pool, volume.rbd.image)
    return None


def claim_volume(volume: Volume) -> ClaimVolume | None:
    """Return the claim behind a volume, or None."""
    if volume.persistent_volume_claim is not None:
        return ClaimVolume(volume.name, volume.persistent_volume_claim.claim_name)
    return None if volume.ephemeral is None else ClaimVolume(volume.name, "", ephemeral=True)


_NONE: Final = PodVolumes()


def read_volumes(pod: Pod) -> PodVolumes:
    """Read the volumes that some rule is about from a pod that has no `PodInfo`."""
    if not pod.spec.volumes:
        return _NONE
    claims: list[ClaimVolume] = []
    attachable: list[ClaimVolume | Volume] = []
    disks: list[Volume] = []
    for volume in pod.spec.volumes:
        claim = claim_volume(volume)
        if claim is not None:
            claims.append(claim)
            attachable.append(claim)
        elif is_migratable(volume):
            attachable.append(volume)
        if disk_key(volume) is not None:
            disks.append(volume)
    return PodVolumes(tuple(claims), tuple(attachable), tuple(disks))


def volumes_of(pod: PodInfo) -> PodVolumes:
    """Return the volumes of a pod that some rule is about; read once for the pods of one spec."""
    found: PodVolumes | None = pod.spec_memo.get(volumes_of)
    if found is None:
        found = pod.spec_memo[volumes_of] = read_volumes(pod.pod)
    return found


class VolumePods:
    """Index of the pods on nodes that have volumes.

    Attributes
    ----------
    log
        Names of nodes whose pods with attachable volumes changed.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._by_claim: dict[ClaimKey, dict[str, str]] = {}
        self._users: dict[ClaimKey, int] = {}
        self._by_disk: dict[DiskKey, dict[str, tuple[str, PodInfo]]] = {}
        self.log: KeyLog[str] = KeyLog()

    def add(self, info: PodInfo, node_name: str) -> None:
        """Count a pod on a node."""
        volumes = volumes_of(info)
        if not volumes.any:
            return
        if volumes.attachable:
            self._by_node.setdefault(node_name, {})[info.uid] = info
            self.log.append(node_name)
        for claim in volumes.claims:
            key = (info.namespace, claim.name_for(info.name))
            self._by_claim.setdefault(key, {})[info.uid] = node_name
        for key in _named_keys(info, volumes):
            self._users[key] = self._users.get(key, 0) + 1
        for disk in _disk_keys(volumes):
            self._by_disk.setdefault(disk, {})[info.uid] = (node_name, info)

    def remove(self, info: PodInfo, node_name: str) -> None:
        """Stop counting a pod that was counted on this node."""
        volumes = volumes_of(info)
        if not volumes.any:
            return
        if volumes.attachable:
            _take(self._by_node, node_name, info.uid)
            self.log.append(node_name)
        for claim in volumes.claims:
            _take(self._by_claim, (info.namespace, claim.name_for(info.name)), info.uid)
        for key in _named_keys(info, volumes):
            self._users[key] -= 1
            if self._users[key] == 0:
                del self._users[key]
        for disk in _disk_keys(volumes):
            _take(self._by_disk, disk, info.uid)

    def on_node(self, node_name: str) -> dict[str, PodInfo]:
        """Return the pods with attachable volumes on a node, by uid; not to be changed."""
        return self._by_node.get(node_name, {})

    def nodes(self) -> list[str]:
        """Return the names of nodes with such pods."""
        return list(self._by_node)

    def nodes_of_claim(self, key: ClaimKey) -> list[str]:
        """Return the nodes on which pods use a claim, ephemeral ones included, each once."""
        return list(dict.fromkeys(self._by_claim.get(key, {}).values()))

    def is_claimed(self, key: ClaimKey) -> bool:
        """Whether any pod on a node names the claim in a persistentVolumeClaim volume."""
        return key in self._users

    def with_disk(self, key: DiskKey) -> list[tuple[str, PodInfo]]:
        """Return the pods that have an inline volume of this identity, with their node."""
        return list(self._by_disk.get(key, {}).values())


def _named_keys(info: PodInfo, volumes: PodVolumes) -> dict[ClaimKey, None]:
    return {(info.namespace, c.claim_name): None for c in volumes.claims if not c.ephemeral}


def _disk_keys(volumes: PodVolumes) -> dict[DiskKey, None]:
    keys = (disk_key(volume) for volume in volumes.disks)
    return {key: None for key in keys if key is not None}


def _take(index: dict[K, dict[str, V]], key: K, uid: str) -> None:
    inner = index.get(key)
    if inner is not None and inner.pop(uid, None) is not None and not inner:
        del index[key]
