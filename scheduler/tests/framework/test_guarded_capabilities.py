"""Capabilities of plugins from outside: single rows, and which answers are reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.framework.capabilities import Reads
from moorage.framework.containment import RAISED
from moorage.framework.cycle_state import CycleState
from moorage.snapshot.shifted import NOTHING_MORE
from scheduler.tests.framework.builders import answers
from scheduler.tests.framework.outside import BOOM, POD, profile

IN_ROWS: dict[str, Any] = {
    "filter": None,
    "filter_reads": Reads.PODS,
    "score": np.array([1, 2, 3]),
    "score_reads": Reads.PODS,
    "shape_parts": (),
}
"""A plugin whose answers depend on a row's pods, so that it may have scalar forms."""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param((0, 0), (0, 0), id="the row passes"),
        pytest.param((2, 1), None, id="a rejection: Filter is asked, whose answer is checked"),
        pytest.param(True, None, id="no pair: Filter is asked"),
        pytest.param(None, None, id="None: Filter is asked"),
    ],
)
def test_only_a_pass_is_taken_from_the_judge_of_one_row(answer: Any, expected: Any) -> None:
    made, containment = profile(**IN_ROWS, filter_row=answer)
    judge = made.filter_forms[0].judge_row
    assert judge is not None
    assert judge(CycleState(), POD, 0, NOTHING_MORE) == expected
    assert not containment.failures


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        pytest.param(1, 1, id="a number"),
        pytest.param(2.4, 2, id="a fraction, which is rounded"),
        pytest.param(None, None, id="None: Score is asked"),
    ],
)
def test_scores_of_single_rows_are_passed_on(answer: Any, score: int | None) -> None:
    made, containment = profile(**IN_ROWS, row_scorer=answers(answers(answer)))
    row_scorer = made.score_forms[0].row_scorer
    assert row_scorer is not None
    scorer = row_scorer(CycleState(), POD)
    assert scorer is not None
    assert scorer(0) == score
    assert not containment.failures


def test_a_plugin_may_leave_all_rows_to_score() -> None:
    made, containment = profile(**IN_ROWS, row_scorer=None)
    row_scorer = made.score_forms[0].row_scorer
    assert row_scorer is not None
    assert row_scorer(CycleState(), POD) is None
    assert not containment.failures


@pytest.mark.parametrize(
    ("answer", "singular"),
    [
        pytest.param(False, False, id="answers may be reused"),
        pytest.param(True, True, id="answers may not be reused"),
        pytest.param(None, True, id="None instead of an answer"),
        pytest.param(BOOM, True, id="the capability raises"),
    ],
)
def test_answers_are_reused_only_where_the_plugin_says_so(answer: Any, singular: bool) -> None:
    made, _ = profile(filter=None, never_reused=answer)
    never_reused = made.capabilities["Mine"].never_reused
    assert never_reused is not None
    assert never_reused(POD) is singular


def test_a_single_row_that_breaks_is_told_and_counted() -> None:
    made, containment = profile(**IN_ROWS, filter_row=BOOM, row_scorer=answers(answers(BOOM)))
    judge, row_scorer = made.filter_forms[0].judge_row, made.score_forms[0].row_scorer
    assert judge is not None
    with pytest.raises(RuntimeError, match="boom"):
        judge(CycleState(), POD, 0, NOTHING_MORE)
    assert row_scorer is not None
    scorer = row_scorer(CycleState(), POD)
    assert scorer is not None
    with pytest.raises(RuntimeError, match="boom"):
        scorer(0)
    assert containment.failures == {("Mine", "Filter", RAISED): 1, ("Mine", "Score", RAISED): 1}
