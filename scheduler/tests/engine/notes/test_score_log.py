"""The log of scores tells every earlier moment, whatever changed since."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.notes.score_log import UNNOTED_MAX, ScoreLog

_ROWS = 60


@given(
    st.lists(st.sets(st.integers(0, _ROWS - 1), min_size=1, max_size=8), max_size=40),
    st.sets(st.integers(0, 39)),
    st.booleans(),
)
def test_scores_of_every_moment_are_told_after_all_changes(changes, asked, ended) -> None:
    raw_pn = np.arange(2 * _ROWS).reshape(2, _ROWS)
    log = ScoreLog(raw_pn)
    moments = [(log.length, raw_pn.copy())]
    for step, rows in enumerate(changes, 1):
        assert log.change(sorted(rows))
        raw_pn[:, sorted(rows)] += step
        log.noted = log.length
        moments.append((log.length, raw_pn.copy()))
        if step in asked:
            assert (log.scores_after(log.length) == raw_pn).all()
    if ended:
        log.release_scores()
        raw_pn += 1000
    for length, expected in moments:
        assert (log.scores_after(length) == expected).all()


def test_a_log_takes_in_a_bounded_number_of_changes_between_two_notes() -> None:
    log = ScoreLog(np.zeros((1, 99), np.int64))
    assert log.change(list(range(UNNOTED_MAX)))
    log.noted = log.length
    assert log.change([5])
    assert not log.change(list(range(UNNOTED_MAX)))
