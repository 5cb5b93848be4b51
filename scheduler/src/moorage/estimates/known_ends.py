"""The known end of a pod, as far as the pod and its Job say.

Three fields give an end: ``spec.activeDeadlineSeconds`` of the pod, ``spec.activeDeadlineSeconds``
of the Job that owns the pod, and the annotation ``moorage.dev/run-seconds``. The earliest end
counts. The annotation gives no end to a pod with ``restartPolicy: Always``, nor does an annotation
that is no finite number of at least 0.
"""

from __future__ import annotations

import math
from typing import Final

from moorage.api.pod import Pod
from moorage.api.workloads import Job
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339

RUN_SECONDS: Final = "moorage.dev/run-seconds"
ENDING_POLICIES: Final = ("Never", "OnFailure")
"""The restart policies of pods that end by themselves."""


def known_end_ns(pod: Pod, job: Job | None, *, now_ns: int) -> int | None:
    """Return when a pod ends, wall-clock nanoseconds; None if no field gives an end.

    Parameters
    ----------
    pod
        A running pod, or a pod that would start now.
    job
        The Job that owns the pod; None without a Job.
    now_ns
        The present, wall-clock nanoseconds: the assumed start of a pod or Job without a start time.
    """
    started_ns = _time_ns(pod.status.start_time, now_ns)
    ends = [started_ns + round(seconds * NS_PER_SECOND) for seconds in _durations(pod)]
    if job is not None and job.spec.active_deadline_seconds is not None:
        began_ns = _time_ns(job.status.start_time, now_ns)
        ends.append(began_ns + job.spec.active_deadline_seconds * NS_PER_SECOND)
    return min(ends, default=None)


def declared_seconds(pod: Pod) -> float | None:
    """Return the run time that the annotation of a pod gives; None without one that counts."""
    text = pod.metadata.annotations.get(RUN_SECONDS, "")
    if not text or pod.spec.restart_policy not in ENDING_POLICIES:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds >= 0 and math.isfinite(seconds) else None


def deadline_seconds(pod: Pod, job: Job | None, *, now_ns: int) -> float:
    """Return after how many seconds of its run time a deadline ends a pod; infinite for never."""
    started_ns = _time_ns(pod.status.start_time, now_ns)
    deadlines = [math.inf]
    if pod.spec.active_deadline_seconds is not None:
        deadlines.append(float(pod.spec.active_deadline_seconds))
    if job is not None and job.spec.active_deadline_seconds is not None:
        began_ns = _time_ns(job.status.start_time, now_ns)
        before = (started_ns - began_ns) / NS_PER_SECOND
        deadlines.append(max(0.0, job.spec.active_deadline_seconds - before))
    return min(deadlines)


def elapsed_seconds(pod: Pod, *, now_ns: int) -> float:
    """Return how long a pod has run; 0 where no start is known, or it lies ahead."""
    return max(0.0, (now_ns - _time_ns(pod.status.start_time, now_ns)) / NS_PER_SECOND)


def _durations(pod: Pod) -> list[float]:
    """Return the seconds that the pod's own fields give it."""
    durations: list[float] = []
    if pod.spec.active_deadline_seconds is not None:
        durations.append(pod.spec.active_deadline_seconds)
    seconds = declared_seconds(pod)
    if seconds is not None:
        durations.append(seconds)
    return durations


def _time_ns(text: str | None, default_ns: int) -> int:
    if not text:
        return default_ns
    try:
        return parse_rfc3339(text)
    except ValueError:
        return default_ns
