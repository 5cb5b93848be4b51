"""Jobs of many sizes arriving at random: promises hold after every decision, and all jobs end."""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from moorage.bench.gang_arrivals import ArrivalRun, as_lines, plan


@pytest.mark.parametrize("seed", [2, 3])
def test_all_or_none_holds_nothing_in_vain_and_ends_every_job(seed: int):
    jobs = plan(Streams(seed), jobs=6, largest=12, every_seconds=1.0)
    result = ArrivalRun(jobs, nodes=3, mode="trial").run()
    assert (result.done, result.stuck) == (6, 0)
    assert result.checks >= sum(job.size for job in jobs), "looked at for every binding"
    assert result.held_in_vain == 0


def test_without_groups_jobs_that_want_the_same_room_stop_each_other_for_good():
    jobs = plan(Streams(1), jobs=12, largest=12, every_seconds=1.0)
    alone = ArrivalRun(jobs, nodes=3, mode="default").run()
    assert alone.stuck > 0
    assert alone.held_in_vain > 0.5
    first, second, default = as_lines([alone], nodes=3, jobs=12)
    assert first == "12 jobs on 3 nodes with room for 8 pods each, virtual time"
    assert second.split() == ["done", "stuck", "makespan", "utilisation", "held", "in", "vain"]
    assert default.split()[:3] == ["default", str(alone.done), str(alone.stuck)]
