"""One object of every kind that the scheduler reads, with most of the fields that it looks at.

They belong together, so that what is wrong with one is met while a pod of theirs is placed. No pod
of a test's own depends on them: their nodes, zones, labels, drivers and namespaces are apart.
"""

from __future__ import annotations

from typing import Any

_NS = "hostile"
_SELECTOR = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}
_TERM = {
    "labelSelector": _SELECTOR,
    "topologyKey": "hostile.example/zone",
    "namespaceSelector": {"matchLabels": {"team": "x"}},
    "matchLabelKeys": ["pod-template-hash"],
}
_NODES = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "hostile.example/zone", "operator": "In", "values": ["z"]},
                {"key": "cpus", "operator": "Gt", "values": ["1"]},
            ],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["hostile"]}],
        }
    ]
}
_AMOUNTS = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi", "example.com/gpu": "1"}
_CEL = {"cel": {"expression": "device.attributes['hostile.example'].model == 'x'"}}


def _meta(namespace: str = _NS, **fields: Any) -> dict[str, Any]:
    meta = {"name": "hostile", "uid": "uid-hostile", "resourceVersion": "7", "generation": 1}
    meta |= {"labels": {"app": "x", "a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hostile", "uid": "uid-rs"}
    meta |= {"ownerReferences": [owner | {"controller": True}], **fields}
    return meta | ({"namespace": namespace} if namespace else {})


_POD_SPEC: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "priority": 7,
    "priorityClassName": "hostile",
    "preemptionPolicy": "PreemptLowerPriority",
    "overhead": {"cpu": "1m"},
    "nodeSelector": {"hostile.example/zone": "z"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": _NODES,
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": _NODES["nodeSelectorTerms"][0]}
            ],
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "podAffinityTerm": _TERM}
            ]
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "topologyKey": "hostile.example/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _SELECTOR,
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Honor",
        }
    ],
    "initContainers": [
        {"name": "i", "image": "i", "restartPolicy": "Always", "resources": {"requests": _AMOUNTS}}
    ],
    "containers": [
        {
            "name": "c",
            "image": "registry.example/app:1",
            "resources": {"requests": _AMOUNTS, "limits": _AMOUNTS},
            "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
        }
    ],
    "volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "hostile"}},
        {"name": "b", "csi": {"driver": "hostile.example"}},
        {"name": "d", "gcePersistentDisk": {"pdName": "x"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["x"]}}}},
    ],
    "resourceClaims": [{"name": "d", "resourceClaimName": "hostile"}],
    "schedulingGroup": {"podGroupName": "hostile"},
}
_POD_STATUS = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    "resourceClaimStatuses": [{"name": "d", "resourceClaimName": "hostile"}],
    "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}],
    "startTime": "2026-01-01T00:00:00Z",
}


def _waiting_pod() -> dict[str, Any]:
    return {"kind": "Pod", "metadata": _meta(), "spec": _POD_SPEC, "status": _POD_STATUS}


def _plain_pod() -> dict[str, Any]:
    """Return a pod that most of the other objects do not hold up."""
    kept = ("schedulerName", "affinity", "containers", "tolerations", "overhead", "priority")
    spec = {name: _POD_SPEC[name] for name in kept}
    return {"kind": "Pod", "metadata": _meta(name="plain", uid="uid-plain"), "spec": spec}


def _pod_on_node() -> dict[str, Any]:
    spec = {**_POD_SPEC, "nodeName": "hostile"}
    meta = _meta(name="bound", uid="uid-bound")
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


_NODE = {
    "kind": "Node",
    "metadata": _meta("", labels={"hostile.example/zone": "z", "cpus": "4"}),
    "spec": {
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "unschedulable": False,
        "providerID": "x",
    },
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9", "example.com/gpu": "3"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["registry.example/app:1"], "sizeBytes": 300_000_000}],
        "declaredFeatures": ["a"],
        "volumesAttached": [{"name": "kubernetes.io/csi/x^y", "devicePath": ""}],
    },
}
_VOLUME = {
    "kind": "PersistentVolume",
    "metadata": _meta("", annotations={"pv.kubernetes.io/bound-by-controller": "yes"}),
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "hostile",
        "claimRef": {"namespace": _NS, "name": "hostile", "uid": "uid-hostile"},
        "nodeAffinity": {"required": _NODES},
        "csi": {"driver": "hostile.example", "volumeHandle": "h"},
    },
    "status": {"phase": "Bound"},
}
_CLAIM = {
    "kind": "PersistentVolumeClaim",
    "metadata": _meta(annotations={"pv.kubernetes.io/bind-completed": "yes"}),
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "selector": _SELECTOR,
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "hostile",
        "storageClassName": "hostile",
        "dataSource": {"kind": "x", "name": "y"},
    },
    "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
}
_CLASS = {
    "kind": "StorageClass",
    "metadata": _meta("", annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
    "provisioner": "hostile.example",
    "parameters": {"a": "b"},
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowedTopologies": [
        {"matchLabelExpressions": [{"key": "hostile.example/zone", "values": ["z"]}]}
    ],
}
_SLICE = {
    "kind": "ResourceSlice",
    "metadata": _meta(""),
    "spec": {
        "driver": "hostile.example",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "hostile",
        "sharedCounters": [{"name": "s", "counters": {"c": {"value": "4"}}}],
        "devices": [
            {
                "name": "d",
                "attributes": {
                    "model": {"string": "x"},
                    "n": {"int": 1},
                    "v": {"version": "1.2.3"},
                },
                "capacity": {"memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi"}}},
                "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
                "taints": [{"key": "a", "effect": "None"}],
                "allowMultipleAllocations": True,
            }
        ],
    },
}
_DEVICE_CLAIM = {
    "kind": "ResourceClaim",
    "metadata": _meta(),
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "hostile",
                        "selectors": [_CEL],
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "capacity": {"requests": {"memory": "1Gi"}},
                        "tolerations": [{"key": "a", "operator": "Exists"}],
                    },
                },
                {"name": "f", "firstAvailable": [{"name": "g", "deviceClassName": "hostile"}]},
            ],
            "constraints": [{"requests": ["r"], "matchAttribute": "hostile.example/model"}],
            "config": [{"opaque": {"driver": "hostile.example", "parameters": {"a": 1}}}],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r", "driver": "hostile.example", "pool": "p", "device": "d"}
                ]
            },
            "nodeSelector": _NODES,
        },
        "reservedFor": [{"resource": "pods", "name": "hostile", "uid": "uid-hostile"}],
    },
}


def _owner(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": _meta(), "spec": {"replicas": 1, "selector": _SELECTOR}}


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("pods", _waiting_pod()),
    ("pods", _plain_pod()),
    ("pods", _pod_on_node()),
    ("nodes", _NODE),
    ("persistentvolumes", _VOLUME),
    ("persistentvolumeclaims", _CLAIM),
    ("storageclasses", _CLASS),
    (
        "csinodes",
        {
            "kind": "CSINode",
            "metadata": _meta(
                "", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "a"}
            ),
            "spec": {
                "drivers": [
                    {"name": "hostile.example", "nodeID": "x", "allocatable": {"count": 3}}
                    | {"topologyKeys": ["hostile.example/zone"]}
                ]
            },
        },
    ),
    ("csidrivers", {"kind": "CSIDriver", "metadata": _meta(""), "spec": {"storageCapacity": True}}),
    (
        "csistoragecapacities",
        {
            "kind": "CSIStorageCapacity",
            "metadata": _meta(),
            "storageClassName": "hostile",
            "nodeTopology": _SELECTOR,
            "capacity": "1Gi",
            "maximumVolumeSize": "1Gi",
        },
    ),
    (
        "volumeattachments",
        {
            "kind": "VolumeAttachment",
            "metadata": _meta(""),
            "spec": {
                "attacher": "hostile.example",
                "nodeName": "hostile",
                "source": {"persistentVolumeName": "hostile"},
            },
            "status": {"attached": True},
        },
    ),
    ("resourceslices", _SLICE),
    ("resourceclaims", _DEVICE_CLAIM),
    (
        "deviceclasses",
        {"kind": "DeviceClass", "metadata": _meta(""), "spec": {"selectors": [_CEL]}},
    ),
    (
        "poddisruptionbudgets",
        {
            "kind": "PodDisruptionBudget",
            "metadata": _meta(),
            "spec": {"minAvailable": "50%", "selector": _SELECTOR},
            "status": {"disruptionsAllowed": 1, "disruptedPods": {"a": "2026-01-01T00:00:00Z"}},
        },
    ),
    ("priorityclasses", {"kind": "PriorityClass", "metadata": _meta(""), "value": 7}),
    ("namespaces", {"kind": "Namespace", "metadata": _meta("", labels={"team": "x"})}),
    (
        "services",
        {"kind": "Service", "metadata": _meta(), "spec": {"selector": {"app": "x"}}},
    ),
    (
        "replicationcontrollers",
        {"kind": "ReplicationController", "metadata": _meta(), "spec": {"selector": {"app": "x"}}},
    ),
    ("replicasets", _owner("ReplicaSet")),
    ("statefulsets", _owner("StatefulSet")),
    (
        "podgroups",
        {
            "kind": "PodGroup",
            "metadata": _meta(),
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 1}},
                "schedulingConstraints": {"topology": [{"key": "hostile.example/zone"}]},
                "priority": 7,
            },
            "status": {"conditions": []},
        },
    ),
]
