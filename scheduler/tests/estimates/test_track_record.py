"""How often intervals held is counted once for each pod, and misses widen the next intervals."""

from __future__ import annotations

import math

from moorage.base.rng import Random
from moorage.estimates.intervals import Interval, interval_of, interval_score
from moorage.estimates.track_record import TrackRecord

TEN = Interval(100.0, 110.0)


def test_each_pod_counts_once_with_its_first_interval() -> None:
    record = TrackRecord()
    record.note_estimate("a", shown=TEN, drawn=TEN)
    record.note_estimate("a", shown=Interval(0.0, 1.0), drawn=TEN)
    record.note_estimate("b", shown=TEN, drawn=TEN)
    record.note_estimate("gone", shown=TEN, drawn=TEN)
    record.note_estimate("unknown", shown=Interval(0.0, math.inf), drawn=TEN)
    record.note_start("a", 105.0)
    record.note_start("a", 200.0)
    record.note_gone("gone")
    record.note_start("unknown", 105.0)
    assert list(record.outcomes) == [True]
    record.count_overdue(200.0)
    record.count_overdue(300.0)
    assert list(record.outcomes) == [True, False], "a pod that waits longer counts as a miss, once"
    record.note_start("b", 400.0)
    assert list(record.outcomes) == [True, False]


def test_the_last_hundred_count() -> None:
    record = TrackRecord()
    for number in range(150):
        record.note_estimate(str(number), shown=TEN, drawn=TEN)
        record.note_start(str(number), 105.0 if number >= 100 else 0.0)
    assert len(record.outcomes) == 100
    assert sum(record.outcomes) == 50


def test_intervals_that_are_too_narrow_hold_by_the_wanted_share_after_a_while() -> None:
    """Starts are normal around 1000 s, and the intervals drawn have a fifth of their spread."""
    record, rng, outcomes = TrackRecord(), Random(4), []
    for number in range(1200):
        drawn = Interval(1000.0 - 25.0, 1000.0 + 25.0)
        shown = drawn.widened(record.widening(), least=0.0)
        record.note_estimate(str(number), shown=shown, drawn=drawn)
        start = rng.gauss(1000.0, 100.0)
        outcomes.append(shown.holds(start))
        record.note_start(str(number), start)
    assert 0.76 <= sum(outcomes[100:]) / 1100 <= 0.84


def test_the_middle_share_of_drawn_starts() -> None:
    middle = interval_of([float(each) for each in range(1, 100)])
    assert (round(middle.low, 6), round(middle.high, 6)) == (10.0, 90.0)
    assert interval_of([5.0]) == Interval(5.0, 5.0)
    assert interval_of([*map(float, range(80)), *[math.inf] * 20]).high == math.inf
    assert not interval_of([math.inf]).is_finite


def test_a_score_is_the_width_and_ten_times_a_miss() -> None:
    assert interval_score(TEN, 105.0) == 10.0
    assert round(interval_score(TEN, 112.0), 6) == 30.0
