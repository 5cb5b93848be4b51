"""What a kubelet writes about its node: the object, the heartbeat, the lease; pure builders."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Mapping, Sequence

from moorage.api.codec import to_dict
from moorage.api.lease import LeaseSpec
from moorage.api.meta import Condition
from moorage.base.clock import rfc3339, rfc3339_micro
from moorage.nodeagent.templates import NodeTemplate, name_of

LEASE_NAMESPACE = "kube-node-lease"

_NODE_NETWORK = ipaddress.IPv4Address("10.0.0.0")
_VERSION = "v1.36.0"

# Type, status, reason and message of a healthy node (kubelet nodestatus/setters.go).
_CONDITIONS = (
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_object(template: NodeTemplate, *, index: int, now_ns: int) -> dict[str, object]:
    """Return the Node as registered.

    Parameters
    ----------
    index
        Number of the node in this agent, from 0; its address comes from it.
    now_ns
        Wall-clock time, nanoseconds.
    """
    node = copy.deepcopy(template)
    status = node["status"]
    assert isinstance(status, dict), "templates are checked"
    address = str(_NODE_NETWORK + 256 + index)
    status.setdefault(
        "addresses",
        [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name_of(template)},
        ],
    )
    status.setdefault("nodeInfo", _node_info(template))
    status["conditions"] = conditions(now_ns=now_ns)
    return node


def status_patch(node: Mapping[str, object]) -> dict[str, object]:
    """Return the patch that makes a registered node's status what a new agent reports."""
    return {"status": node["status"]}


def labels_patch(node: Mapping[str, object]) -> dict[str, object]:
    """Return the patch that gives a registered node the labels of its template."""
    metadata = node["metadata"]
    assert isinstance(metadata, dict), "built here"
    return {"metadata": {"labels": metadata["labels"]}}


def conditions(*, now_ns: int) -> list[dict[str, object]]:
    """Return the conditions of a node that has just become healthy."""
    now = rfc3339(now_ns)
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason, message in _CONDITIONS
    ]


def is_healthy(found: Sequence[Condition]) -> bool:
    """Whether a node's conditions still say what its agent reported."""
    statuses = {each.type: each.status for each in found}
    return all(statuses.get(kind) == status for kind, status, _, _ in _CONDITIONS)


def heartbeat_patch(found: Sequence[Condition], *, now_ns: int) -> dict[str, object]:
    """Return the patch of a heartbeat; one that finds other conditions writes its own."""
    if not is_healthy(found):
        return {"status": {"conditions": conditions(now_ns=now_ns)}}
    now = rfc3339(now_ns)
    beats = [{"type": kind, "lastHeartbeatTime": now} for kind, _, _, _ in _CONDITIONS]
    return {"status": {"conditions": beats}}


def lease_object(name: str, *, node_uid: str, spec: dict[str, object]) -> dict[str, object]:
    """Return the lease of a node; it goes when the node goes."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
    metadata: dict[str, object] = {"name": name, "namespace": LEASE_NAMESPACE}
    if node_uid:
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


def lease_spec(name: str, *, seconds: int, now_ns: int) -> dict[str, object]:
    """Return the spec of a lease renewed now, valid for some seconds."""
    return to_dict(
        LeaseSpec(
            holder_identity=name,
            lease_duration_seconds=seconds,
            renew_time=rfc3339_micro(now_ns),
        )
    )


def _node_info(template: NodeTemplate) -> dict[str, object]:
    metadata = template["metadata"]
    labels = metadata["labels"] if isinstance(metadata, dict) else {}
    return {
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "bootID": "",
        "containerRuntimeVersion": "moorage://0",
        "kernelVersion": "0",
        "kubeProxyVersion": "",
        "kubeletVersion": _VERSION,
        "machineID": "",
        "osImage": "moorage node agent",
        "systemUUID": "",
    }
