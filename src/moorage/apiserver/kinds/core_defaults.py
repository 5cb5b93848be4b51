"""Defaults of the core kinds that are not pods, and of storage and policy kinds.

Place in the flow: first step of a create or update, before validation. Mirrors kubernetes v1.36
pkg/apis/{core,storage,scheduling}/v1/defaults.go. For services and namespaces it also mirrors the
defaults of their registries.
"""

from __future__ import annotations

import base64

from moorage.apiserver.kinds.pod_defaults import (
    canonical_quantity,
    default_azure_disk,
    default_claim_spec,
    default_iscsi,
    default_rbd,
    default_scale_io,
)
from moorage.apiserver.kinds.tree import (
    Json,
    attach,
    child,
    fill,
    fill_empty,
    items,
    map_values,
    objects,
    text,
)

# Seconds a client sticks to one endpoint under sessionAffinity ClientIP: three hours.
CLIENT_IP_SECONDS = 10_800


def default_nothing(obj: Json) -> None:
    """Kinds without defaults."""


def default_node(obj: Json) -> None:
    """Default a node: allocatable is the whole capacity unless the node states it."""
    attach(obj, "spec")
    status = attach(obj, "status")
    map_values(status, "capacity", canonical_quantity)
    map_values(status, "allocatable", canonical_quantity)
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(status["capacity"])
    attach(attach(status, "daemonEndpoints"), "kubeletEndpoint").setdefault("Port", 0)
    info = attach(status, "nodeInfo")
    for name in _NODE_INFO:
        info.setdefault(name, "")


_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def default_namespace(obj: Json) -> None:
    """Default a namespace: its name as a label, so that selectors can find it."""
    name = text(obj, "metadata", "name")
    if name:
        attach(attach(obj, "metadata"), "labels")["kubernetes.io/metadata.name"] = name
    attach(obj, "spec")
    fill_empty(attach(obj, "status"), {"phase": "Active"})


def default_service(obj: Json) -> None:
    """Default a service; its cluster address is given out on create."""
    spec = attach(obj, "spec")
    fill_empty(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    else:
        client = attach(attach(spec, "sessionAffinityConfig"), "clientIP")
        fill(client, {"timeoutSeconds": CLIENT_IP_SECONDS})
    for port in objects(spec, "ports"):
        fill_empty(port, {"protocol": "TCP"})
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port", 0)
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer"):
        fill_empty(spec, {"externalTrafficPolicy": "Cluster"})
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        fill(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        fill(spec, {"allocateLoadBalancerNodePorts": True})
    attach(attach(obj, "status"), "loadBalancer")


def default_secret(obj: Json) -> None:
    """Default a secret: type Opaque, and plain text in stringData encoded into data."""
    fill_empty(obj, {"type": "Opaque"})
    plain = obj.pop("stringData", None)
    if plain:
        data = attach(obj, "data")
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


def default_persistent_volume(obj: Json) -> None:
    """Default a persistent volume."""
    spec = attach(obj, "spec")
    fill_empty(attach(obj, "status"), {"phase": "Pending"})
    fill_empty(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill(spec, {"volumeMode": "Filesystem"})
    map_values(spec, "capacity", canonical_quantity)
    for key, change in (
        ("rbd", default_rbd),
        ("iscsi", default_iscsi),
        ("azureDisk", default_azure_disk),
        ("scaleIO", default_scale_io),
    ):
        if spec.get(key) is not None:
            change(spec[key])
    if spec.get("hostPath") is not None:
        fill(spec["hostPath"], {"type": ""})
    claim = spec.get("claimRef")
    if claim is not None:
        fill_empty(claim, {"kind": "PersistentVolumeClaim", "apiVersion": "v1"})


def default_claim(obj: Json) -> None:
    """Default a persistent volume claim."""
    default_claim_spec(attach(obj, "spec"))
    status = attach(obj, "status")
    fill_empty(status, {"phase": "Pending"})
    map_values(status, "capacity", canonical_quantity)
    map_values(status, "allocatedResources", canonical_quantity)


def default_priority_class(obj: Json) -> None:
    """Default a priority class."""
    fill(obj, {"preemptionPolicy": "PreemptLowerPriority", "value": 0})


def default_storage_class(obj: Json) -> None:
    """Default a storage class."""
    fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def default_csi_driver(obj: Json) -> None:
    """Default a CSI driver."""
    spec = attach(obj, "spec")
    defaults: Json = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    fill(spec, defaults)
    if not items(spec, "volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_csi_node(obj: Json) -> None:
    """Default a CSI node: an empty list of drivers is added."""
    fill(attach(obj, "spec"), {"drivers": []})


def default_csi_storage_capacity(obj: Json) -> None:
    """Set the sizes of a storage capacity to canonical form."""
    for key in ("capacity", "maximumVolumeSize"):
        if obj.get(key) is not None:
            obj[key] = canonical_quantity(obj[key])


def default_volume_attachment(obj: Json) -> None:
    """Default a volume attachment: not attached."""
    fill(attach(obj, "status"), {"attached": False})


def default_disruption_budget(obj: Json) -> None:
    """Default the numbers of a budget's status to zero."""
    attach(obj, "spec")
    status = attach(obj, "status")
    zeros: Json = {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    }
    fill(status, zeros)


def default_event(obj: Json) -> None:
    """Default an Event: only the required sub-objects are added."""
    if text(obj, "apiVersion").startswith("events.k8s.io/"):
        attach(obj, "regarding")
    else:
        attach(obj, "involvedObject")
        attach(obj, "source")
        fill(obj, {"reportingComponent": "", "reportingInstance": ""})


def default_lease(obj: Json) -> None:
    """Default a lease: an empty spec is added."""
    attach(obj, "spec")


def claims_service_address(obj: Json) -> bool:
    """Whether a new service needs a cluster address: not headless, not an external name."""
    spec = child(obj, "spec")
    return spec.get("type") != "ExternalName" and not text(spec, "clusterIP")
