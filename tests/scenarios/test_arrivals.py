"""Jobs of many sizes arriving at random, over HTTPS: no group ever holds too little.

What is looked at after every attempt and at every binding, and how long a job may wait in virtual
time, is told in ``lab/tests/bench/gangs/test_arrivals.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage_lab.bench.gangs.arrivals import ArrivalRun, Job, plan
from tests.scenarios.over_https import OverHttps, run_scaled


class ArrivalsOverHttps(ArrivalRun):
    """The same run with real sockets, in a time that runs faster than the machine may follow."""

    idle_seconds_max = float("inf")

    def __init__(self, jobs: Sequence[Job], *, nodes: int, speed: float) -> None:
        super().__init__(jobs, nodes=nodes, mode="trial", watch=SystemClock())
        self._speed = speed

    def _run(self) -> None:
        run_scaled(lambda clock: self._play(clock, OverHttps), speed=self._speed)


@pytest.mark.parametrize(
    ("number", "largest", "nodes", "speed"),
    [
        pytest.param(
            *(12, 16, 6, 30),
            id="twelve jobs that come faster than they end",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(200, 64, 500, 2),
            id="two hundred jobs on five hundred nodes",
            # Leases of so many nodes leave no time for a faster clock.
            marks=[pytest.mark.large, pytest.mark.timeout(1200)],
        ),
    ],
)
def test_all_or_none_holds_nothing_in_vain_and_ends_every_job(
    number: int, largest: int, nodes: int, speed: float
):
    jobs = plan(Streams(1), jobs=number, largest=largest, every_seconds=0.2)
    result = ArrivalsOverHttps(jobs, nodes=nodes, speed=speed).run()
    assert (result.done, result.stuck) == (number, 0)
    assert result.checks > sum(job.size for job in jobs)
