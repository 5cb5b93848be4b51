"""Computes a deployment's status: counts, and the progress of the roll-out.

Rules: kubernetes v1.36 pkg/controller/deployment/{progress,sync}.go and
pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.workloads.deployment_steps import Sets, limits
from moorage.workloads.objects import Json, Whole
from moorage.workloads.pods import time_ns
from moorage.workloads.replicas import wanted

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
_NO_DEADLINE: Final = 2**31 - 1
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_COMPLETE: Final = "NewReplicaSetAvailable"


def counts(deployment: Whole, sets: Sets) -> dict[str, Any]:
    """Return the numbers of a deployment's status; None where a field is left out."""
    every = sets.every
    total = _sum(every, "replicas")
    available = _sum(every, "availableReplicas")
    return {
        "observedGeneration": deployment.metadata.generation,
        "replicas": total or None,
        "updatedReplicas": _sum([sets.new] if sets.new else [], "replicas") or None,
        "readyReplicas": _sum(every, "readyReplicas") or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(sum(wanted(each) for each in every) - available, 0) or None,
    }


def _sum(sets: Sequence[Whole], name: str) -> int:
    return sum(int(each.status.get(name) or 0) for each in sets)


def is_complete(deployment: Whole, status: Json) -> bool:
    """Whether all pods are of the newest template and available."""
    replicas = wanted(deployment)
    return (
        (status["updatedReplicas"] or 0) == replicas
        and (status["replicas"] or 0) == replicas
        and (status["availableReplicas"] or 0) == replicas
        and status["observedGeneration"] >= deployment.metadata.generation
    )


def status_due(deployment: Whole, sets: Sets, now_ns: int) -> Json:
    """Return the status a deployment should have."""
    status = counts(deployment, sets)
    conditions = [dict(each) for each in deployment.status.get("conditions") or []]
    available = (status["availableReplicas"] or 0) >= wanted(deployment) - limits(deployment)[1]
    _put(
        conditions,
        AVAILABLE,
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if available
        else (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
        now_ns,
    )
    if _has_deadline(deployment):
        if deployment.spec.get("paused"):
            _pause(conditions, now_ns)
        else:
            _progress(deployment, sets, status, conditions, now_ns)
    else:
        conditions = [each for each in conditions if each["type"] != PROGRESSING]
    conditions = _with_failure(conditions, sets)
    status["conditions"] = conditions
    return status


def _has_deadline(deployment: Whole) -> bool:
    seconds = deployment.spec.get("progressDeadlineSeconds")
    return seconds is not None and seconds != _NO_DEADLINE


def _pause(conditions: list[Json], now_ns: int) -> None:
    found = _find(conditions, PROGRESSING)
    if found is not None and found["reason"] == _TIMED_OUT:
        return
    _put(conditions, PROGRESSING, ("Unknown", "DeploymentPaused", "Deployment is paused"), now_ns)


def _progress(
    deployment: Whole, sets: Sets, status: Json, conditions: list[Json], now_ns: int
) -> None:
    progressing = _find(conditions, PROGRESSING)
    if progressing is not None and progressing["reason"] == "DeploymentPaused":
        text = "Deployment is resumed"
        _put(conditions, PROGRESSING, ("Unknown", "DeploymentResumed", text), now_ns)
        progressing = _find(conditions, PROGRESSING)
    of_what = f'ReplicaSet "{sets.new.name}"' if sets.new else f'Deployment "{deployment.name}"'
    finished = progressing is not None and progressing["reason"] == _COMPLETE
    if finished and (status["replicas"] or 0) == (status["updatedReplicas"] or 0):
        # A roll-out that is over stays so, whatever becomes of its pods later.
        return
    if is_complete(deployment, status):
        text = f"{of_what} has successfully progressed."
        _put(conditions, PROGRESSING, ("True", _COMPLETE, text), now_ns)
    elif progressing is None or finished or _gets_on(deployment, status):
        text = f"{of_what} is progressing."
        _put(conditions, PROGRESSING, ("True", "ReplicaSetUpdated", text), now_ns, fresh=True)
    elif _is_overdue(deployment, progressing, now_ns):
        text = f"{of_what} has timed out progressing."
        _put(conditions, PROGRESSING, ("False", _TIMED_OUT, text), now_ns)


def _gets_on(deployment: Whole, status: Json) -> bool:
    """Whether more pods are new, ready or available than before, or fewer are old."""
    before = deployment.status

    def number(of: Json, name: str) -> int:
        return int(of.get(name) or 0)

    old_before = number(before, "replicas") - number(before, "updatedReplicas")
    old_now = number(status, "replicas") - number(status, "updatedReplicas")
    return (
        number(status, "updatedReplicas") > number(before, "updatedReplicas")
        or old_now < old_before
        or number(status, "readyReplicas") > number(before, "readyReplicas")
        or number(status, "availableReplicas") > number(before, "availableReplicas")
    )


def _is_overdue(deployment: Whole, progressing: Json, now_ns: int) -> bool:
    if progressing["reason"] == _COMPLETE:
        return False
    if progressing["reason"] == _TIMED_OUT:
        return True
    return now_ns >= _deadline_ns(deployment, progressing)


def _deadline_ns(deployment: Whole, progressing: Json) -> int:
    seconds = int(deployment.spec["progressDeadlineSeconds"])
    return time_ns(progressing.get("lastUpdateTime")) + seconds * NS_PER_SECOND


def overdue_in(deployment: Whole, status: Json, now_ns: int) -> float | None:
    """Return the seconds until a roll-out without progress is overdue; None if it cannot be."""
    progressing = _find(status.get("conditions") or [], PROGRESSING)
    waits = ("ReplicaSetUpdated", "NewReplicaSetCreated", "FoundNewReplicaSet", "DeploymentResumed")
    if not _has_deadline(deployment) or progressing is None or progressing["reason"] not in waits:
        return None
    # Times are whole seconds: a look a moment too early would be in vain.
    return max(0.0, (_deadline_ns(deployment, progressing) - now_ns) / NS_PER_SECOND) + 1.0


def _with_failure(conditions: list[Json], sets: Sets) -> list[Json]:
    """Take over the failure of a replica set, the newest first."""
    others = [each for each in conditions if each["type"] != REPLICA_FAILURE]
    newest_first = [*([sets.new] if sets.new else []), *reversed(sets.old)]
    for found in newest_first:
        failure = _find(found.status.get("conditions") or [], REPLICA_FAILURE)
        if failure is not None and wanted(found):
            since = failure.get("lastTransitionTime")
            return [*others, {**failure, "lastUpdateTime": since, "lastTransitionTime": since}]
    return others


def _find(conditions: Sequence[Json], kind: str) -> Json | None:
    return next((each for each in conditions if each.get("type") == kind), None)


def _put(
    conditions: list[Json],
    kind: str,
    wanted_now: tuple[str, str, str],
    now_ns: int,
    *,
    fresh: bool = False,
) -> None:
    """Set a condition, in place; an equal condition stays, unless `fresh` is set."""
    status, reason, message = wanted_now
    before = _find(conditions, kind)
    if (
        before is not None
        and not fresh
        and (before["status"], before["reason"]) == (status, reason)
    ):
        return
    now = rfc3339(now_ns)
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    condition = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
    }
    if before is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(before)] = condition
