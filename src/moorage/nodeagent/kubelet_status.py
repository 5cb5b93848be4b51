"""What a kubelet writes into a pod's status at each step of its life; pure builders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.api.pod import Container, Pod
from moorage.api.requests import qos_class

ConditionTimes = dict[str, tuple[str, str]]
"""Condition type to (status, last transition time) as last written."""

_Wanted = tuple[str, str, str, str]  # type, status, reason, message


class PodFacts(msgspec.Struct, frozen=True):
    """What the statuses of one pod agree on: addresses and times (RFC 3339)."""

    host_ip: str
    pod_ip: str
    start_time: str
    running_since: str = ""


def creating(pod: Pod, facts: PodFacts, times: ConditionTimes) -> dict[str, object]:
    """Build the status of an admitted pod whose containers are being made."""
    names = " ".join(c.name for c in pod.spec.containers)
    unready = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    inits = " ".join(c.name for c in pod.spec.init_containers)
    initialized = (
        ("False", "ContainersNotInitialized", f"containers with incomplete status: [{inits}]")
        if inits
        else ("True", "", "")
    )
    wanted = [
        ("PodReadyToStartContainers", "False", "", ""),
        ("Initialized", *initialized),
        ("Ready", *unready),
        ("ContainersReady", *unready),
    ]
    reason = "PodInitializing" if inits else "ContainerCreating"
    waiting: dict[str, object] = {"waiting": {"reason": reason}}
    status: dict[str, object] = {
        "phase": "Pending",
        "conditions": _conditions(pod, wanted, times, facts.start_time),
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
        "containerStatuses": _statuses(pod.spec.containers, waiting, ready=False, started=False),
    }
    if inits:
        status["initContainerStatuses"] = _statuses(
            pod.spec.init_containers, waiting, ready=False, started=False
        )
    return status


def running(
    pod: Pod, facts: PodFacts, times: ConditionTimes, *, now: str = ""
) -> dict[str, object]:
    """Build the status of a pod whose containers all run; it is ready if its gates let it."""
    since = facts.running_since
    wanted = [
        ("PodReadyToStartContainers", "True", "", ""),
        ("Initialized", "True", "", ""),
        ("Ready", *_ready(pod)),
        ("ContainersReady", "True", "", ""),
    ]
    state: dict[str, object] = {"running": {"startedAt": since}}
    status: dict[str, object] = {
        "phase": "Running",
        "conditions": _conditions(pod, wanted, times, now or since),
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "podIP": facts.pod_ip,
        "podIPs": [{"ip": facts.pod_ip}],
        "startTime": facts.start_time,
        "containerStatuses": _statuses(pod.spec.containers, state, ready=True, started=True),
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = _init_statuses(pod, facts, state, done_at=since)
    return status


def gates_moved(pod: Pod, times: ConditionTimes) -> bool:
    """Whether a running pod with readiness gates is ready now and was told not to be, or back."""
    if not pod.spec.readiness_gates:
        return False
    told = times.get("Ready")
    return told is not None and told[0] != _ready(pod)[0]


def _ready(pod: Pod) -> tuple[str, str, str]:
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


def ended(
    pod: Pod, facts: PodFacts, times: ConditionTimes, *, exit_code: int, now: str
) -> dict[str, object]:
    """Build the status of a pod whose containers have all ended by themselves."""
    reason = "Completed" if exit_code == 0 else "Error"
    pod_reason = "PodCompleted" if exit_code == 0 else "PodFailed"
    wanted = [
        ("PodReadyToStartContainers", "False", "", ""),
        ("Initialized", "True", pod_reason if exit_code == 0 else "", ""),
        ("Ready", "False", pod_reason, ""),
        ("ContainersReady", "False", pod_reason, ""),
    ]
    state: dict[str, object] = {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": facts.running_since,
            "finishedAt": now,
        }
    }
    status: dict[str, object] = {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "conditions": _conditions(pod, wanted, times, now),
        "containerStatuses": _statuses(pod.spec.containers, state, ready=False, started=False),
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = _init_statuses(pod, facts, state, done_at=now)
    return status


def overdue() -> dict[str, object]:
    """Build the status of a pod that outlived ``activeDeadlineSeconds``."""
    return {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
    }


def refused(pod: Pod, *, reason: str, message: str, now: str) -> dict[str, object]:
    """Build the status of a pod the node does not take (kubelet.go ``rejectPod``)."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": now,
        "qosClass": qos_class(pod),
    }


def times_of(pod: Pod) -> ConditionTimes:
    """Read back what was written before, so that an unchanged condition keeps its time."""
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


def _statuses(
    containers: Sequence[Container], state: Mapping[str, object], *, ready: bool, started: bool
) -> list[dict[str, object]]:
    return [
        {
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": ready,
            "started": started,
            "restartCount": 0,
            "state": dict(state),
            "lastState": {},
        }
        for container in containers
    ]


def _init_statuses(
    pod: Pod, facts: PodFacts, sidecar_state: Mapping[str, object], *, done_at: str
) -> list[dict[str, object]]:
    done: dict[str, object] = {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": facts.start_time,
            "finishedAt": facts.running_since or done_at,
        }
    }
    alive = "running" in sidecar_state
    result: list[dict[str, object]] = []
    for container in pod.spec.init_containers:
        sidecar = container.is_restartable_init
        state = sidecar_state if sidecar else done
        ready = alive or not sidecar
        result += _statuses([container], state, ready=ready, started=sidecar and alive)
    return result
