"""The pods that a job creates next.

Rules: kubernetes v1.36 pkg/controller/job/job_controller.go (manageJob).
"""

from __future__ import annotations

from collections.abc import Collection

from moorage.workloads.jobs.job_indexes import counts_after, replaced_in
from moorage.workloads.jobs.job_pods import free_indexes, index_of, is_indexed, job_pod
from moorage.workloads.jobs.job_steps import Tally, replaces_failed_only
from moorage.workloads.objects import Json, Whole


def pod_bodies(job: Whole, tally: Tally, number: int) -> list[Json]:
    """Return so many new pods, those of the smallest free indexes where a job has indexes."""
    if not is_indexed(job):
        return [job_pod(job, None) for _ in range(number)]
    return [job_pod(job, index) for index in _free_indexes(job, tally, (), number)]


def index_bodies(job: Whole, tally: Tally, number: int, now_ns: int) -> tuple[list[Json], float]:
    """Return new pods of a job whose indexes fail on their own.

    Returns
    -------
    tuple
        At most so many pods, of the indexes whose pause is over; and the shortest pause that is
        left, seconds, 0 without one.
    """
    pauses = {index: replaced_in(pod, now_ns) for index, pod in tally.unreplaced.items()}
    left = {index: pause for index, pause in pauses.items() if pause > 0}
    bodies = [
        job_pod(job, index, annotations=counts_after(job, tally.unreplaced.get(index)))
        for index in _free_indexes(job, tally, left, number)
    ]
    return bodies, min(left.values(), default=0.0)


def _free_indexes(job: Whole, tally: Tally, pausing: Collection[int], number: int) -> list[int]:
    """Return the indexes that get a pod now; indexes in a retry pause are left out."""
    held = [index_of(pod) for pod in tally.active]
    if replaces_failed_only(job):
        held += [index_of(pod) for pod in tally.terminating]
    taken = tally.indexes | {each for each in held if each is not None}
    return free_indexes(job, taken | tally.failed_indexes | set(pausing), number)
