"""Builds the objects a kubelet writes about its node: Node, heartbeat and lease; pure."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Mapping

from moorage.api.codec import from_dict, to_dict
from moorage.api.lease import LeaseSpec
from moorage.api.node import Node
from moorage.base.clock import rfc3339, rfc3339_micro
from moorage.nodeshapes.templates import NodeTemplate, name_of
from moorage_sandbox.nodeagent.pressure import PRESSURES, pressures_of

LEASE_NAMESPACE = "kube-node-lease"

_NODE_NETWORK = ipaddress.IPv4Address("10.0.0.0")
_VERSION = "v1.36.0"

_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")


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
    status["conditions"] = conditions(from_dict(Node, node), now_ns=now_ns)
    return node


def status_patch(node: Mapping[str, object]) -> dict[str, object]:
    """Return the patch that gives a registered node the status of a new agent."""
    return {"status": node["status"]}


def labels_patch(node: Mapping[str, object]) -> dict[str, object]:
    """Return the patch that gives a registered node the labels of its template."""
    metadata = node["metadata"]
    assert isinstance(metadata, dict), "built here"
    return {"metadata": {"labels": metadata["labels"]}}


def conditions(node: Node, *, now_ns: int) -> list[dict[str, object]]:
    """Return the conditions of a node as its agent reports them now.

    A condition that has its status already keeps the time of its last transition.
    """
    now = rfc3339(now_ns)
    found = {each.type: each for each in node.status.conditions}
    reported: list[dict[str, object]] = []
    for kind, status, reason, message in _statuses(node):
        known = found.get(kind)
        since = known.last_transition_time if known and known.status == status else None
        reported.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        )
    return reported


def pressures_moved(node: Node) -> bool:
    """Whether the annotations of a node differ from its pressure conditions."""
    found = {each.type: each.status for each in node.status.conditions}
    pressed = pressures_of(node)
    return any(
        each.condition in found and (found[each.condition] == "True") != (each in pressed)
        for each in PRESSURES
    )


def heartbeat_patch(node: Node, *, now_ns: int) -> dict[str, object]:
    """Return the patch of a heartbeat; changed conditions are written whole."""
    found = {each.type: each.status for each in node.status.conditions}
    wanted = _statuses(node)
    if any(found.get(kind) != status for kind, status, _, _ in wanted):
        return {"status": {"conditions": conditions(node, now_ns=now_ns)}}
    now = rfc3339(now_ns)
    beats = [{"type": kind, "lastHeartbeatTime": now} for kind, _, _, _ in wanted]
    return {"status": {"conditions": beats}}


def _statuses(node: Node) -> list[tuple[str, str, str, str]]:
    """Return type, status, reason and message of each condition."""
    pressed = pressures_of(node)
    conditions_of_node = [
        (each.condition, "True", *each.pressed)
        if each in pressed
        else (each.condition, "False", *each.healthy)
        for each in PRESSURES
    ]
    return [*conditions_of_node, _READY]


def lease_object(name: str, *, node_uid: str, spec: dict[str, object]) -> dict[str, object]:
    """Return the lease of a node; the garbage collector deletes the lease with the node."""
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
