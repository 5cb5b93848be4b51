"""Means and intervals, against values from tables of Student's t."""

from __future__ import annotations

import pytest

from moorage_lab.traces.statistics import Interval, difference, interval, t_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (9, 2.262), (30, 2.042), (40, 2.021), (120, 1.980)]
)
def test_quantiles_of_students_t(freedom: int, expected: float) -> None:
    assert round(t_quantile(freedom), 3) == expected


def test_the_interval_of_several_values() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    # 4.3027 / sqrt(3): the standard deviation is 1.
    assert found.half == pytest.approx(2.4842, abs=1e-4)


def test_a_single_value_has_no_interval() -> None:
    assert interval([5.0]) == Interval(5.0, None, None, 1)


def test_differences_are_taken_pair_by_pair() -> None:
    """The values vary by seed, their differences do not."""
    assert difference([11.0, 21.0, 31.0], [10.0, 20.0, 30.0]) == Interval(1.0, 1.0, 1.0, 3)
