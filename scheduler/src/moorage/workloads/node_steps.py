"""Derives taints and the ends of pods from the state of a node; no I/O.

Place in the flow: `moorage_sandbox.controllers.node_life` asks here and writes.

Rules: kubernetes v1.36 pkg/controller/nodelifecycle/node_lifecycle_controller.go and
pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, tolerates
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.workloads.objects import Json

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
# Condition -> the status that is bad, and the taint it brings.
_PRESSURES: Final = (
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
)
_OURS: Final = frozenset(
    {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *(taint for _, _, taint in _PRESSURES)}
)
# Conditions that become Unknown when a node is silent.
_SILENT: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class _Wanted(msgspec.Struct, frozen=True):
    key: str
    effect: str


def status_of(node: Node, condition: str) -> str:
    """Return the status of a node's condition, "" if it has none."""
    return next((c.status for c in node.status.conditions if c.type == condition), "")


def taints_due(node: Node, now_ns: int) -> list[Json] | None:
    """Return the new taints of a node; None if the present taints are right.

    Taints of other clients stay as they are; our taints keep their time while they are due.
    """
    wanted = _wanted(node)
    others = [each for each in node.spec.taints if each.key not in _OURS]
    mine = [each for each in node.spec.taints if each.key in _OURS]
    have = {_Wanted(each.key, each.effect): each for each in mine}
    if set(have) == set(wanted) and len(mine) == len(wanted):
        return None
    result = [msgspec.to_builtins(each) for each in others]
    for each in wanted:
        known = have.get(each)
        if known is not None:
            result.append(msgspec.to_builtins(known))
        else:
            taint: Json = {"key": each.key, "effect": each.effect}
            result.append({**taint, "timeAdded": rfc3339(now_ns)})
    return result


def _wanted(node: Node) -> list[_Wanted]:
    taints = []
    ready = status_of(node, "Ready")
    # A node that no agent has reported on has no condition; no taint follows.
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready)
    if key is not None:
        taints += [_Wanted(key, NO_SCHEDULE), _Wanted(key, NO_EXECUTE)]
    if node.spec.unschedulable:
        taints.append(_Wanted(UNSCHEDULABLE, NO_SCHEDULE))
    for condition, bad, taint in _PRESSURES:
        if status_of(node, condition) == bad:
            taints.append(_Wanted(taint, NO_SCHEDULE))
    return taints


def silent_conditions(node: Node, now_ns: int) -> list[Json] | None:
    """Return the conditions of a silent node; None if all are Unknown already."""
    if all(status_of(node, each) == "Unknown" for each in _SILENT):
        return None
    now = rfc3339(now_ns)
    reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
    result: list[Json] = []
    known = {each.type: each for each in node.status.conditions}
    for kind in _SILENT:
        before = known.get(kind)
        if before is not None and before.status == "Unknown":
            continue
        condition: Json = {
            "type": kind,
            "status": "Unknown",
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        }
        if before is None:
            condition |= {"reason": "NodeStatusNeverUpdated", "lastHeartbeatTime": now}
            condition["message"] = "Kubelet never posted node status."
        result.append(condition)
    return result


# --- pods -----------------------------------------------------------------------------------------


def eviction_in(pod: Pod, taints: Sequence[Taint], since_ns: int, now_ns: int) -> float | None:
    """Return the seconds until a pod has to leave its node; None if it may stay.

    Parameters
    ----------
    taints
        Taints of the node.
    since_ns
        When the pod was first seen with taints that evict it; a limited toleration counts from
        there.
    """
    throwing = [each for each in taints if each.effect == NO_EXECUTE]
    if not throwing:
        return None
    limits: list[float] = []
    for taint in throwing:
        matching = [each for each in pod.spec.tolerations if tolerates(each, taint)]
        if not matching:
            return 0.0
        seconds = [
            each.toleration_seconds for each in matching if each.toleration_seconds is not None
        ]
        if seconds:
            limits.append(max(0, min(seconds)) - (now_ns - since_ns) / NS_PER_SECOND)
    return max(0.0, min(limits)) if limits else None
