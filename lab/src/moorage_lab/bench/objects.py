"""Puts a workload's objects of other kinds where plugins look them up."""

from __future__ import annotations

from moorage.api.codec import decode, encode
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.elastic_quota import ElasticQuota
from moorage.api.volume import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.api.workloads import Namespace
from moorage.base.errors import UsageError
from moorage.snapshot.listers import Listers
from moorage_lab.bench.workload import CreateObjects


def put_objects(listers: Listers, op: CreateObjects) -> None:
    """Create every object of an operation.

    Raises
    ------
    UsageError
        A manifest is of a kind that workloads do not have.
    """
    for index in range(op.count):
        manifest = op.template(index)
        raw = encode(manifest)
        match manifest["kind"]:
            case "Namespace":
                listers.namespaces.put(decode(Namespace, raw))
            case "PersistentVolume":
                listers.persistent_volumes.put(decode(PersistentVolume, raw))
            case "PersistentVolumeClaim":
                listers.persistent_volume_claims.put(decode(PersistentVolumeClaim, raw))
            case "StorageClass":
                listers.storage_classes.put(decode(StorageClass, raw))
            case "CSINode":
                listers.csi_nodes.put(decode(CSINode, raw))
            case "DeviceClass":
                listers.device_classes.put(decode(DeviceClass, raw))
            case "ResourceSlice":
                listers.resource_slices.put(decode(ResourceSlice, raw))
            case "ResourceClaim":
                listers.resource_claims.put(decode(ResourceClaim, raw))
            case "ElasticQuota":
                listers.elastic_quotas.put(decode(ElasticQuota, raw))
            case kind:
                raise UsageError(f"a workload cannot create a {kind}")
