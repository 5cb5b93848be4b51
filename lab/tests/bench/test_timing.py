"""Stopwatch, laps, samples and percentiles on a clock that the test sets."""

from __future__ import annotations

from functools import partial

import pytest

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage_lab.bench.timing import NS_PER_MS, Laps, Samples, Stopwatch, median, percentile


@pytest.mark.parametrize(
    ("samples", "percent", "expected"),
    [
        pytest.param([], 50, 0.0, id="no sample"),
        pytest.param([7], 1, 7, id="one sample"),
        pytest.param([4, 1, 3, 2], 50, 2, id="the lower one of the two in the middle"),
        pytest.param([3, 1, 2], 50, 2, id="the middle one of three"),
        pytest.param([*range(100, 0, -1)], 99, 99, id="the 99th of a hundred, in any order"),
        pytest.param([*range(1, 11)], 99, 10, id="the last one of ten"),
        pytest.param([1, 2, 3], 100, 3, id="the maximum"),
    ],
)
def test_a_percentile_is_the_least_sample_that_so_many_do_not_exceed(
    samples: list[float], percent: float, expected: float
) -> None:
    assert percentile(samples, percent) == expected


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([], 0.0, id="no sample"),
        pytest.param([3, 1, 2], 2, id="the middle one of three"),
        pytest.param([4, 1], 2.5, id="the mean of two"),
    ],
)
def test_a_median_lies_between_both_halves(samples: list[float], expected: float) -> None:
    assert median(samples) == expected


def test_a_stopwatch_counts_from_its_start() -> None:
    clock = ManualClock()
    clock.advance(5.0)
    watch = Stopwatch(clock.monotonic_ns)
    clock.advance(1.5)
    assert (watch.elapsed_ns, watch.seconds, watch.milliseconds) == (1_500_000_000, 1.5, 1500.0)


def test_laps_sum_each_part_and_leave_out_the_time_between() -> None:
    clock = ManualClock()
    laps = Laps(clock.monotonic_ns, "queue", "decide", "evict")
    for _ in range(2):
        clock.advance(10.0)
        laps.start_lap()
        clock.advance(1.0)
        laps.end_lap("queue")
        clock.advance(2.0)
        assert laps.end_lap("decide") == 2 * NS_PER_SECOND
    assert laps.seconds_by_part() == {"queue": 2.0, "decide": 4.0, "evict": 0.0}


def test_samples_forget_the_warm_up_and_return_what_the_work_returns() -> None:
    clock = ManualClock()
    samples = Samples(clock.monotonic_ns, warm_up=2)

    def work(milliseconds: int) -> int:
        clock.advance(milliseconds / 1000)
        return milliseconds

    returned = [samples.measure_work(partial(work, each)) for each in (900, 800, 2, 8, 3)]
    assert returned == [900, 800, 2, 8, 3]
    assert samples.durations_ns == [2 * NS_PER_MS, 8 * NS_PER_MS, 3 * NS_PER_MS]
    assert samples.median_in(NS_PER_MS) == 3.0
