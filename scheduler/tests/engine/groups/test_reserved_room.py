"""Room held back for a group: the group never starts later than if nobody passed it.

The workloads have exact run times, so the moment at which a group starts without backfill is known
when room is first held for it. `backfill_workload.py` computes it by adding up cpus.
"""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from scheduler.tests.engine.groups.backfill_workload import Result, Way, Workload, draw

AFTER_SECONDS = 5


def played(seed: int, way: Way, *, jobs: int) -> Result:
    rng = Streams(seed).stream("backfill")
    nodes, made = draw(rng, jobs=jobs)
    return Workload(nodes, made, way, after_seconds=AFTER_SECONDS, rng=rng).run()


def test_a_head_never_starts_later_than_without_backfill():
    results = [played(seed, "backfill", jobs=12) for seed in range(60)]
    assert sum(result.heads for result in results) > 60


@pytest.mark.large
@pytest.mark.timeout(7200)
def test_nor_in_ten_thousand_workloads():
    heads = sum(played(seed, "backfill", jobs=12).heads for seed in range(10_000))
    assert heads > 5000
