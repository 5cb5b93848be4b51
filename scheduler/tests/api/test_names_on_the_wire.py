"""Every JSON name and type of our structs against the official client's generated models.

The official client is generated from the API's own OpenAPI document, so it is an independent
witness for spellings such as `podIP`, `volumeID` or `osImage`.
"""

import types
import typing

import kubernetes.client.models as official
import msgspec
import pytest

from moorage.api import devices, event, lease, node, pod, policy, volume, workloads
from moorage.api.naming import json_name

ROOTS = {
    pod.Pod: "V1Pod",
    node.Node: "V1Node",
    workloads.Namespace: "V1Namespace",
    workloads.Service: "V1Service",
    workloads.ReplicationController: "V1ReplicationController",
    workloads.ReplicaSet: "V1ReplicaSet",
    workloads.StatefulSet: "V1StatefulSet",
    policy.PodDisruptionBudget: "V1PodDisruptionBudget",
    policy.PriorityClass: "V1PriorityClass",
    volume.PersistentVolume: "V1PersistentVolume",
    volume.PersistentVolumeClaim: "V1PersistentVolumeClaim",
    volume.StorageClass: "V1StorageClass",
    volume.CSINode: "V1CSINode",
    volume.CSIDriver: "V1CSIDriver",
    volume.CSIStorageCapacity: "V1CSIStorageCapacity",
    volume.VolumeAttachment: "V1VolumeAttachment",
    lease.Lease: "V1Lease",
    event.Event: "EventsV1Event",
    event.CoreEvent: "CoreV1Event",
    devices.ResourceClaim: "ResourceV1ResourceClaim",
    devices.ResourceClaimTemplate: "V1ResourceClaimTemplate",
    devices.ResourceSlice: "V1ResourceSlice",
    devices.DeviceClass: "V1DeviceClass",
}

# We share one struct where Kubernetes has several that differ in a field.
SHARED = {
    ("V1AzureFileVolumeSource", "secretNamespace"),
    ("V1TypedLocalObjectReference", "namespace"),
    ("V1PodCondition", "lastHeartbeatTime"),
    ("V1NodeCondition", "lastProbeTime"),
    ("V1NodeCondition", "observedGeneration"),
    ("V1Condition", "lastProbeTime"),
    ("V1Condition", "lastHeartbeatTime"),
    ("V1PersistentVolumeClaimCondition", "lastHeartbeatTime"),
    ("V1PersistentVolumeClaimCondition", "observedGeneration"),
}


def _faults(struct: type, model: str, path: str, seen: set[tuple[type, str]]) -> list[str]:
    if (struct, model) in seen:
        return []
    seen.add((struct, model))
    theirs = getattr(official, model)
    attribute = {name: attr for attr, name in theirs.attribute_map.items()}
    faults = []
    for field in msgspec.structs.fields(struct):
        name = field.encode_name
        if (model, name) in SHARED:
            continue
        if name not in attribute:
            faults.append(f"{path}: {model} has no field {name}")
            continue
        declared = theirs.openapi_types[attribute[name]]
        faults += _type_faults(field.type, declared, f"{path}.{name}", seen)
    return faults


def _type_faults(ours, declared: str, path: str, seen: set[tuple[type, str]]) -> list[str]:
    origin, args = typing.get_origin(ours), typing.get_args(ours)
    container, _, inner = declared.rstrip(")]").partition("[" if "[" in declared else "(")
    if origin in (types.UnionType, typing.Union):
        members = [arg for arg in args if arg is not type(None)]
        if len(members) == 1:
            return _type_faults(members[0], declared, path, seen)
        ok = set(members) <= {str, int, float} and declared in {"object", "str"}
    elif origin is list:
        ok = container.lower() == "list"
        if ok:
            return _type_faults(args[0], inner, f"{path}[]", seen)
    elif origin is dict:
        if args[1] is object:  # unread, and passed on as it came
            return [] if declared == "object" else [f"{path}: {ours} against {declared}"]
        ok = container.lower() == "dict"
        if ok:
            return _type_faults(args[1], inner.partition(", ")[2], f"{path}.*", seen)
    elif issubclass(ours, msgspec.Struct):
        return _faults(ours, declared, path, seen)
    else:
        ok = declared in {str: ("str", "datetime"), int: ("int",), bool: ("bool",)}[ours]
    return [] if ok else [f"{path}: {ours} against {declared}"]


@pytest.mark.parametrize(
    ("struct", "model"), [pytest.param(s, m, id=s.__name__) for s, m in ROOTS.items()]
)
def test_names_and_types_are_those_of_the_official_client(struct, model):
    assert _faults(struct, model, struct.__name__, set()) == []


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        pytest.param("node_name", "nodeName", id="words are joined in camel case"),
        pytest.param("pod_ip", "podIP", id="an initialism is in capitals"),
        pytest.param("cluster_ips", "clusterIPs", id="a plural initialism keeps its small s"),
        pytest.param("os_image", "osImage", id="the first word stays small"),
        pytest.param("continue_", "continue", id="a trailing underscore goes away"),
        pytest.param("uid", "uid", id="one word stays as it is"),
    ],
)
def test_the_json_name_of_an_attribute(attribute, name):
    assert json_name(attribute) == name
