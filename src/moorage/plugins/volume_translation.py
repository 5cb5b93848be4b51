"""In-tree volumes as the CSI volumes they became: driver, handle and topology.

Rules mirrored: kubernetes v1.36 ``staging/src/k8s.io/csi-translation-lib/plugins``, for the
in-tree types whose drivers took over for good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.pod import Volume
from moorage.api.volume import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    CSINode,
    GCEPersistentDisk,
    PersistentVolume,
    PortworxVolume,
)
from moorage.plugins.volume_claims import VolumeError

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE: Final = "topology.kubernetes.io/zone"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile(r"vol-[^/]*\Z")

DRIVER_OF: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""In-tree plugin or provisioner to the CSI driver that took over."""

COUNTED: Final = frozenset(
    {
        "kubernetes.io/aws-ebs",
        "kubernetes.io/gce-pd",
        "kubernetes.io/azure-disk",
        "kubernetes.io/cinder",
        "kubernetes.io/portworx-volume",
    }
)
"""In-tree plugins whose volumes count as those of their CSI driver wherever there is a CSINode."""

_TOPOLOGY_KEY: Final = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}

InTreeSource = AWSElasticBlockStore | GCEPersistentDisk | AzureDisk | Cinder | PortworxVolume


def source_of(holder: Volume | PersistentVolume) -> tuple[str, InTreeSource] | None:
    """Return the in-tree plugin and source of a volume; None for other types."""
    sources = holder if isinstance(holder, Volume) else holder.spec
    found: tuple[tuple[str, InTreeSource | None], ...] = (
        ("kubernetes.io/aws-ebs", sources.aws_elastic_block_store),
        ("kubernetes.io/gce-pd", sources.gce_persistent_disk),
        ("kubernetes.io/azure-disk", sources.azure_disk),
        ("kubernetes.io/cinder", sources.cinder),
        ("kubernetes.io/portworx-volume", sources.portworx_volume),
    )
    return next(((name, source) for name, source in found if source is not None), None)


def handle_of(source: InTreeSource, labels: Mapping[str, str]) -> str:
    """Return the CSI volume handle of an in-tree source.

    Parameters
    ----------
    source
        The in-tree source.
    labels
        Labels of the PersistentVolume, where a Google disk's zone is written; none if inline.

    Raises
    ------
    VolumeError
        It cannot be translated.
    """
    if isinstance(source, AWSElasticBlockStore):
        return _ebs_handle(source.volume_id)
    if isinstance(source, GCEPersistentDisk):
        return f"projects/{_UNSPECIFIED}/{_gce_place(labels)}/disks/{source.pd_name}"
    if isinstance(source, AzureDisk):
        return source.disk_uri
    return source.volume_id


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """Return the in-tree plugins a node lists as migrated."""
    if csi_node is None:
        return frozenset()
    text = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(text.split(",")) - {""}


def translated_affinity(volume: PersistentVolume, plugin: str) -> NodeSelector | None:
    """Return the node affinity of an in-tree volume in the words of its CSI driver.

    Raises
    ------
    VolumeError
        The volume cannot be translated.
    """
    source = source_of(volume)
    assert source is not None, f"persistentvolume {volume.name} is not of an in-tree type"
    handle_of(source[1], volume.metadata.labels)
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    csi_key = _TOPOLOGY_KEY.get(plugin)
    if csi_key is None:
        return required
    zone_key = _zone_key(volume, required)
    if _names(required, zone_key):
        required = _renamed(required, zone_key, csi_key)
    elif zone_key in volume.metadata.labels:
        zones = volume.metadata.labels[zone_key].split(_DELIMITER)
        required = _with_values(required, csi_key, zones)
    return _renamed(required, _BETA_REGION, _REGION)


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    name = volume_id.removeprefix("aws://").partition("/")[2]
    if not _EBS_ID.match(name):
        raise VolumeError(f"failed to translate Kubernetes ID to EBS Volume ID {volume_id}")
    return name


def _gce_place(labels: Mapping[str, str]) -> str:
    text = labels.get(_ZONE) or labels.get(_BETA_ZONE) or ""
    if not text:
        return f"zones/{_UNSPECIFIED}"
    zones = text.split(_DELIMITER)
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1:
        raise VolumeError(f"multiple or no regions gotten from zones: {sorted(regions)}")
    return f"regions/{regions.pop()}"


def _zone_key(volume: PersistentVolume, required: NodeSelector | None) -> str:
    if _ZONE in volume.metadata.labels or _names(required, _ZONE):
        return _ZONE
    return _BETA_ZONE


def _expressions(required: NodeSelector | None) -> Iterable[NodeSelectorRequirement]:
    terms = () if required is None else required.node_selector_terms
    return (item for term in terms for item in term.match_expressions)


def _names(required: NodeSelector | None, key: str) -> bool:
    return any(item.key == key for item in _expressions(required))


def _renamed(required: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if required is None or not _names(required, old):
        return required
    terms = [
        msgspec.structs.replace(
            term,
            match_expressions=[
                msgspec.structs.replace(item, key=new) if item.key == old else item
                for item in term.match_expressions
            ],
        )
        for term in required.node_selector_terms
    ]
    return NodeSelector(node_selector_terms=terms)


def _with_values(required: NodeSelector | None, key: str, values: list[str]) -> NodeSelector:
    wanted = NodeSelectorRequirement(key=key, operator="In", values=values)
    terms = [] if required is None else required.node_selector_terms
    if not terms:
        return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[wanted])])
    return NodeSelector(
        node_selector_terms=[
            msgspec.structs.replace(term, match_expressions=[*term.match_expressions, wanted])
            for term in terms
        ]
    )
