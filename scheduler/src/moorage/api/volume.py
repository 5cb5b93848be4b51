"""Storage: volume sources, core/v1 volumes and claims, and the kinds of storage.k8s.io/v1.

Sources shared by pod volumes and PersistentVolumes come first; only fields that some scheduling
rule compares are typed.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from typing import Final

from moorage.api.meta import (
    ApiObject,
    ApiStruct,
    Condition,
    LabelSelector,
    NodeSelector,
    ObjectReference,
    Quantity,
    ResourceList,
)

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
"""Finalizer of a claim, which stays while a pod uses it."""
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
"""Finalizer of a volume, which stays while it is bound."""
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding has ended."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a claim or a volume that no user tied to the other."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node for which a volume is to be provisioned."""
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Annotation with the class of a claim or a volume, from before there was a field."""
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""Provisioner of a class whose volumes are made by hand."""

# --- sources -------------------------------------------------------------------------------------


class GCEPersistentDisk(ApiStruct, frozen=True, kw_only=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStore(ApiStruct, frozen=True, kw_only=True):
    """An Amazon EBS disk."""

    volume_id: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AzureDisk(ApiStruct, frozen=True, kw_only=True):
    """An Azure data disk; ``kind`` is Shared, Dedicated or Managed."""

    disk_name: str = ""
    disk_uri: str = ""
    caching_mode: str = ""
    fs_type: str = ""
    kind: str = ""
    read_only: bool = False


class AzureFile(ApiStruct, frozen=True, kw_only=True):
    """An Azure file share."""

    secret_name: str = ""
    secret_namespace: str = ""
    share_name: str = ""
    read_only: bool = False


class Cinder(ApiStruct, frozen=True, kw_only=True):
    """An OpenStack volume."""

    volume_id: str = ""
    fs_type: str = ""
    read_only: bool = False


class VsphereVolume(ApiStruct, frozen=True, kw_only=True):
    """A vSphere virtual disk."""

    volume_path: str = ""
    fs_type: str = ""


class PortworxVolume(ApiStruct, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str = ""
    fs_type: str = ""
    read_only: bool = False


class ISCSIVolume(ApiStruct, frozen=True, kw_only=True):
    """An iSCSI target and unit."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RBDVolume(ApiStruct, frozen=True, kw_only=True):
    """A Ceph block device."""

    monitors: list[str] = []
    image: str = ""
    pool: str = ""
    read_only: bool = False


class HostPath(ApiStruct, frozen=True, kw_only=True):
    """A path of the node."""

    path: str = ""
    type: str = ""


class LocalVolume(ApiStruct, frozen=True, kw_only=True):
    """A disk that exists on one node; the PV's node affinity says which."""

    path: str = ""
    fs_type: str = ""


class NFSVolume(ApiStruct, frozen=True, kw_only=True):
    """An exported directory of an NFS server."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class CSIPersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume of a CSI driver; driver and handle are its identity."""

    driver: str = ""
    volume_handle: str = ""
    fs_type: str = ""
    read_only: bool = False
    volume_attributes: dict[str, str] = {}


class CSIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An inline (ephemeral) volume of a CSI driver."""

    driver: str = ""
    fs_type: str = ""
    read_only: bool = False
    volume_attributes: dict[str, str] = {}


# --- core/v1 -------------------------------------------------------------------------------------


class VolumeNodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """The nodes from which a PersistentVolume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a PersistentVolume; exactly one source is set."""

    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: list[str] = []
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolume | None = None
    host_path: HostPath | None = None
    nfs: NFSVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state: Pending, Available, Bound, Released or Failed."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(ApiObject, frozen=True, kw_only=True):
    """core/v1 PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResources(ApiStruct, frozen=True, kw_only=True):
    """Storage asked for by a claim."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class TypedReference(ApiStruct, frozen=True, kw_only=True):
    """A reference by group, kind and name."""

    api_group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class PersistentVolumeClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a claim.

    ``storage_class_name`` None asks for the default class, "" for no class at all.
    """

    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedReference | None = None
    data_source_ref: TypedReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state: Pending, Bound or Lost."""

    phase: str = ""
    access_modes: list[str] = []
    capacity: ResourceList = {}
    conditions: list[Condition] = []


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True):
    """core/v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


# --- storage.k8s.io/v1 ---------------------------------------------------------------------------


class TopologySelectorLabelRequirement(ApiStruct, frozen=True, kw_only=True):
    """A label that must have one of the values."""

    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Label requirements that must all hold; a term without any matches nothing."""

    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(ApiObject, frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass; an absent binding mode is an error, not Immediate."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: list[str] = []
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(ApiStruct, frozen=True, kw_only=True):
    """The number of volumes of a driver that a node can hold; None means no known limit."""

    count: int | None = None


class CSINodeDriver(ApiStruct, frozen=True, kw_only=True):
    """One CSI driver on one node."""

    name: str = ""
    node_id: str = ""
    topology_keys: list[str] = []
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: list[CSINodeDriver] = []


class CSINode(ApiObject, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSINode; named like its node."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True, kw_only=True):
    """Properties of a CSI driver; absent booleans have per-field defaults, so they stay None."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: list[str] = []
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    requires_republish: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSIDriver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSIStorageCapacity: room left for a class in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True, kw_only=True):
    """The volume to attach; None when it is an inline volume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted attachment of a volume to a node."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(ApiStruct, frozen=True, kw_only=True):
    """Whether the volume is attached."""

    attached: bool = False
    attachment_metadata: dict[str, str] = {}


class VolumeAttachment(ApiObject, frozen=True, kw_only=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
