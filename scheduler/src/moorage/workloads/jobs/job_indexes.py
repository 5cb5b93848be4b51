"""Indexes of jobs that fail on their own, and jobs that need only some of their indexes.

Place in the flow: `job_steps` asks here while it counts; `job` asks how long the replacement of a
failed pod has to wait. A failed pod keeps its finalizer until it is replaced, because the pod
records how often its index has failed.

Rules: kubernetes v1.36 pkg/controller/job/{indexed_job_utils,success_policy,backoff_utils}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.workloads.jobs.job_pods import failure_action, index_of, is_indexed, read_indexes
from moorage.workloads.objects import Whole
from moorage.workloads.pods import time_ns

FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
"""Annotation of a pod: how many pods of the index failed before."""
IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotation of a pod: how many failures the policy ignored before."""
_BACKOFF_SECONDS: Final = 10.0
_BACKOFF_SECONDS_MAX: Final = 600.0


def fails_by_index(job: Whole) -> bool:
    """Whether each index of a job has a limit of failures of its own."""
    return is_indexed(job) and job.spec.get("backoffLimitPerIndex") is not None


def backoff_seconds(failures: int) -> float:
    """Return the pause after so many failures in a row, seconds; 0 without a failure."""
    # 2**16 * 10 s is beyond the limit already.
    pause: float = _BACKOFF_SECONDS * 2 ** min(failures - 1, 16) if failures else 0.0
    return min(pause, _BACKOFF_SECONDS_MAX)


def failed_indexes(job: Whole, failed: Iterable[Pod]) -> set[int]:
    """Return the indexes that are given up.

    Parameters
    ----------
    job
        The job, with the indexes its status names.
    failed
        Failed pods that have not been counted yet.
    """
    if not fails_by_index(job):
        return set()
    indexes = read_indexes(job.status.get("failedIndexes"), _completions(job))
    for pod in failed:
        index = index_of(pod)
        if index is not None and index < _completions(job) and _gives_up(job, pod):
            indexes.add(index)
    return indexes


def _gives_up(job: Whole, pod: Pod) -> bool:
    action, _ = failure_action(job, pod)
    if action in ("FailIndex", "Ignore"):
        return action == "FailIndex"
    return _count(pod, FAILURES) >= int(job.spec["backoffLimitPerIndex"])


def unreplaced(failed: Iterable[Pod], replaced: Iterable[int]) -> dict[int, Pod]:
    """Return the last failed pod of each index that waits for a replacement.

    Parameters
    ----------
    failed
        Failed pods that have not been counted yet.
    replaced
        Indexes that have another pod, have succeeded or are given up.
    """
    done = set(replaced)
    last: dict[int, Pod] = {}
    for pod in failed:
        index = index_of(pod)
        if index is None or index in done:
            continue
        if index not in last or _total(pod) > _total(last[index]):
            last[index] = pod
    return last


def counts_after(job: Whole, pod: Pod | None) -> dict[str, str]:
    """Return the annotations of the pod that replaces a failed one; None for a first pod."""
    failures, ignored = (0, 0) if pod is None else (_count(pod, FAILURES), _count(pod, IGNORED))
    if pod is not None:
        is_ignored = failure_action(job, pod)[0] == "Ignore"
        failures, ignored = failures + (not is_ignored), ignored + is_ignored
    return {FAILURES: str(failures)} | ({IGNORED: str(ignored)} if ignored else {})


def replaced_in(pod: Pod, now_ns: int) -> float:
    """Return the seconds until a failed pod may be replaced; not positive when it may be now."""
    pause = backoff_seconds(_total(pod) + 1)
    return pause - (now_ns - _ended_ns(pod)) / NS_PER_SECOND


def _ended_ns(pod: Pod) -> int:
    """Return when a pod ended: its last container, else its deletion, else its creation."""
    ended = [
        time_ns(each.state.terminated.finished_at)
        for each in pod.status.container_statuses
        if each.state is not None and each.state.terminated is not None
    ]
    meta = pod.metadata
    return max(ended, default=0) or time_ns(meta.deletion_timestamp or meta.creation_timestamp)


def _total(pod: Pod) -> int:
    return _count(pod, FAILURES) + _count(pod, IGNORED)


def _count(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else 0


def _completions(job: Whole) -> int:
    return int(job.spec.get("completions") or 0)


def success_rule(job: Whole, succeeded: set[int]) -> int | None:
    """Return the number of the first rule of the success policy that is met; None for no rule."""
    rules: Sequence[dict[str, object]] = (job.spec.get("successPolicy") or {}).get("rules") or []
    for number, rule in enumerate(rules):
        named = rule.get("succeededIndexes")
        asked = read_indexes(str(named), _completions(job)) if named is not None else None
        met = succeeded if asked is None else succeeded & asked
        needed = rule.get("succeededCount")
        if needed is None and asked is not None:
            needed = len(asked)
        if isinstance(needed, int) and len(met) >= needed:
            return number
    return None
