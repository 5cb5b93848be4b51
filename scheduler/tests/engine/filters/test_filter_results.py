"""A filter result takes answers in any order and keeps for each row the plugin of lowest index."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.filters.filter_results import PASSES, FilterResults
from moorage.engine.filters.tally import PASSED
from moorage.framework.profile import Profile
from moorage.framework.status import Code, FilterAnswer, ReasonTable

ROWS = 4
answers = st.tuples(
    st.integers(0, 253),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=ROWS, max_size=ROWS),
)
several = st.lists(answers, max_size=5, unique_by=lambda answer: answer[0])


def recorded(given_answers) -> FilterResults:
    filtered = FilterResults(ROWS)
    for index, rows in given_answers:
        codes, reasons = zip(*rows, strict=True)
        filtered.record_answer(
            index, FilterAnswer(np.array(codes, np.uint8), np.array(reasons, np.int32))
        )
    return filtered


def rows_of(filtered: FilterResults) -> list[tuple[int, int, int]]:
    columns = (filtered.plugin_n.tolist(), filtered.code_n.tolist(), filtered.reason_n.tolist())
    return list(zip(*columns, strict=True))


def expected(given_answers) -> list[tuple[int, int, int]]:
    """Look for each row's first failing plugin; a reason beside a code of success is none."""
    found = []
    for row in range(ROWS):
        failing = [(i, *rows[row]) for i, rows in given_answers if rows[row][0]]
        found.append(min(failing, default=(PASSED, 0, 0)))
    return found


checks = st.lists(
    st.tuples(
        st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
        st.sampled_from([code for code in Code if code is not Code.SUCCESS]),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=3,
)


@given(st.integers(0, 253), checks, several, st.booleans())
def test_an_answer_of_checks_is_the_one_of_its_arrays(index, given_checks, others, first):
    arrays = [(np.array(failed, np.bool_), code, reason) for failed, code, reason in given_checks]
    deciding = [
        next(((int(code), reason) for failed, code, reason in given_checks if failed[row]), (0, 0))
        for row in range(ROWS)
    ]
    answer = FilterAnswer.of_checks(*arrays)
    others = [(other, rows) for other, rows in others if other != index]
    filtered = recorded([] if first else others)
    filtered.record_answer(index, answer)
    for other, rows in others if first else []:
        codes, reasons = zip(*rows, strict=True)
        filtered.record_answer(
            other, FilterAnswer(np.array(codes, np.uint8), np.array(reasons, np.int32))
        )
    kept = dict([*others, (index, deciding)])
    assert rows_of(filtered) == expected(kept.items())
    assert list(zip(answer.code_n, answer.reason_n, strict=True)) == deciding
    assert len(answer) == ROWS
    assert filtered.is_broken == bool(filtered.broken.any())
    odd = {Code.ERROR, Code.WAIT, Code.SKIP}
    assert answer.is_broken == any(code in odd for code, _ in deciding)


@given(several, several)
def test_a_copy_and_its_original_do_not_see_what_the_other_takes_over(before, after):
    known = {index for index, _ in before}
    whole = recorded(before)
    twin = whole.copy()
    for index, rows in after:
        if index not in known:
            codes, reasons = zip(*rows, strict=True)
            answer = FilterAnswer(np.array(codes, np.uint8), np.array(reasons, np.int32))
            whole.record_answer(index, answer)
    assert rows_of(twin) == expected(before)


@given(several)
def test_answers_in_any_order_are_judged_by_the_index_of_the_plugin(given_answers):
    assert rows_of(recorded(given_answers)) == expected(given_answers)


@given(several, st.integers(0, 5))
def test_filter_results_of_two_halves_merge_to_the_filter_result_of_all(given_answers, cut):
    filtered = recorded(given_answers[:cut])
    filtered.merge(recorded(given_answers[cut:]))
    assert rows_of(filtered) == expected(given_answers)


@given(several, several)
def test_a_copy_and_some_rows_of_a_filter_result_take_further_answers(before, after):
    known = {index for index, _ in before}
    after = [answer for answer in after if answer[0] not in known]
    whole, rows = recorded(before), np.array([3, 1])
    part = whole.at_rows(rows)
    for filtered, at in ((whole.copy(), range(ROWS)), (part, rows)):
        for index, given_rows in after:
            codes, reasons = zip(*(given_rows[int(row)] for row in at), strict=True)
            answer = FilterAnswer(np.array(codes, np.uint8), np.array(reasons, np.int32))
            filtered.record_answer(index, answer)
        wanted = expected([*before, *after])
        assert rows_of(filtered) == [wanted[int(row)] for row in at]
    assert rows_of(whole) == expected(before)


rewrites = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, 2), st.integers(0, 6), st.integers(1, 3)),
    max_size=6,
)


named = SimpleNamespace(filters=[SimpleNamespace(name=f"plugin {i}") for i in range(3)])


@given(
    st.lists(st.tuples(st.integers(0, 2), answers), max_size=3, unique_by=lambda pair: pair[0]),
    rewrites,
    st.booleans(),
)
def test_rows_put_one_by_one_count_as_they_would_from_the_start(before, after, asked):
    """A result followed row by row equals a new one, counted before or not."""
    followed = recorded([(index, rows) for index, (_, rows) in before])
    table, profile = ReasonTable(), cast("Profile", named)
    for text in "abcdefghi":
        table.intern(text)
    if asked:
        followed.tally.reason_counts(table)
    for row, plugin, code, reason in after:
        filtered = (plugin, code, reason) if code else PASSES
        followed.put_row(row, filtered)
        assert followed.result_at(row) == filtered
        assert followed.passing.tolist() == followed.passed.nonzero()[0].tolist()
    rows = rows_of(followed)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    fresh = FilterResults.from_columns(
        columns[1].astype(np.uint8), columns[2].astype(np.int32), columns[0].astype(np.uint8)
    )
    assert followed.tally.reason_counts(table) == fresh.tally.reason_counts(table)
    assert followed.tally.rejectors(profile.filters) == fresh.tally.rejectors(profile.filters)
    assert followed.tally.pending(profile.filters) == fresh.tally.pending(profile.filters)
    expected_counts = Counter("abcdefghi"[reason - 1] for _, _, reason in rows if reason)
    assert followed.tally.reason_counts(table) == expected_counts


changes = st.lists(
    st.one_of(
        st.tuples(st.just("row"), rewrites.map(lambda some: some[:1])),
        st.tuples(st.just("answer"), several.map(lambda some: some[:1])),
        st.tuples(st.just("rows"), several),
        st.tuples(st.just("merge"), several),
        st.tuples(st.just("extend"), st.integers(0, ROWS - 1)),
        st.tuples(st.just("copy"), st.none()),
    ),
    max_size=6,
)


@given(several, changes)
def test_rows_found_by_code_are_the_ones_that_have_it_now(before, given_changes):
    """Whatever was found is forgotten by every way in which a filter result changes."""
    filtered = recorded(before)
    for how, given_change in [("", None), *given_changes]:
        if how == "row":
            for row, plugin, code, reason in given_change:
                filtered.put_row(row, (plugin, code, reason) if code else PASSES)
        elif how == "answer":
            for index, rows in given_change:
                codes, reasons = zip(*rows, strict=True)
                answer = FilterAnswer(np.array(codes, np.uint8), np.array(reasons, np.int32))
                filtered.record_answer(index, answer)
        elif how == "rows":
            filtered.put_rows(np.array([2, 0]), recorded(given_change).at_rows(np.array([1, 3])))
        elif how == "merge":
            filtered.merge(recorded(given_change))
        elif how == "extend":
            filtered.extend(given_change, Code.UNSCHEDULABLE, 1)
        elif how == "copy":
            filtered = filtered.copy()
        for code in Code:
            found = filtered.rows_with(code).tolist()
            assert found == [
                row for row, (_, has, _) in enumerate(rows_of(filtered)) if has == code
            ]
            assert not filtered.rows_with(code).flags.writeable
