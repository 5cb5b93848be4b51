"""When each job of a sample started, and the figures of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage_lab.traces.jobs.figures import bounded_slowdown
from moorage_lab.traces.jobs.swf import Job


class Start(msgspec.Struct, frozen=True):
    """A job, and the second at which it started."""

    job: Job
    at: float

    @property
    def wait(self) -> float:
        """Seconds that the job waited."""
        return self.at - self.job.submit

    @property
    def slowdown(self) -> float:
        """The bounded slowdown of the job."""
        return bounded_slowdown(self.wait + self.job.run, self.job.run)


def mean_slowdown(starts: Sequence[Start]) -> float:
    """Return the average bounded slowdown, summed in the order of the jobs."""
    ordered = sorted(starts, key=lambda start: start.job.number)
    return sum(start.slowdown for start in ordered) / len(ordered)


def utilisation(starts: Sequence[Start], processors: int) -> float:
    """Return the share of the machine that jobs had, from the first submit to the last start."""
    begin = min(start.job.submit for start in starts)
    span = max(start.at for start in starts) - begin
    used = sum(start.job.run * start.job.processors for start in starts)
    return used / (span * processors) if span else 0.0
