"""Jobs of many sizes arriving at random, over HTTPS: no group ever holds too little.

What is looked at after every attempt and at every binding, and how long a job may wait in virtual
time, is told in ``tests/bench/test_gang_arrivals.py``.
"""

from __future__ import annotations

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.bench.gang_arrivals import ArrivalRun, plan
from tests.stories.over_https import OverHttps, run_scaled


class ArrivalsOverHttps(ArrivalRun):
    """The same run with real sockets, in a time that runs faster than the machine may follow."""

    idle_seconds_max = float("inf")

    def _run(self) -> None:
        run_scaled(lambda clock: self._play(clock, OverHttps))


def test_all_or_none_holds_nothing_in_vain_and_ends_every_job():
    jobs = plan(Streams(3), jobs=12, largest=16, every_seconds=0.4)
    result = ArrivalsOverHttps(jobs, nodes=6, mode="trial", watch=SystemClock()).run()
    assert (result.done, result.stuck) == (12, 0)
    assert result.checks > sum(job.size for job in jobs)
