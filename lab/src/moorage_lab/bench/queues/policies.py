"""The policies of job queues: the order of waiting jobs, and what a job must leave free.

Rules: Tang et al. 2009 (WFP3, UNICEP), Carastan-Santos and de Camargo, SC '17 (F1), both as Zhang
et al. (RLScheduler, SC '20) compare them. ``Headroom`` is our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from moorage_lab.traces.jobs.swf import Job

Rank = Callable[[Job, float], float | tuple[float, ...]]
"""Rank of a job at a time in seconds: the smallest starts first; of equal ones, the earlier job."""

HEADROOM: Final = "Headroom"
HEADROOM_SHARE: Final = 0.75
"""Chosen on the two published traces and on drawn ones of seeds 1 to 6 and 101 to 110."""
_HEADROOM_FROM_SECONDS: Final = 60.0
_HEADROOM_TO_SECONDS: Final = 36_000.0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy.

    Parameters
    ----------
    name, about
        Its name in tables, and a line for people.
    rank
        The order of waiting jobs.
    headroom
        Share of the machine that stays free when a job starts; None if nothing has to.
    """

    name: str
    about: str
    rank: Rank
    headroom: Callable[[Job], float] | None = None

    def room(self, job: Job, processors: int) -> float:
        """Return the processors that have to be free for a job to start on a machine."""
        if self.headroom is None:
            return job.processors
        return min(processors, job.processors + self.headroom(job) * processors)


def _wfp3(job: Job, now: float) -> float:
    return float(-(((now - job.submit) / job.requested) ** 3) * job.processors)


def _unicep(job: Job, now: float) -> float:
    # 1e-15 keeps a job of one processor from a division by 0, as published.
    width = math.log2(job.processors + 1e-15) * job.requested
    return -((now - job.submit) + 1e-15) / width


def _f1(job: Job, now: float) -> float:
    del now
    width = math.log10(job.requested) * job.processors
    return width + 870 * math.log10(max(job.submit, 1))


def _area(job: Job, now: float) -> float:
    del now
    return job.requested * job.processors


def headroom_policy(share: float) -> Policy:
    """Return our policy: smallest area first, where long jobs leave part of the machine free.

    A job leaves nothing free up to a minute of requested time, `share` of the machine from ten
    hours on, and in between in proportion to the logarithm. No job is stopped for another one, so
    the slowdown of a short job depends on how much of the machine long jobs have when it comes. A
    job that would leave less than nothing starts when it has the machine alone.

    Parameters
    ----------
    share
        0 for smallest area first alone. More of it is better for short jobs, and uses less of the
        machine.
    """
    span = math.log(_HEADROOM_TO_SECONDS / _HEADROOM_FROM_SECONDS)

    def headroom(job: Job) -> float:
        grade = math.log(job.requested / _HEADROOM_FROM_SECONDS) / span
        return share * min(1.0, max(0.0, grade))

    return Policy(
        name=HEADROOM,
        about="SAF, where long jobs leave part of the machine free",
        rank=_area,
        headroom=headroom,
    )


POLICIES: Final = {
    each.name: each
    for each in (
        Policy(
            name="FCFS",
            about="first come, first served",
            rank=lambda job, now: job.submit,
        ),
        Policy(
            name="WFP3",
            about="waiting time by requested time, cubed, times processors",
            rank=_wfp3,
        ),
        Policy(
            name="UNICEP",
            about="waiting time by requested time and log of processors",
            rank=_unicep,
        ),
        Policy(
            name="SJF",
            about="shortest requested time first",
            rank=lambda job, now: (job.requested, job.submit),
        ),
        Policy(
            name="F1",
            about="a formula that was fitted to simulations",
            rank=_f1,
        ),
        Policy(
            name="SAF",
            about="smallest area first: requested time times processors",
            rank=_area,
        ),
        headroom_policy(HEADROOM_SHARE),
    )
}
