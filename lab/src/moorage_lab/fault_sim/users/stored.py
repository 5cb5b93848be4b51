"""Objects of the storage and the devices of a cluster."""

from __future__ import annotations

from typing import Any

from moorage_sandbox.testing.builders import Manifest

DRIVER = "csi.example.com"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def storage_class(
    tag: str, *, waits: bool = True, provisioner: str = "moorage.dev/none"
) -> Manifest:
    """Return a class whose claims wait for their first pod, or not."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": tag},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def volume_claim(name: str, storage_class: str, **spec: Any) -> Manifest:
    """Return a claim of 1Gi of a class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def volume(name: str, tag: str, storage_class: str, *, modes: str = "ReadWriteOnce") -> Manifest:
    """Return a volume that only the nodes of one situation reach."""
    expression = {"key": "wait", "operator": "In", "values": [tag]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [modes],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": required},
        },
    }


def mounting(*claims: str) -> list[Manifest]:
    """Return the volumes of a pod that has claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]


def csi_node(node: str, count: int) -> Manifest:
    """Return the CSINode of a node that can attach so many volumes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": node, "allocatable": {"count": count}}]},
    }


def device_class(tag: str, *, of: str = "") -> Manifest:
    """Return a class of the devices of one situation."""
    selector = {"cel": {"expression": f'device.driver == "{of or tag}.example.com"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": tag},
        "spec": {"selectors": [selector]},
    }


def device_slice(tag: str, node: str, devices: int = 1) -> Manifest:
    """Return a slice with devices of one situation on a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": tag},
        "spec": {
            "driver": f"{tag}.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(devices)],
        },
    }


def resource_claim(tag: str, name: str) -> Manifest:
    """Return a claim of one device of one situation."""
    request = {"name": "one", "exactly": {"deviceClassName": tag}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def claiming(name: str, cpu: str = "100m") -> dict[str, Any]:
    """Return the fields of a pod that has a claim of devices."""
    return {"cpu": cpu, "resourceClaims": [{"name": "one", "resourceClaimName": name}]}
