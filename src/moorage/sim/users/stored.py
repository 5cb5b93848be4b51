"""Pods that wait for something of the storage or the devices of a cluster."""

from __future__ import annotations

from typing import Any

from moorage.sim.users.plot import Maker, Plot
from moorage.sim.users.wants import Want, own_node, own_pod
from moorage.testing.builders import Manifest

_DRIVER = "csi.example.com"


def _class(tag: str, *, waits: bool = True, provisioner: str = "moorage.dev/none") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": tag},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def _claim(name: str, storage_class: str, **spec: Any) -> Manifest:
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


def _volume(name: str, tag: str, storage_class: str, *, modes: str = "ReadWriteOnce") -> Manifest:
    """Return a volume that only the nodes of a want reach."""
    expression = {"key": "want", "operator": "In", "values": [tag]}
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
            "csi": {"driver": _DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": required},
        },
    }


def _mounting(*claims: str) -> list[Manifest]:
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]


def _claim_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.create(_class(tag))
    plot.create(_volume(f"{tag}-v", tag, tag))
    own_pod(plot, tag, volumes=_mounting(f"{tag}-c"))
    return lambda later: later.create(_claim(f"{tag}-c", tag))


def _volume_comes(plot: Plot, tag: str) -> Maker:
    """Wait for a volume, with a claim that is bound at once or for its first consumer."""
    own_node(plot, tag)
    plot.create(_class(tag, waits=plot.rng.random() < 0.5, provisioner=_NONE))
    plot.create(_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=_mounting(f"{tag}-c"))
    return lambda later: later.create(_volume(f"{tag}-v", tag, tag))


_NONE = "kubernetes.io/no-provisioner"


def _class_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    plot.create(_claim(f"{tag}-c", tag))
    own_pod(plot, tag, volumes=_mounting(f"{tag}-c"))
    return lambda later: later.create(_class(tag))


def _reach_comes(plot: Plot, tag: str) -> Maker:
    """Wait until the node gets the label that the volume asks for."""
    node = own_node(plot, tag)
    plot.create(_class(tag, waits=False, provisioner=_NONE))
    plot.create(_volume(f"{tag}-v", f"{tag}-reach", tag))
    plot.create(_claim(f"{tag}-c", tag))
    plot.now += 1.0
    own_pod(
        plot, tag, node_selector={"kubernetes.io/hostname": node}, volumes=_mounting(f"{tag}-c")
    )
    changes = {"metadata": {"labels": {"want": f"{tag}-reach"}}}
    return lambda later: later.patch("Node", node, changes, namespace="")


def _only_user_goes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    mode = "ReadWriteOncePod"
    plot.create(_class(tag, waits=False, provisioner=_NONE))
    plot.create(_volume(f"{tag}-v", tag, tag, modes=mode))
    plot.create(_claim(f"{tag}-c", tag, accessModes=[mode]))
    plot.now += 1.0
    holder = own_pod(plot, tag, f"{tag}-h", cpu="100m", volumes=_mounting(f"{tag}-c"))
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", volumes=_mounting(f"{tag}-c"))
    return lambda later: later.delete("Pod", holder)


def _attachment_goes(plot: Plot, tag: str) -> Maker:
    """Wait until the node, which attaches one volume, has room for another volume."""
    node = own_node(plot, tag)
    plot.create(_class(tag, waits=False, provisioner=_NONE))
    for each in "ab":
        plot.create(_volume(f"{tag}-v{each}", tag, tag))
        plot.create(_claim(f"{tag}-c{each}", tag, volumeName=f"{tag}-v{each}"))
    plot.create(_csi_node(node, 1))
    plot.now += 1.0
    holder = own_pod(plot, tag, f"{tag}-h", cpu="100m", volumes=_mounting(f"{tag}-ca"))
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", volumes=_mounting(f"{tag}-cb"))
    more = {"spec": _csi_node(node, 2)["spec"]}
    return plot.rng.choice(
        (
            lambda later: later.delete("Pod", holder),
            lambda later: later.patch("CSINode", node, more, namespace=""),
        )
    )


def _csi_node(node: str, count: int) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [{"name": _DRIVER, "nodeID": node, "allocatable": {"count": count}}]},
    }


def _device_class(tag: str) -> Manifest:
    selector = {"cel": {"expression": f'device.driver == "{tag}.example.com"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": tag},
        "spec": {"selectors": [selector]},
    }


def _slice(tag: str, node: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": tag},
        "spec": {
            "driver": f"{tag}.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        },
    }


def _resource_claim(tag: str, name: str) -> Manifest:
    request = {"name": "one", "exactly": {"deviceClassName": tag}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def _claiming(name: str) -> dict[str, Any]:
    return {"cpu": "100m", "resourceClaims": [{"name": "one", "resourceClaimName": name}]}


def _device_comes(plot: Plot, tag: str) -> Maker:
    """Wait for the claim, the class or the devices: whichever is left out comes last."""
    node = own_node(plot, tag)
    parts = [_device_class(tag), _slice(tag, node), _resource_claim(tag, f"{tag}-c")]
    missing = parts.pop(plot.rng.randrange(len(parts)))
    for each in parts:
        plot.create(each)
    plot.now += 0.5
    own_pod(plot, tag, **_claiming(f"{tag}-c"))
    return lambda later: later.create(missing)


def _device_goes_free(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag)
    plot.create(_device_class(tag))
    plot.create(_slice(tag, node))
    for each in "ab":
        plot.create(_resource_claim(tag, f"{tag}-{each}"))
    plot.now += 0.5
    holder = own_pod(plot, tag, f"{tag}-h", **_claiming(f"{tag}-a"))
    plot.now += 1.0
    own_pod(plot, tag, **_claiming(f"{tag}-b"))
    return lambda later: later.delete("Pod", holder)


STORED: tuple[Want, ...] = (
    _claim_comes,
    _volume_comes,
    _class_comes,
    _reach_comes,
    _only_user_goes,
    _attachment_goes,
    _device_comes,
    _device_goes_free,
)
"""The things of storage and devices that a pod can wait for."""
