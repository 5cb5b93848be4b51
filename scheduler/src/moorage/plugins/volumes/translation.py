"""Translation of in-tree volumes to CSI volumes: driver, handle and topology.

Rules mirrored: kubernetes v1.36 ``staging/src/k8s.io/csi-translation-lib/plugins``, for the
in-tree types whose migration to CSI drivers is complete.
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
from moorage.plugins.volumes.claims import VolumeError

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE: Final = "topology.kubernetes.io/zone"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_GCE_ZONE_PARTS: Final = 3
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
"""In-tree plugin or provisioner to the CSI driver that replaced it."""

LIMITED_PLUGINS: Final = frozenset(
    {
        "kubernetes.io/aws-ebs",
        "kubernetes.io/gce-pd",
        "kubernetes.io/azure-disk",
        "kubernetes.io/cinder",
        "kubernetes.io/portworx-volume",
    }
)
"""In-tree plugins whose volumes count as CSI volumes on every node that has a CSINode."""

_TOPOLOGY_KEY: Final = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}

InTreeSource = AWSElasticBlockStore | GCEPersistentDisk | AzureDisk | Cinder | PortworxVolume


def source_of(holder: Volume | PersistentVolume) -> tuple[str, InTreeSource] | None:
    """Return the in-tree plugin and source of a volume; None for other types."""
    sources = holder if isinstance(holder, Volume) else holder.spec
    in_tree: tuple[tuple[str, InTreeSource | None], ...] = (
        ("kubernetes.io/aws-ebs", sources.aws_elastic_block_store),
        ("kubernetes.io/gce-pd", sources.gce_persistent_disk),
        ("kubernetes.io/azure-disk", sources.azure_disk),
        ("kubernetes.io/cinder", sources.cinder),
        ("kubernetes.io/portworx-volume", sources.portworx_volume),
    )
    for name, source in in_tree:
        if source is not None:
            return name, source
    return None


def handle_of(source: InTreeSource, labels: Mapping[str, str]) -> str:
    """Return the CSI volume handle of an in-tree source.

    Parameters
    ----------
    source
        The in-tree source.
    labels
        Labels of the PersistentVolume, with the zone of a Google disk; empty for an inline volume.

    Raises
    ------
    VolumeError
        The volume cannot be translated.
    """
    if isinstance(source, AWSElasticBlockStore):
        return _ebs_handle(source.volume_id)
    if isinstance(source, GCEPersistentDisk):
        return f"projects/{_UNSPECIFIED}/{_gce_place(labels)}/disks/{source.pd_name}"
    if isinstance(source, AzureDisk):
        return source.disk_uri
    return source.volume_id


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """Return the in-tree plugins that a CSINode lists as migrated."""
    if csi_node is None:
        return frozenset()
    text = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(text.split(",")) - {""}


def translated_affinity(volume: PersistentVolume, plugin: str) -> NodeSelector | None:
    """Return the node affinity of an in-tree volume with the topology keys of its CSI driver.

    Raises
    ------
    VolumeError
        The volume cannot be translated.
    """
    source = source_of(volume)
    assert source is not None, f"persistentvolume {volume.name} is not of an in-tree type"
    try:
        handle_of(source[1], volume.metadata.labels)
    except VolumeError as fault:
        raise VolumeError(f"could not translate pv: {fault}") from fault
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    csi_key = _TOPOLOGY_KEY.get(plugin)
    if csi_key is None:
        return required
    zone_key = _zone_key(volume, required)
    if _values(required, zone_key):
        required = _renamed(required, zone_key, csi_key)
    else:
        text = volume.metadata.labels.get(zone_key, "")
        zones = sorted({zone.strip() for zone in text.split(_DELIMITER)} - {""})
        if zones:
            required = _with_values(required, csi_key, zones)
    if zone_key == _BETA_ZONE and _values(required, _BETA_REGION):
        required = _renamed(required, _BETA_REGION, _REGION)
    return required


def _ebs_handle(volume_id: str) -> str:
    """Return the id of an EBS volume that may be written as ``aws://<zone>/<id>``."""
    if not volume_id.startswith("aws://"):
        return volume_id
    path = re.split(r"[?#]", volume_id.removeprefix("aws://"), maxsplit=1)[0].partition("/")[2]
    name = path.strip("/")
    if not _EBS_ID.match(name):
        raise VolumeError(
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume "
            f"({volume_id})"
        )
    return name


def _gce_place(labels: Mapping[str, str]) -> str:
    text = labels.get(_BETA_ZONE) or labels.get(_ZONE) or ""
    if not text:
        return f"zones/{_UNSPECIFIED}"
    zones = text.split(_DELIMITER)
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    return f"regions/{_gce_region(zones)}"


def _gce_region(zones: Iterable[str]) -> str:
    """Return the single region of zones named ``<locale>-<region>-<zone>``."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != _GCE_ZONE_PARTS:
            raise VolumeError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))  # as Go prints a set
        raise VolumeError(
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            f"map[{shown}]"
        )
    return regions.pop()


def _zone_key(volume: PersistentVolume, required: NodeSelector | None) -> str:
    """Return which of the two zone labels a volume uses; its affinity is checked first."""
    for key in (_ZONE, _BETA_ZONE):
        if _names(required, key):
            return key
    beta = _BETA_ZONE in volume.metadata.labels and _ZONE not in volume.metadata.labels
    return _BETA_ZONE if beta else _ZONE


def _expressions(required: NodeSelector | None) -> Iterable[NodeSelectorRequirement]:
    terms = () if required is None else required.node_selector_terms
    return (item for term in terms for item in term.match_expressions)


def _names(required: NodeSelector | None, key: str) -> bool:
    return any(item.key == key for item in _expressions(required))


def _values(required: NodeSelector | None, key: str) -> set[str]:
    return {value for item in _expressions(required) if item.key == key for value in item.values}


def _renamed(required: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if required is None:
        return None
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
