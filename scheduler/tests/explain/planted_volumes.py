"""Planted causes in volumes: claims, their volumes and classes, disks, limits of nodes.

Each function plants its cause in a plan, and returns the beginning of the sentence and the words
that name the cause.
"""

from __future__ import annotations

from typing import Any, Final

from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.explain.plan import ZONE, Plan, closed_node

CSI: Final = "disk.example"
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}
_NOW: Final = "fits on no node now"
_NEVER: Final = "never fits here, not even on an empty node"


def claim(name: str = "data", *, mode: str = "ReadWriteOnce", **spec: Any) -> Manifest:
    """Return a claim for one gibibyte; bound if ``volumeName`` is given."""
    bound = "volumeName" in spec
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": _BOUND if bound else {},
        },
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            **spec,
        },
    }


def volume(name: str, *, of: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Any:
    """Return a volume of a CSI driver, for a claim if one is named."""
    named = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": of}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": CSI, "volumeHandle": name},
            **({"claimRef": named} if of else {}),
            **spec,
        },
    }


def storage_class(name: str, mode: str, **fields: Any) -> Manifest:
    """Return a class without a provisioner."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
        **fields,
    }


def mounted(name: str = "data") -> list[dict[str, Any]]:
    """Return ``spec.volumes`` with a claim."""
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def _on_racks(*racks: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": list(racks)}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def missing_claim(plan: Plan) -> tuple[str, str]:
    plan.pod["volumes"] = mounted("gone")
    return "is not tried on any node", "its claim gone, which does not exist in namespace"


def volume_elsewhere(plan: Plan) -> tuple[str, str]:
    plan.objects += [
        claim(volumeName="pv"),
        volume("pv", of="data", nodeAffinity=_on_racks("r9")),
    ]
    plan.pod["volumes"] = mounted()
    return _NEVER, "its claim data, whose volume pv is for nodes with (rack In [r9])"


def volume_in_another_zone(plan: Plan) -> tuple[str, str]:
    plan.objects += [claim(volumeName="pv"), volume("pv", of="data", labels={ZONE: "c"})]
    plan.pod["volumes"] = mounted()
    return _NEVER, f"its claim data, whose volume pv is in {ZONE} c"


def volume_that_is_gone(plan: Plan) -> tuple[str, str]:
    plan.objects.append(claim(volumeName="gone"))
    plan.pod["volumes"] = mounted()
    return "is not tried on any node", "its claim data, whose volume gone does not exist"


def claim_without_a_class(plan: Plan) -> tuple[str, str]:
    plan.objects.append(claim(storageClassName="fast"))
    plan.pod["volumes"] = mounted()
    return "is not tried on any node", "data, whose StorageClass fast does not exist"


def claim_that_waits_for_its_volume(plan: Plan) -> tuple[str, str]:
    plan.objects += [storage_class("slow", "Immediate"), claim(storageClassName="slow")]
    plan.pod["volumes"] = mounted()
    return "is not tried on any node", "data, to which StorageClass slow has bound no volume yet"


def no_volume_to_bind(plan: Plan) -> tuple[str, str]:
    """A volume is there for nodes of another rack only."""
    plan.objects += [
        storage_class("local", "WaitForFirstConsumer"),
        claim(storageClassName="local"),
    ]
    if plan.draw.random() < 0.5:
        far = volume("far", storageClassName="local", nodeAffinity=_on_racks("r9"))
        plan.objects.append(far)
    plan.pod["volumes"] = mounted()
    return _NOW, "its claim data (StorageClass local), for which these nodes have no free volume"


def volumes_made_elsewhere(plan: Plan) -> tuple[str, str]:
    """The class makes volumes in another zone only."""
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]
    made = {"provisioner": CSI, "allowedTopologies": topology}
    plan.objects += [
        storage_class("zonal", "WaitForFirstConsumer", **made),
        claim(storageClassName="zonal"),
    ]
    plan.pod["volumes"] = mounted()
    return _NEVER, "its claim data (StorageClass zonal), for which these nodes have no free volume"


def too_little_storage(plan: Plan) -> tuple[str, str]:
    """The driver tells its capacity, and it is less than a gibibyte."""
    plan.objects += [
        storage_class("fast", "WaitForFirstConsumer", provisioner=CSI),
        claim(storageClassName="fast"),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": CSI},
            "spec": {"storageCapacity": True},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": "left", "namespace": "default"},
            "storageClassName": "fast",
            "capacity": "100Mi",
            "nodeTopology": {},
        },
    ]
    plan.pod["volumes"] = mounted()
    return _NOW, "its claim data (StorageClass fast), for which these nodes have too little"


def claim_of_one_pod(plan: Plan) -> tuple[str, str]:
    plan.objects += [
        claim(volumeName="pv", mode="ReadWriteOncePod"),
        volume("pv", of="data", accessModes=["ReadWriteOncePod"]),
    ]
    where = plan.draw.choice(plan.open)
    if plan.draw.random() < 0.5:  # on a node that takes no other pod
        where = "closed-holder"
        plan.objects.append(closed_node(plan.draw, where, zone="a"))
    plan.on(where, "holder", cpu="10m", volumes=mounted())
    plan.pod["volumes"] = mounted()
    return "would fit on", "its claim data, which only one pod may use and pod default/holder has"


def disk_in_use(plan: Plan) -> tuple[str, str]:
    disk = [{"name": "d", "gcePersistentDisk": {"pdName": "shared"}}]
    for name in plan.open:
        plan.on(name, f"{name}-disk", cpu="10m", volumes=disk)
    plan.pod["volumes"] = disk
    return "would fit on", "a disk that pod"


def too_many_volumes(plan: Plan) -> tuple[str, str]:
    """Each open node attaches one volume of the driver at most, and has one."""
    for name in plan.open:
        plan.objects += [
            claim(f"{name}-c", volumeName=f"{name}-pv"),
            volume(f"{name}-pv", of=f"{name}-c"),
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": [{"name": CSI, "nodeID": name, "allocatable": {"count": 1}}]},
            },
        ]
        plan.on(name, f"{name}-volume", cpu="10m", volumes=mounted(f"{name}-c"))
    plan.objects += [claim(volumeName="pv"), volume("pv", of="data")]
    plan.pod["volumes"] = mounted()
    return "would fit on", f"the number of volumes of {CSI} (each node has as many as it takes"
