"""Driver and handle of each volume of a pod, as attach limits count volumes.

`attached` adds the resolved volumes up by node.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodevolumelimits/csi.go``.
"""

from __future__ import annotations

from moorage.api.pod import Volume
from moorage.api.volume import PersistentVolume
from moorage.plugins.volumes.claims import VolumeError, claim_class, ownership_fault
from moorage.plugins.volumes.translation import DRIVER_OF, LIMITED_PLUGINS, handle_of, source_of
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.volume_pods import ClaimVolume, volumes_of

VolumeId = tuple[str, str]
"""Driver and volume handle."""


class ClaimMissingError(VolumeError):
    """A claim of a pod does not exist."""


class VolumeResolver:
    """Resolves the volumes of a pod to drivers and handles.

    Parameters
    ----------
    listers
        Claims, volumes and classes.
    prefix
        Prefix of the handles of volumes that do not exist yet; no real handle starts with it.
    """

    def __init__(self, listers: Listers, prefix: str) -> None:
        self._listers = listers
        self._prefix = prefix
        self.claims_of_volume: dict[str, set[tuple[str, str]]] = {}
        """PersistentVolume name to the claims that were resolved through this volume."""

    def resolve(
        self, pod: PodInfo, *, has_csi_node: bool, skip_missing: bool
    ) -> dict[VolumeId, None]:
        """Return the volumes of a pod that count on a node, each once.

        Parameters
        ----------
        pod
            The pod, new or on the node.
        has_csi_node
            Whether the node has a CSINode, so that in-tree volumes count as CSI volumes.
        skip_missing
            Whether to ignore claims that do not exist.

        Raises
        ------
        ClaimMissingError
            A claim does not exist.
        VolumeError
            A claim has no name or belongs to another pod, or a volume cannot be translated.
        """
        volumes: dict[VolumeId, None] = {}
        for volume in volumes_of(pod).attachable:
            if isinstance(volume, ClaimVolume):
                resolved = self._claim(pod, volume, has_csi_node, skip_missing=skip_missing)
            else:
                resolved = _inline(volume) if has_csi_node else None
            if resolved is not None and all(resolved):
                volumes[resolved] = None
        return volumes

    def _claim(
        self, pod: PodInfo, volume: ClaimVolume, has_csi_node: bool, *, skip_missing: bool
    ) -> VolumeId | None:
        name = volume.name_for(pod.name)
        if not name:
            raise VolumeError("PersistentVolumeClaim had no name")
        claim = self._listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is None:
            if skip_missing:
                return None
            missing = f'persistentvolumeclaim "{name}" not found'
            raise ClaimMissingError(f"looking up PVC {pod.namespace}/{name}: {missing}")
        fault = ownership_fault(pod.pod, claim) if volume.ephemeral else None
        if fault is not None:
            raise VolumeError(fault)
        if claim.spec.volume_name:
            bound_to = claim.spec.volume_name
            self.claims_of_volume.setdefault(bound_to, set()).add((pod.namespace, name))
            bound = self._listers.persistent_volumes.get(bound_to)
            if bound is not None:
                return _existing(bound, has_csi_node)
        return self._future(claim_class(claim), has_csi_node, f"{pod.namespace}/{name}")

    def _future(self, class_name: str, has_csi_node: bool, claim_key: str) -> VolumeId | None:
        """Return the volume that will be provisioned for a claim of a class."""
        storage_class = self._listers.storage_classes.get(class_name) if class_name else None
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        if driver in DRIVER_OF:
            if not has_csi_node or driver not in LIMITED_PLUGINS:
                return None
            driver = DRIVER_OF[driver]
        return (driver, f"{self._prefix}-{claim_key}")


def _existing(volume: PersistentVolume, has_csi_node: bool) -> VolumeId | None:
    csi = volume.spec.csi
    if csi is not None:
        return (csi.driver, csi.volume_handle)
    found = source_of(volume) if has_csi_node else None
    if found is None:
        return None
    try:
        return (DRIVER_OF[found[0]], handle_of(found[1], volume.metadata.labels))
    except VolumeError:
        return None  # upstream logs the error and does not count the volume


def _inline(volume: Volume) -> VolumeId | None:
    found = source_of(volume)
    if found is None:
        return None
    try:
        return (DRIVER_OF[found[0]], handle_of(found[1], {}))
    except VolumeError as fault:
        raise VolumeError(
            f"converting volume({volume.name}) from inline to csi: {fault}"
        ) from fault
