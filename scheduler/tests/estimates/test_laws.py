"""Laws of run times, against the list of all run times; shrinkage, bounds, and what is declared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.estimates.laws import RunTimeLaw
from moorage.estimates.run_time_book import RUNS_LEAST, RunTimeBook
from moorage.estimates.sketch import RunTimeSketch

STEP = 2**0.25
"""A bin is so much wide, as a factor."""
SECONDS = st.floats(min_value=0.01, max_value=1e6)


def learned(values: list[float], classes: tuple[str, ...] = ("ns",)) -> RunTimeLaw:
    book = RunTimeBook()
    for value in values:
        book.note_run(classes, value)
    law = book.law(classes)
    assert law is not None
    return law


@settings(max_examples=200, deadline=None)
@given(values=st.lists(SECONDS, min_size=RUNS_LEAST, max_size=60), share=st.floats(0.02, 0.98))
def test_quantiles_are_those_of_the_sorted_list_within_a_bin(
    values: list[float], share: float
) -> None:
    ordered, drawn = sorted(values), learned(values).run_seconds(share)
    # The table has 256 steps, so a neighbour of the list may be meant.
    slack = len(ordered) / 256 + 1e-9
    low = ordered[max(0, math.floor(share * len(ordered) - slack) - 0)] if ordered else 0.0
    low = min(low, ordered[max(0, math.ceil(share * len(ordered) - slack) - 1)])
    high = ordered[min(len(ordered) - 1, math.floor(share * len(ordered) + slack))]
    assert low / STEP * 0.999 <= drawn <= high * STEP * 1.001


@settings(max_examples=200, deadline=None)
@given(
    values=st.lists(SECONDS, min_size=RUNS_LEAST, max_size=40),
    elapsed=st.floats(0.0, 2e6),
    draws=st.tuples(st.floats(0.0, 0.999), st.floats(0.0, 0.999)),
)
def test_a_pod_that_runs_ends_no_sooner_than_now_and_later_for_a_larger_draw(
    values: list[float], elapsed: float, draws: tuple[float, float]
) -> None:
    law = learned(values)
    low, high = (law.run_seconds(draw, elapsed=elapsed) for draw in sorted(draws))
    assert elapsed <= low <= high
    assert high <= max(2 * elapsed, max(values) * STEP * 1.001)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(SECONDS, min_size=RUNS_LEAST, max_size=40), at=SECONDS)
def test_the_share_until_a_time_is_that_of_the_list_but_for_one_bin(
    values: list[float], at: float
) -> None:
    share = learned(values).share_until(at)
    sure = sum(value < at / STEP for value in values) / len(values)
    possible = sum(value <= at * STEP for value in values) / len(values)
    assert sure - 1e-9 <= share <= possible + 1e-9


def test_a_narrow_class_counts_more_with_each_run() -> None:
    """Four runs count as much as all wider classes together."""
    book = RunTimeBook()
    for _ in range(100):
        book.note_run(("other", "ns"), 10.0)
    for runs, share in ((1, 1 / 5), (4, 4 / 8), (36, 36 / 40)):
        book = RunTimeBook()
        for _ in range(10_000):
            book.note_run(("other", "ns"), 10.0)
        for _ in range(runs):
            book.note_run(("own", "ns"), 10_000.0)
        law = book.law(("own", "ns"))
        assert law is not None
        assert 1 - law.share_until(100.0) == pytest.approx(share, abs=0.05)


def test_nothing_is_known_before_five_runs_and_in_another_namespace() -> None:
    book = RunTimeBook()
    for number in range(RUNS_LEAST):
        assert book.law(("own", "ns")) is None, number
        book.note_run(("own", "ns"), 60.0)
    assert book.law(("own", "ns")) is not None
    assert book.law(("new", "ns")) is not None
    assert book.law(("own", "elsewhere")) is None


def test_what_is_declared_counts_and_learned_ratios_correct_it() -> None:
    book = RunTimeBook()
    assert book.law(("own", "ns"), declared=100.0) == RunTimeLaw(scale=100.0)
    assert book.law(("own", "ns"), deadline=300.0) == RunTimeLaw(scale=300.0)
    for _ in range(RUNS_LEAST):
        book.note_run(("own", "ns"), 500.0, declared=1000.0)
    law = book.law(("own", "ns"), declared=100.0)
    assert law is not None
    assert law.run_seconds(0.5) == pytest.approx(50.0, rel=0.2)
    bounded = book.law(("own", "ns"), declared=100.0, deadline=20.0)
    assert bounded is not None
    assert bounded.run_seconds(0.5) == 20.0


def test_classes_and_bins_are_bounded_and_the_longest_unused_class_goes() -> None:
    book = RunTimeBook(classes_most=20)
    for number in range(200):
        book.note_run((f"own {number}", "ns"), 10.0 ** (number % 12 - 3))
    names = set(book.as_bins())
    assert len(names) == 20
    assert {"ns", "own 199"} <= names
    assert "own 0" not in names
    sketch = RunTimeSketch()
    for number in range(5000):
        sketch.add_value(10.0 ** (number % 40 - 10))
    assert len(sketch.bins) <= 161
    assert sketch.total <= 1001


def test_new_run_times_outweigh_old_ones() -> None:
    law = learned([10.0] * 3000 + [1000.0] * 1000)
    assert law.share_until(100.0) < 0.5
