"""The model of Lublin and Feitelson: statistics of draws, against the numbers of the model."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

import pytest

from moorage_lab.bench.queues.lublin import (
    INTERACTIVE,
    ONE_KIND,
    daily_cycle,
    gamma_below,
    lublin_jobs,
)
from moorage_lab.traces.jobs.swf import Job


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return lublin_jobs("one", 11, jobs=20_000, processors=256)


def test_the_same_seed_draws_the_same_jobs() -> None:
    first, second = (lublin_jobs("two", 3, jobs=300, processors=64) for _ in range(2))
    assert first == second != lublin_jobs("two", 4, jobs=300, processors=64)


def test_sizes_follow_the_two_stages(jobs: list[Job]) -> None:
    sizes = [job.processors for job in jobs]
    assert max(sizes) == 256
    assert fmean(size == 1 for size in sizes) == pytest.approx(ONE_KIND.serial, abs=0.02)
    parallel = [math.log2(size) for size in sizes if size > 1]
    # Uniform between 0.8 and 5.5 for 86 %, between 5.5 and 8 for the rest.
    assert fmean(parallel) == pytest.approx(0.86 * 3.15 + 0.14 * 6.75, abs=0.06)
    assert fmean(value >= 5.5 for value in parallel) == pytest.approx(0.16, abs=0.03)


def test_run_times_follow_the_two_gammas(jobs: list[Job]) -> None:
    long = fmean(job.run > math.exp(7.5) for job in jobs)
    share = 1 - fmean(ONE_KIND.short_slope * job.processors + ONE_KIND.short_share for job in jobs)
    beyond = 1 - gamma_below(7.5, *ONE_KIND.short)
    assert long == pytest.approx(share + (1 - share) * beyond, abs=0.02)
    assert max(job.run for job in jobs) <= math.exp(12)


def test_wide_jobs_run_longer(jobs: list[Job]) -> None:
    wide = fmean(math.log(job.run) for job in jobs if job.processors > 64)
    narrow = fmean(math.log(job.run) for job in jobs if job.processors == 1)
    assert wide > narrow + 1


def test_arrivals_follow_the_cycle_of_the_day(jobs: list[Job]) -> None:
    cycle = daily_cycle(ONE_KIND.day)
    by_half_hour = [0] * 48
    for job in jobs:
        by_half_hour[int(job.submit) % 86_400 // 1800] += 1
    expected = [each / 48 for each in cycle]
    drawn = [each / len(jobs) for each in by_half_hour]
    assert max(abs(a - b) for a, b in zip(drawn, expected, strict=True)) < 0.01
    assert all(later.submit >= earlier.submit for earlier, later in pairwise(jobs))


def test_two_kinds_have_the_arrivals_of_both() -> None:
    jobs = lublin_jobs("two", 5, jobs=10_000, processors=256)
    # Interactive jobs are seven in eight; the published trace of two kinds has 0.168 serial jobs.
    assert fmean(job.processors == 1 for job in jobs) == pytest.approx(0.17, abs=0.02)
    assert fmean(job.processors for job in jobs) == pytest.approx(39, abs=3)


@pytest.mark.parametrize(
    ("value", "shape", "scale", "expected"),
    [
        pytest.param(1.0, 1.0, 1.0, 1 - math.exp(-1), id="an exponential variate"),
        pytest.param(0.0, 2.0, 1.0, 0.0, id="nothing is below zero"),
        pytest.param(6.0, 2.0, 3.0, 1 - 3 * math.exp(-2), id="a sum of two"),
        pytest.param(500.0, *INTERACTIVE.day, 1.0, id="nearly all"),
    ],
)
def test_the_distribution_of_a_gamma(
    value: float, shape: float, scale: float, expected: float
) -> None:
    assert gamma_below(value, shape, scale) == pytest.approx(expected, abs=1e-12)
