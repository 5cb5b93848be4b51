"""Plays a sample as the published experiments do: a head is chosen once and stays until it starts.

Rules: HPCSimPickJobs of DIR-LAB/deep-batch-scheduler (RLScheduler, SC '20). It differs from EASY:
the head's start is estimated once, jobs that end later may not start on processors that the head
does not need, and equal ends are released in the order of an earlier sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage_lab.bench.queues.policies import Policy
from moorage_lab.bench.queues.schedule import Start
from moorage_lab.traces.jobs.swf import Job

_PUBLISHED_NOW: Final = -1.0
"""The time by which a policy reckons how long a job has waited. The published program reads the
start of a job that waits, which is -1, as the present."""


def play_sticky(jobs: Sequence[Job], policy: Policy, *, processors: int, easy: bool) -> list[Start]:
    """Return when each job starts, in the order of their starts.

    Parameters
    ----------
    jobs
        In the order in which they come; none is wider than the machine.
    processors
        Processors of the machine.
    easy
        Whether jobs behind the head may start while it waits.
    """
    machine = _Machine(jobs, processors)
    while machine.queue:
        machine.queue.sort(key=lambda job: policy.rank(job, _PUBLISHED_NOW))
        head = machine.queue[0]
        if easy and head.processors > machine.free:
            _fill_until_fit(machine, head)
        while head.processors > machine.free:
            machine.step()
        machine.start(head)
        while not machine.queue and machine.comes():
            machine.step()
    return machine.starts


def _fill_until_fit(machine: _Machine, head: Job) -> None:
    """Start jobs that end before the head can start, until it fits."""
    estimate = machine.estimated_start(head)
    while head.processors > machine.free:
        machine.queue.sort(key=lambda job: job.submit)
        for job in list(machine.queue):
            if job.processors <= machine.free and machine.now + job.requested < estimate:
                machine.start(job)
        machine.step()


class _Machine:
    """The machine: its waiting and running jobs, and the time."""

    def __init__(self, jobs: Sequence[Job], processors: int) -> None:
        self._jobs = jobs
        self._next = 1
        self._running: list[Start] = []
        self.queue = [jobs[0]]
        self.now = jobs[0].submit
        self.free = processors
        self.starts: list[Start] = []

    def comes(self) -> bool:
        """Whether a job is still to come."""
        return self._next < len(self._jobs)

    def start(self, job: Job) -> None:
        """Start a job of the queue now."""
        self.queue.remove(job)
        self.free -= job.processors
        start = Start(job, self.now)
        self._running.append(start)
        self.starts.append(start)

    def estimated_start(self, head: Job) -> float:
        """Return the requested end after which enough is free for a job; the sort stays."""
        self._running.sort(key=lambda start: start.at + start.job.requested)
        free, estimate = self.free, self.now
        for start in self._running:
            free += start.job.processors
            estimate = start.at + start.job.requested
            if free >= head.processors:
                break
        return estimate

    def step(self) -> None:
        """Let the next job come, or the first of the running jobs end."""
        self._running.sort(key=lambda start: start.at + start.job.run)
        first = self._running[0] if self._running else None
        end = float("inf") if first is None else first.at + first.job.run
        if self.comes() and self._jobs[self._next].submit <= end:
            job = self._jobs[self._next]
            self._next += 1
            self.queue.append(job)
            self.now = max(self.now, job.submit)
        else:
            assert first is not None, "a job that fits the machine waits for nothing"
            del self._running[0]
            self.free += first.job.processors
            self.now = max(self.now, end)
