"""The row of a pod in a table (printPod)."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.kinds.cells import AGE, NAME, NONE, age, is_true, name_of, since
from moorage.kinds.kind import Column
from moorage.kinds.tree import Json, child, condition, number, objects, text

# The cells of a row share one summary of the containers.
COLUMNS = (
    NAME,
    Column("Ready", description="Containers that are ready, of all there are"),
    Column("Status", description="What the pod is doing, containers taken together"),
    Column("Restarts", description="How often containers were restarted, and when last"),
    AGE,
    Column("IP", description="Address of the pod", priority=1),
    Column("Node", description="Node the pod is bound to", priority=1),
    Column("Nominated Node", description="Node the pod waits for", priority=1),
    Column("Readiness Gates", description="Readiness gates passed, of all there are", priority=1),
)

# Status reason the node lifecycle controller gives to pods of a node that is gone.
_NODE_LOST = "NodeLost"


class _Summary(msgspec.Struct):
    """Totals over the containers of a pod."""

    reason: str
    ready: int = 0
    total: int = 0
    restarts: int = 0
    last_restart: str = ""

    def count(self, status: Json) -> None:
        self.restarts += number(status, "restartCount")
        finished = text(status, "lastState", "terminated", "finishedAt")
        self.last_restart = max(self.last_restart, finished)


def pod_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a pod's row."""
    summary = _summarize(obj)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{restarts} ({since(summary.last_restart, now_ns)} ago)"
    addresses = objects(obj, "status", "podIPs")
    address = text(addresses[0], "ip") if addresses else text(obj, "status", "podIP")
    return [
        name_of(obj),
        f"{summary.ready}/{summary.total}",
        summary.reason,
        restarts,
        age(obj, now_ns),
        address or NONE,
        text(obj, "spec", "nodeName") or NONE,
        text(obj, "status", "nominatedNodeName") or NONE,
        _readiness_gates(obj),
    ]


def _summarize(obj: Json) -> _Summary:
    phase = text(obj, "status", "phase")
    summary = _Summary(reason=text(obj, "status", "reason") or phase)
    scheduled = condition(obj, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    sidecars = {
        text(each, "name")
        for each in objects(obj, "spec", "initContainers")
        if each.get("restartPolicy") == "Always"
    }
    summary.total = len(objects(obj, "spec", "containers")) + len(sidecars)
    started = _Summary(reason="")
    initializing = _summarize_init(obj, summary, started, sidecars)
    if not initializing or is_true(obj, "Initialized"):
        summary.restarts, summary.last_restart = started.restarts, started.last_restart
        _summarize_containers(obj, summary)
    if text(obj, "metadata", "deletionTimestamp"):
        if text(obj, "status", "reason") == _NODE_LOST:
            summary.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _summarize_init(obj: Json, summary: _Summary, started: _Summary, sidecars: set[str]) -> bool:
    """Count the init containers; True when one of them has not finished yet."""
    for index, status in enumerate(objects(obj, "status", "initContainerStatuses")):
        summary.count(status)
        is_sidecar = text(status, "name") in sidecars
        if is_sidecar:
            started.count(status)
        terminated = child(status, "state").get("terminated")
        if terminated is not None and number(terminated, "exitCode") == 0:
            continue
        if is_sidecar and status.get("started") is True:
            summary.ready += status.get("ready") is True
            continue
        waiting = text(status, "state", "waiting", "reason")
        if terminated is not None:
            summary.reason = f"Init:{_end_of(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            count = len(objects(obj, "spec", "initContainers"))
            summary.reason = f"Init:{index}/{count}"
        return True
    return False


def _summarize_containers(obj: Json, summary: _Summary) -> None:
    running = False
    for status in reversed(objects(obj, "status", "containerStatuses")):
        summary.count(status)
        state = child(status, "state")
        terminated = state.get("terminated")
        if text(state, "waiting", "reason"):
            summary.reason = text(state, "waiting", "reason")
        elif terminated is not None:
            summary.reason = _end_of(terminated)
        elif status.get("ready") is True and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        summary.reason = "Running" if is_true(obj, "Ready") else "NotReady"


def _end_of(terminated: Json) -> str:
    if text(terminated, "reason"):
        return text(terminated, "reason")
    if number(terminated, "signal"):
        return f"Signal:{number(terminated, 'signal')}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _readiness_gates(obj: Json) -> str:
    gates = objects(obj, "spec", "readinessGates")
    if not gates:
        return NONE
    passed = [gate for gate in gates if is_true(obj, text(gate, "conditionType"))]
    return f"{len(passed)}/{len(gates)}"
