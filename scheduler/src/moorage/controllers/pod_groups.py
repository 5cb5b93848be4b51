"""Keeps the status of coscheduling's pod groups, which ``kubectl get podgroup`` shows.

The scheduler never reads this status. Rules: scheduling spec, gang section B, controller
(scheduler-plugins ``pkg/controllers/podgroup_controller.go``). Differences: the phase ``Degraded``
marks a started group that lacks pods; ``scheduled`` counts pods with a node; a phase is written
once for all the steps that lead to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moorage.api.coscheduling import (
    COSCHEDULING_POD_GROUPS,
    GROUP_LABEL,
    OLD_GROUP_LABEL,
)
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.workloads.objects import ViewedPod, Whole
from moorage.workloads.pods import is_finished, time_ns

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
DEGRADED: Final = "Degraded"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

_ENDED: Final = (FINISHED, FAILED)
_STARTED: Final = (RUNNING, DEGRADED)
_TOO_LONG_NS: Final = 48 * 3600 * NS_PER_SECOND  # as upstream


class PodGroupController(Controller):
    """Keeps phase and counts of PodGroups of scheduling.x-k8s.io."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="podgroup-controller", resource=COSCHEDULING_POD_GROUPS)
        self._groups = around.views.view_of(COSCHEDULING_POD_GROUPS, Whole)
        self._members: dict[Key, dict[Key, Pod]] = {}
        self.follow(self._groups)
        around.views.view_of(PODS, ViewedPod).tell(self._pod_changed)

    async def sync(self, key: Key) -> float | None:
        """Write the status of a group, if it changed."""
        group = self._groups.objects.get(key)
        if group is None:
            return None
        members = self._members.get(key, {})
        pods = [members[name] for name in sorted(members) if not _is_leaving(members[name])]
        before = str(group.status.get("phase") or "")
        if before in _ENDED:
            return None
        now_ns = self.clock.now_ns()
        if _took_too_long(group):
            text = "schedule time longer than 48 hours"
            self.emit_event(group, "Timeout", text, kind="Warning")
            return None
        status = group_status(group, pods, now_ns=now_ns)
        await self.write_status(group, status)
        if status["phase"] == DEGRADED and before != DEGRADED:
            self.emit_event(group, DEGRADED, _what_is_missing(group, pods), kind="Warning")
        return None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        before, after = group_of(old), group_of(new)
        if before is not None and before != after and old is not None:
            members = self._members.get(before, {})
            members.pop(old.key, None)
            if not members:
                self._members.pop(before, None)
            self.queue.add(before)
        if after is not None and new is not None:
            self._members.setdefault(after, {})[new.key] = new
            self.queue.add(after)


def group_of(pod: Pod | None) -> Key | None:
    """Return the key of the PodGroup that a pod names."""
    if pod is None:
        return None
    labels = pod.metadata.labels
    name = labels.get(GROUP_LABEL) or labels.get(OLD_GROUP_LABEL)
    return (pod.namespace, name) if name else None


def group_status(group: Whole, pods: Sequence[Pod], *, now_ns: int) -> dict[str, Any]:
    """Return the status of a group that has not ended.

    Parameters
    ----------
    group
        The group.
    pods
        Every pod that names the group, finished pods included.
    now_ns
        Wall-clock time.
    """
    before = str(group.status.get("phase") or "")
    phases = [pod.status.phase for pod in pods]
    running, succeeded = phases.count("Running"), phases.count("Succeeded")
    failed = phases.count("Failed")
    phase = _phase(before, pods, least=_least(group))
    status: dict[str, Any] = {
        "phase": phase,
        "scheduled": sum(bool(pod.spec.node_name) and not is_finished(pod) for pod in pods) or None,
        "running": running or None,
        "succeeded": succeeded or None,
        "failed": failed or None,
    }
    if phase != PENDING:
        if not group.status.get("scheduleStartTime"):
            status["scheduleStartTime"] = rfc3339(now_ns)
        owner = pods[0].metadata.controller if pods else None
        if owner is not None and not group.status.get("occupiedBy"):
            status["occupiedBy"] = f"{group.namespace}/{owner.name}"
    return status


def _phase(before: str, pods: Sequence[Pod], *, least: int) -> str:
    """Return the phase of a group; later rules override earlier rules."""
    if len(pods) < least:
        return DEGRADED if before in _STARTED and _placed(pods) else PENDING
    phases = [pod.status.phase for pod in pods]
    running, succeeded = phases.count("Running"), phases.count("Succeeded")
    failed = phases.count("Failed")
    phase = RUNNING if succeeded + running >= least else SCHEDULING
    if phase == SCHEDULING and _is_degraded(before, pods, least=least):
        phase = DEGRADED
    if failed and failed + running + succeeded >= least:
        phase = FAILED
    if succeeded >= least:
        phase = FINISHED
    return phase


def _is_degraded(before: str, pods: Sequence[Pod], *, least: int) -> bool:
    """Whether a started group lacks pods: some pods have a node, but fewer than the minimum.

    A group whose pods are being bound looks the same, but it has not started before and none of its
    pods met an error.
    """
    placed = _placed(pods)
    if not 0 < placed < least:
        return False
    return before in _STARTED or any(_met_an_error(pod) for pod in pods)


def _is_leaving(pod: Pod) -> bool:
    """Whether a deleted pod has ended; deleting a pod does not make its group fail."""
    return pod.metadata.deletion_timestamp is not None and is_finished(pod)


def _placed(pods: Sequence[Pod]) -> int:
    return sum(bool(pod.spec.node_name) for pod in pods if pod.status.phase != "Failed")


def _met_an_error(pod: Pod) -> bool:
    failure = pod.status.scheduling_failure
    return not pod.spec.node_name and failure is not None and failure.reason == "SchedulerError"


def _what_is_missing(group: Whole, pods: Sequence[Pod]) -> str:
    least, waiting = _least(group), [pod for pod in pods if not pod.spec.node_name]
    text = f"{_placed(pods)} of at least {least} pods have a node"
    if not waiting:
        return f"{text}, others are gone"
    said = next((each.message for each in waiting[0].status.conditions if each.message), "")
    why = f": {said}" if said else ""
    return f"{text}, {waiting[0].name} waits for one{why}"


def _least(group: Whole) -> int:
    return int(group.spec.get("minMember") or 0)


def _took_too_long(group: Whole) -> bool:
    """Whether a group started too long after its creation to be updated (upstream's rule)."""
    start = time_ns(group.status.get("scheduleStartTime"))
    if not start or group.status.get("running") or group.status.get("phase") in _STARTED:
        return False
    return start - time_ns(group.metadata.creation_timestamp) > _TOO_LONG_NS
