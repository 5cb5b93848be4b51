"""Small traces of our own, in the text format of the Parallel Workloads Archive."""

from __future__ import annotations

from collections.abc import Sequence

from moorage_lab.bench.queues.lublin import lublin_jobs
from moorage_lab.traces.jobs.swf import Job

HEADER = "; Version: 2.2\n; MaxProcs: 16\n"


def line_of(job: Job) -> str:
    """Return the line of a job; its requested time is left open where it is the run time."""
    requested = -1 if job.requested == job.run else job.requested
    fields = [job.number, job.submit, -1, job.run, job.processors, -1, -1, -1, requested]
    return " ".join(map(str, [*fields, -1, 1, job.user, *[-1] * 6]))


def text_of(jobs: Sequence[Job], header: str = HEADER) -> str:
    """Return a trace as text."""
    return header + "\n".join(map(line_of, jobs)) + "\n"


def small_trace(jobs: int = 200) -> list[Job]:
    """Return a busy trace for 16 processors, drawn with a seed of its own."""
    drawn = lublin_jobs("two", 7, jobs=jobs, processors=16)
    return [
        Job(each.number, each.submit // 4, each.run, each.processors, each.run) for each in drawn
    ]
