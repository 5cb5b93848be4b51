"""Builds the status that a kubelet writes for a pod at each step of its life; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.requests import qos_class
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage_sandbox.nodeagent.container_run import Ending
from moorage_sandbox.nodeagent.pod_containers import (
    Phase,
    PodContainers,
    Seat,
    is_ready,
    is_started,
    waits_for_retry,
)
from moorage_sandbox.nodeagent.resizing import ResourcesInForce

ConditionTimes = dict[str, tuple[str, str]]
"""Condition type to (status, last transition time) as last written."""

_Condition = tuple[str, str, str]  # status, reason, message
_Wanted = tuple[str, str, str, str]  # type, and as above


_RESIZE_PENDING: Final = "PodResizePending"

# Fields added to the status of a pod that outlived ``activeDeadlineSeconds``.
OVERDUE: Final[dict[str, object]] = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}
# The end of a container that never ran, in a pod that has ended.
_UNKNOWN_END: Final = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


class PodFacts(msgspec.Struct, frozen=True):
    """The parts that all statuses of a pod share: addresses, and its start time (RFC 3339)."""

    host_ip: str
    pod_ip: str
    start_time: str


def report(
    pod: Pod,
    facts: PodFacts,
    times: ConditionTimes,
    containers: PodContainers,
    *,
    in_force: ResourcesInForce | None = None,
    now_ns: int,
    phase: Phase | None = None,
) -> dict[str, object]:
    """Build the status of an admitted pod.

    Parameters
    ----------
    facts
        Without a pod address, the sandbox of the pod is not ready.
    times
        Updated with the conditions written here.
    in_force
        The resources in force; None where they are those of the spec.
    now_ns
        Wall-clock time, nanoseconds.
    phase
        Phase of a pod that is stopped from outside; None for the phase its containers give it.
    """
    found = phase or containers.phase(pod)
    status: dict[str, object] = {"phase": found}
    over = found in ("Succeeded", "Failed")
    if over:
        wanted = _ended_conditions(pod, found, containers)
    else:
        wanted = _living_conditions(pod, facts, containers, now_ns)
        status |= _addresses(facts)
    pending = in_force.pending if in_force is not None and not over else None
    if pending is not None:
        wanted.append((_RESIZE_PENDING, "True", pending.reason, pending.message))
    conditions = _conditions(pod, wanted, times, rfc3339(now_ns))
    if pending is None and times.pop(_RESIZE_PENDING, None) is not None:
        conditions.append({"type": _RESIZE_PENDING, "$patch": "delete"})
    status["conditions"] = conditions
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    regular = _statuses(pod, containers.regular(pod), now_ns, over=over)
    if over and _initialized(pod, containers)[0] == "True":
        _end_unstarted(regular)
    status["containerStatuses"] = regular
    inits = _statuses(pod, containers.inits(pod), now_ns, over=over)
    if inits:
        status["initContainerStatuses"] = inits
    _add_resources(pod, in_force, [*regular, *inits])
    if pod.spec.ephemeral_containers:
        found_late = _statuses(pod, containers.ephemeral(pod), now_ns, over=over)
        status["ephemeralContainerStatuses"] = found_late
    return status


def _end_unstarted(statuses: Iterable[dict[str, Any]]) -> None:
    """Give the containers of an ended pod that never ran an end, in place.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/status/status_manager.go, TerminatePod: nobody knows how such a
    container would have ended, so it counts as failed.
    """
    for status in statuses:
        if "waiting" in status["state"]:
            status["state"] = {"terminated": dict(_UNKNOWN_END)}


def _add_resources(
    pod: Pod, in_force: ResourcesInForce | None, statuses: Iterable[dict[str, Any]]
) -> None:
    """Tell the resources of each container, in place.

    Notes
    -----
    kubernetes v1.36 pkg/apis/core/validation: a resize is refused where the status of a running
    container has no resources, as its node could not resize it.
    """
    own = {each.name: each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)}
    if in_force is not None:
        own |= in_force.resources
    for each in statuses:
        resources = own[each["name"]]
        parts = {"requests": resources.requests, "limits": resources.limits}
        each["resources"] = {name: part for name, part in parts.items() if part}
        if resources.requests:
            each["allocatedResources"] = resources.requests


def evicted(pod: Pod, message: str, times: ConditionTimes, *, now_ns: int) -> dict[str, object]:
    """Build the fields that an eviction adds to the status of a pod."""
    wanted = [("DisruptionTarget", "True", "TerminationByKubelet", message)]
    return {
        "reason": "Evicted",
        "message": message,
        "conditions": _conditions(pod, wanted, times, rfc3339(now_ns)),
    }


def crash_text(pod: Pod, seat: Seat) -> str:
    """Return the text of the Event about a container that waits for its next run."""
    return f"Back-off restarting failed container {seat.container.name} in pod {_full_name(pod)}"


def gates_moved(pod: Pod, times: ConditionTimes, containers: PodContainers, *, now_ns: int) -> bool:
    """Whether the readiness gates of a pod make Ready differ from its last written status."""
    if not pod.spec.readiness_gates:
        return False
    ready, _whole = _readiness(pod, containers, now_ns)
    told = times.get("Ready")
    return told is not None and told[0] != ready[0]


def _ready(pod: Pod) -> _Condition:
    """Return status, reason and message of Ready, where all containers are.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/status/generate.go, GeneratePodReadyCondition.
    """
    found = {each.type: each.status for each in pod.status.conditions}
    closed = []
    for gate in pod.spec.readiness_gates:
        name, status = gate.condition_type, found.get(gate.condition_type)
        if status is None:
            closed.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif status != "True":
            closed.append(f'the status of pod readiness gate "{name}" is not "True", but {status}')
    return ("False", "ReadinessGatesNotReady", ", ".join(closed)) if closed else ("True", "", "")


def refused(pod: Pod, *, reason: str, message: str, now: str) -> dict[str, object]:
    """Build the status of a pod the node does not take (kubelet.go ``rejectPod``)."""
    observed = pod.metadata.generation
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": now,
        "qosClass": qos_class(pod),
        **({"observedGeneration": observed} if observed else {}),
    }


def times_of(pod: Pod) -> ConditionTimes:
    """Return the conditions of a pod with their times, so that an unchanged one keeps its time."""
    return {
        each.type: (each.status, each.last_transition_time or "") for each in pod.status.conditions
    }


def _conditions(
    pod: Pod, wanted: Sequence[_Wanted], times: ConditionTimes, now: str
) -> list[dict[str, object]]:
    """Build conditions and note their times; PodScheduled is left to the API server."""
    conditions: list[dict[str, object]] = []
    for name, status, reason, message in wanted:
        known = times.get(name)
        since = known[1] if known and known[0] == status and known[1] else now
        times[name] = (status, since)
        condition: dict[str, object] = {
            "type": name,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
            "reason": reason or None,
            "message": message or None,
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        conditions.append(condition)
    return conditions


def _addresses(facts: PodFacts) -> dict[str, object]:
    addresses: dict[str, object] = {
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
    }
    if facts.pod_ip:
        addresses |= {"podIP": facts.pod_ip, "podIPs": [{"ip": facts.pod_ip}]}
    return addresses


def _living_conditions(
    pod: Pod, facts: PodFacts, containers: PodContainers, now_ns: int
) -> list[_Wanted]:
    """Return the conditions of a pod that has not ended (status/generate.go)."""
    ready, whole = _readiness(pod, containers, now_ns)
    return [
        ("PodReadyToStartContainers", "True" if facts.pod_ip else "False", "", ""),
        ("Initialized", *_initialized(pod, containers)),
        ("Ready", *ready),
        ("ContainersReady", *whole),
    ]


def _ended_conditions(pod: Pod, phase: Phase, containers: PodContainers) -> list[_Wanted]:
    """Return the conditions of a pod that has ended (status/generate.go)."""
    succeeded = phase == "Succeeded"
    reason = "PodCompleted" if succeeded else "PodFailed"
    initialized = ("True", reason, "") if succeeded else _initialized(pod, containers)
    return [
        ("PodReadyToStartContainers", "False", "", ""),
        ("Initialized", *initialized),
        ("Ready", "False", reason, ""),
        ("ContainersReady", "False", reason, ""),
    ]


def _readiness(pod: Pod, containers: PodContainers, now_ns: int) -> tuple[_Condition, _Condition]:
    """Return the conditions Ready and ContainersReady."""
    sidecars = [each for each in containers.inits(pod) if each.is_sidecar]
    serving = [*sidecars, *containers.regular(pod)]
    unready = [each.container.name for each in serving if not is_ready(pod, each, now_ns)]
    if not unready:
        return _ready(pod), ("True", "", "")
    text = f"containers with unready status: [{' '.join(unready)}]"
    found = ("False", "ContainersNotReady", text)
    return found, found


def _initialized(pod: Pod, containers: PodContainers) -> _Condition:
    """Return the condition Initialized; a sidecar counts as initialized once it has run."""
    behind = [
        each.container.name
        for each in containers.inits(pod)
        if not (each.is_done or (each.is_sidecar and not each.run.is_waiting))
    ]
    if not behind:
        return "True", "", ""
    text = f"containers with incomplete status: [{' '.join(behind)}]"
    return "False", "ContainersNotInitialized", text


def _statuses(pod: Pod, seats: Iterable[Seat], now_ns: int, *, over: bool) -> list[dict[str, Any]]:
    return [_status(pod, seat, now_ns, over=over) for seat in seats]


def _status(pod: Pod, seat: Seat, now_ns: int, *, over: bool) -> dict[str, Any]:
    """Build the status of a container; ``over``: the pod has ended, so nothing runs again."""
    run = seat.run
    crashed = waits_for_retry(pod, seat) and not over
    status: dict[str, Any] = {
        "name": seat.container.name,
        "image": seat.container.image,
        "imageID": "",
        "ready": is_ready(pod, seat, now_ns),
        **({} if seat.ephemeral else {"started": is_started(pod, seat, now_ns)}),
        "restartCount": run.restarts,
        "state": _crashed(pod, seat) if crashed else _state(pod, seat),
    }
    last = run.ended if crashed else run.last
    if last is not None:
        status["lastState"] = _terminated(last)
    return status


def _state(pod: Pod, seat: Seat) -> dict[str, Any]:
    run = seat.run
    if run.is_running:
        return {"running": {"startedAt": rfc3339(run.started_ns)}}
    if run.ended is not None:
        return _terminated(run.ended)
    reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    return {"waiting": {"reason": reason}}


def _crashed(pod: Pod, seat: Seat) -> dict[str, Any]:
    delay_ns = seat.run.backoff_ns(seat.run.ended) if seat.run.ended else 0
    text = (
        f"back-off {_duration(delay_ns // NS_PER_SECOND)} restarting failed "
        f"container={seat.container.name} pod={_full_name(pod)}"
    )
    return {"waiting": {"reason": "CrashLoopBackOff", "message": text}}


def _terminated(ending: Ending) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": ending.exit_code,
            "reason": "Error" if ending.exit_code else "Completed",
            "startedAt": rfc3339(ending.started_ns),
            "finishedAt": rfc3339(ending.ended_ns),
        }
    }


def _full_name(pod: Pod) -> str:
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def _duration(seconds: int) -> str:
    """Write seconds as Go writes a duration: ``40s``, ``2m40s``."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
