"""Plays a sample with a new head at each arrival and each end: the best job of that moment.

Backfill is EASY: a job behind the head starts if it ends before the head can start, or if it leaves
the head what it needs then.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence

from moorage_lab.bench.queues.policies import Policy
from moorage_lab.bench.queues.schedule import Start
from moorage_lab.traces.jobs.swf import Job


def play_fresh(jobs: Sequence[Job], policy: Policy, *, processors: int, easy: bool) -> list[Start]:
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
    machine = _Machine(processors, policy)
    coming = sorted(jobs, key=lambda job: job.submit)
    position = 0
    while position < len(coming) or machine.queue:
        arrival = coming[position].submit if position < len(coming) else float("inf")
        machine.advance(min(arrival, machine.next_end()))
        while position < len(coming) and coming[position].submit <= machine.now:
            machine.queue.append(coming[position])
            position += 1
        machine.start_heads()
        if easy and machine.queue and machine.free:
            machine.start_behind()
    return machine.starts


class _Machine:
    """The machine: its waiting and running jobs, and the time."""

    def __init__(self, processors: int, policy: Policy) -> None:
        self._processors = processors
        self._policy = policy
        self._running: list[tuple[float, int, Start]] = []
        self._requested_ends: list[tuple[float, int, int]] = []
        self.queue: list[Job] = []
        self.now = 0.0
        self.free = processors
        self.starts: list[Start] = []

    def next_end(self) -> float:
        """Return when the first of the running jobs ends."""
        return self._running[0][0] if self._running else float("inf")

    def advance(self, now: float) -> None:
        """Let the time come, and release the jobs that end by then."""
        self.now = now
        while self.next_end() <= now:
            _, number, start = heapq.heappop(self._running)
            self.free += start.job.processors
            self._requested_ends.remove(
                (start.at + start.job.requested, number, start.job.processors)
            )

    def start_heads(self) -> None:
        """Start the best job as long as it fits."""
        self.queue.sort(key=lambda job: self._policy.rank(job, self.now))
        while self.queue and self._room(self.queue[0]) <= self.free:
            self._start(self.queue.pop(0))

    def start_behind(self) -> None:
        """Start jobs behind the head that do not delay it, best first."""
        head, *others = self.queue
        at, spare = self._head_start(head)
        self.queue = [head]
        for job in others:
            in_time = self.now + job.requested <= at
            if self._room(job) > self.free or not (in_time or job.processors <= spare):
                self.queue.append(job)
                continue
            spare -= 0 if in_time else job.processors
            self._start(job)

    def _room(self, job: Job) -> float:
        return self._policy.room(job, self._processors)

    def _start(self, job: Job) -> None:
        start = Start(job, self.now)
        number = len(self.starts)
        self.starts.append(start)
        self.free -= job.processors
        heapq.heappush(self._running, (self.now + job.run, number, start))
        insort(self._requested_ends, (self.now + job.requested, number, job.processors))

    def _head_start(self, head: Job) -> tuple[float, float]:
        """Return when the head fits by requested times, and what it leaves free then."""
        room, free = self._room(head), self.free
        at = float("inf")
        for end, _, processors in self._requested_ends:
            if end > at:
                break
            free += processors
            if free >= room:
                at = end
        return at, free - room
