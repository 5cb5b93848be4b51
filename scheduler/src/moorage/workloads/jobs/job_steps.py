"""Decides about a job: counts each pod once, compares with the wanted number, finds its end.

Place in the flow: `moorage_sandbox.controllers.job` watches, asks here, and writes. The uid of an
ended pod is noted in the status, then the finalizer is removed, then the pod is counted. So each
pod is counted once, even if the controller stops in between.

Rules: kubernetes v1.36 pkg/controller/job/job_controller.go (syncJob, trackJobStatusAndRemove
Finalizers, manageJob).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.workloads.jobs.job_indexes import (
    failed_indexes,
    fails_by_index,
    success_rule,
    unreplaced,
)
from moorage.workloads.jobs.job_pods import (
    failure_action,
    index_of,
    is_indexed,
    is_tracked,
    read_indexes,
)
from moorage.workloads.objects import Json, Whole
from moorage.workloads.pods import (
    deletion_order,
    is_active,
    is_finished,
    is_ready,
    restarts,
    time_ns,
)

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
_INTERIM: Final = {"FailureTarget": FAILED, "SuccessCriteriaMet": COMPLETE}
_OURS: Final = ("", "kubernetes.io/job-controller")
_NOTED_MAX: Final = 500  # uids kept in a status at once, as upstream


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job: `kind` is Complete or Failed."""

    kind: str
    reason: str
    message: str


@dataclass(slots=True)
class Tally:
    """The state of a job's pods.

    Parameters
    ----------
    active, terminating
        Pods that count; pods being deleted that have not ended.
    succeeded, failed
        Pods that ever succeeded or failed, including the noted and the new pods.
    indexes
        Indexes that succeeded.
    counted_succeeded, counted_failed
        The succeeded or failed pods that need not be noted any more.
    noted_succeeded, noted_failed
        Uids that must be noted in the status.
    new_failures
        Pods seen failed for the first time.
    new_success
        Whether a pod was seen succeeded for the first time.
    to_release
        Pods whose finalizer may go once the status is written.
    policy_failure
        Why the policy of pod failures ends the job, "" if it does not.
    failed_indexes
        Indexes that are given up; empty where indexes have no limit of their own.
    unreplaced
        The last failed pod of each index that waits for a replacement.
    """

    active: list[Pod] = field(default_factory=list)
    terminating: list[Pod] = field(default_factory=list)
    succeeded: int = 0
    failed: int = 0
    indexes: set[int] = field(default_factory=set)
    counted_succeeded: int = 0
    counted_failed: int = 0
    noted_succeeded: list[str] = field(default_factory=list)
    noted_failed: list[str] = field(default_factory=list)
    new_failures: list[Pod] = field(default_factory=list)
    new_success: bool = False
    to_release: list[Pod] = field(default_factory=list)
    policy_failure: str = ""
    failed_indexes: set[int] = field(default_factory=set)
    unreplaced: dict[int, Pod] = field(default_factory=dict)


def is_ours(job: Whole) -> bool:
    """Whether the job controller of Kubernetes manages a job, and no other controller."""
    return (job.spec.get("managedBy") or "") in _OURS


def makes_pods(job: Whole) -> bool:
    """Whether a job that has not ended gets pods from the controller of Kubernetes now."""
    return is_ours(job) and not job.spec.get("suspend")


def finished(job: Whole) -> bool:
    """Whether a job is over and its status is complete."""
    return any(
        each.get("type") in (COMPLETE, FAILED) and each.get("status") == "True"
        for each in job.status.get("conditions") or []
    )


def interim(job: Whole) -> JobEnd | None:
    """Return the end of a job that still has pods to remove."""
    for each in job.status.get("conditions") or []:
        kind = _INTERIM.get(each.get("type", ""))
        if kind is not None and each.get("status") == "True":
            return JobEnd(kind, each.get("reason", ""), each.get("message", ""))
    return None


def tally(job: Whole, pods: Sequence[Pod]) -> Tally:
    """Count the pods of a job."""
    status = job.status
    result = Tally(
        active=[pod for pod in pods if is_active(pod)],
        terminating=[
            pod for pod in pods if pod.metadata.deletion_timestamp and not is_finished(pod)
        ],
        counted_succeeded=int(status.get("succeeded") or 0),
        counted_failed=int(status.get("failed") or 0),
    )
    noted = status.get("uncountedTerminatedPods") or {}
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    for uid in noted.get("succeeded") or []:
        if uid in tracked:
            result.noted_succeeded.append(uid)
        else:
            result.counted_succeeded += 1
    for uid in noted.get("failed") or []:
        if uid in tracked:
            result.noted_failed.append(uid)
        else:
            result.counted_failed += 1
    if is_indexed(job):
        result.indexes = read_indexes(status.get("completedIndexes"), completions(job) or 0)
    _count_indexes(job, pods, result)
    waiting = {pod.metadata.uid for pod in result.unreplaced.values()}
    for pod in pods:
        noted = is_tracked(pod) and pod.metadata.uid not in waiting
        if noted and len(result.to_release) < _NOTED_MAX:
            _note(job, pod, result)
    result.succeeded = result.counted_succeeded + len(result.noted_succeeded)
    result.failed = result.counted_failed + len(result.noted_failed)
    if is_indexed(job):
        result.succeeded = result.counted_succeeded = len(result.indexes)
    return result


def _count_indexes(job: Whole, pods: Sequence[Pod], tally: Tally) -> None:
    """Find the indexes that are given up, and the failed pods that wait for a replacement."""
    if not fails_by_index(job):
        return
    failed = [pod for pod in pods if is_tracked(pod) and _is_failed(job, pod)]
    tally.failed_indexes = failed_indexes(job, failed)
    if interim(job) is not None or job.metadata.deletion_timestamp is not None:
        return
    held = [index_of(pod) for pod in (*tally.active, *tally.terminating)]
    ended = [index_of(pod) for pod in pods if pod.status.phase == "Succeeded"]
    replaced = {each for each in (*held, *ended) if each is not None}
    tally.unreplaced = unreplaced(failed, replaced | tally.indexes | tally.failed_indexes)


def _note(job: Whole, pod: Pod, tally: Tally) -> None:
    """Note a pod if it has ended."""
    uid = pod.metadata.uid
    if pod.status.phase == "Succeeded":
        tally.to_release.append(pod)
        if is_indexed(job):
            index = index_of(pod)
            if index is not None and index < (completions(job) or 0):
                tally.new_success |= index not in tally.indexes
                tally.indexes.add(index)
        elif uid not in tally.noted_succeeded:
            tally.noted_succeeded.append(uid)
            tally.new_success = True
    elif _is_failed(job, pod):
        tally.to_release.append(pod)
        if uid not in tally.noted_failed:
            action, why = failure_action(job, pod)
            if action == "FailJob" and not tally.policy_failure:
                tally.policy_failure = why
            if action != "Ignore":
                tally.noted_failed.append(uid)
                tally.new_failures.append(pod)


def _is_failed(job: Whole, pod: Pod) -> bool:
    """Whether a pod counts as failed; a deleted pod does, unless only ended pods count."""
    if pod.status.phase == "Failed":
        return True
    return pod.metadata.deletion_timestamp is not None and not replaces_failed_only(job)


def replaces_failed_only(job: Whole) -> bool:
    """Whether a pod is replaced only when it has ended."""
    return job.spec.get("podReplacementPolicy") == "Failed"


def completions(job: Whole) -> int | None:
    """Return how many pods must succeed; None where one success ends the job."""
    value = job.spec.get("completions")
    return None if value is None else int(value)


def end_of(job: Whole, tally: Tally, now_ns: int) -> JobEnd | None:
    """Return how a job ends, None if it goes on."""
    known = interim(job)
    if known is not None:
        return known
    if tally.policy_failure:
        return JobEnd(FAILED, "PodFailurePolicy", tally.policy_failure)
    limit = int(job.spec.get("backoffLimit") or 0)
    if tally.failed > limit or _restarted_too_often(job, tally, limit):
        text = "Job has reached the specified backoff limit"
        return JobEnd(FAILED, "BackoffLimitExceeded", text)
    left = deadline_in(job, now_ns)
    if left is not None and left <= 0:
        text = "Job was active longer than specified deadline"
        return JobEnd(FAILED, "DeadlineExceeded", text)
    return _end_by_indexes(job, tally) or _end_by_completions(job, tally)


def _end_by_indexes(job: Whole, tally: Tally) -> JobEnd | None:
    given_up, most = len(tally.failed_indexes), job.spec.get("maxFailedIndexes")
    if most is not None and given_up > int(most):
        text = "Job has exceeded the specified maximal number of failed indexes"
        return JobEnd(FAILED, "MaxFailedIndexesExceeded", text)
    if given_up and given_up + tally.succeeded >= (completions(job) or 0):
        return JobEnd(FAILED, "FailedIndexes", "Job has failed indexes")
    rule = success_rule(job, tally.indexes)
    if rule is not None:
        return JobEnd(COMPLETE, "SuccessPolicy", f"Matched rules at index {rule}")
    return None


def _end_by_completions(job: Whole, tally: Tally) -> JobEnd | None:
    needed = completions(job)
    if needed is None:
        done = tally.succeeded > 0 and not tally.active
    else:
        done = tally.succeeded >= needed and not (needed == 0 and tally.active)
    if done:
        text = "Reached expected number of succeeded pods"
        return JobEnd(COMPLETE, "CompletionsReached", text)
    return None


def _restarted_too_often(job: Whole, tally: Tally, limit: int) -> bool:
    template = (job.spec.get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") != "OnFailure":
        return False
    total = sum(restarts(pod) for pod in tally.active)
    return total > 0 if limit == 0 else total >= limit


def deadline_in(job: Whole, now_ns: int) -> float | None:
    """Return the seconds until a job has been active for too long; None without a deadline."""
    seconds = job.spec.get("activeDeadlineSeconds")
    start = job.status.get("startTime")
    if seconds is None or not start or job.spec.get("suspend"):
        return None
    return (time_ns(start) - now_ns) / NS_PER_SECOND + int(seconds)


def ttl_in(job: Whole, now_ns: int) -> float | None:
    """Return the seconds until a finished job is deleted; None if it is kept."""
    seconds = job.spec.get("ttlSecondsAfterFinished")
    ends = [
        time_ns(each.get("lastTransitionTime"))
        for each in job.status.get("conditions") or []
        if each.get("type") in (COMPLETE, FAILED) and each.get("status") == "True"
    ]
    if seconds is None or not ends:
        return None
    return (ends[0] - now_ns) / NS_PER_SECOND + int(seconds)


def wanted_active(job: Whole, tally: Tally) -> int:
    """Return how many pods should be active."""
    parallelism = int(job.spec.get("parallelism") or 0)
    needed = completions(job)
    if needed is None:
        return len(tally.active) if tally.succeeded else parallelism
    return max(0, min(needed - tally.succeeded - len(tally.failed_indexes), parallelism))


def missing(job: Whole, tally: Tally) -> int:
    """Return the number of pods to create; negative for pods to delete."""
    wanted = wanted_active(job, tally)
    surplus = len(tally.active) - wanted
    if surplus > 0:
        return -surplus
    replaced = len(tally.terminating) if replaces_failed_only(job) else 0
    return max(0, wanted - len(tally.active) - replaced)


def superfluous(job: Whole, active: Sequence[Pod], *, at_least: int, now_ns: int) -> list[Pod]:
    """Return the active pods to delete: at least a number, and every one that no index needs.

    Notes
    -----
    kubernetes v1.36 pkg/controller/job/indexed_job_utils.go, appendDuplicatedIndexPodsForRemoval:
    pods without an index, with an index that is too large, and all but the best of each index.
    """
    gone: list[Pod] = []
    left = deletion_order(active, rank={}, now_ns=now_ns)
    if is_indexed(job):
        # The last one of each index is the best one.
        best = {index_of(pod): pod.uid for pod in left}
        end = completions(job) or 0
        needed = {uid for index, uid in best.items() if index is not None and index < end}
        gone = [pod for pod in left if pod.uid not in needed]
        left = [pod for pod in left if pod.uid in needed]
    return [*gone, *left[: max(0, at_least - len(gone))]]


# --- the status -----------------------------------------------------------------------------------


def counts(job: Whole, tally: Tally) -> Json:
    """Return the counts in a job's status; None for a field that is left out."""
    status: Json = {
        "active": len(tally.active) or None,
        "ready": sum(is_ready(pod) for pod in tally.active),
        "terminating": len(tally.terminating),
        "succeeded": tally.counted_succeeded or None,
        "failed": tally.counted_failed or None,
        "uncountedTerminatedPods": {
            "succeeded": tally.noted_succeeded or None,
            "failed": tally.noted_failed or None,
        },
    }
    return status


def with_condition(
    conditions: Sequence[Json], kind: str, said: tuple[str, str, str], now_ns: int
) -> list[Json]:
    """Return conditions with one condition set; an equal condition keeps its times."""
    status, reason, message = said
    found = next((each for each in conditions if each.get("type") == kind), None)
    if found is not None and (found.get("status"), found.get("reason")) == (status, reason):
        return list(conditions)
    now = rfc3339(now_ns)
    new = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }
    return [*(each for each in conditions if each.get("type") != kind), new]
