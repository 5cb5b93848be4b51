"""The ring of records: what is kept within the bound, and what is dropped first."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.notes.filtered_nodes import MoreRejections
from moorage.engine.notes.score_log import CHANGES_MAX, ScoreLog
from moorage.observe.records.record import Failure
from moorage.observe.records.ring import RecordRing
from moorage.observe.records.shown_attempt import shown_attempt
from scheduler.tests.observe.records.build import (
    answered,
    filtered,
    log_of,
    names_of,
    noted,
    record,
    shaped,
)

SIZE = record(1).own_bytes


def kept(ring: RecordRing, pod: str) -> list[int]:
    return [each.attempt for each in ring.of_pod(("default", pod))]


def test_the_first_and_the_last_attempt_of_a_pod_outlive_its_others() -> None:
    ring = RecordRing(40 * SIZE)  # half of it for filter results: room for twenty records
    number = 0
    for attempt in range(1, 16):
        number += 1
        ring.add(record(number, "old", attempt=attempt))
    for index in range(18):
        number += 1
        ring.add(record(number, f"new{index}"))
        ring.validate()
    assert kept(ring, "old") == [1, 15]
    assert [kept(ring, f"new{index}") for index in range(18)] == [[1]] * 18
    assert ring.dropped == 13


def test_the_newest_records_are_kept_whatever_came_before() -> None:
    ring = RecordRing(40 * SIZE)
    for number in range(1, 201):
        ring.add(record(number, f"p{number}"))
        ring.validate()
    numbers = [each.number for each in ring]
    assert numbers[-10:] == list(range(191, 201))
    assert len(ring) <= 20


def test_a_last_attempt_that_is_no_longer_the_last_is_dropped() -> None:
    ring = RecordRing(40 * SIZE)
    ring.add(record(1, "p", attempt=1))
    ring.add(record(2, "p", attempt=2))
    for number in range(3, 28):
        ring.add(record(number, "other", attempt=number))
    assert kept(ring, "p") == [1, 2]
    ring.add(record(28, "p", attempt=3))
    ring.validate()
    assert kept(ring, "p") == [1, 3]


def test_filter_results_that_records_share_count_once_and_are_dropped_before_the_records() -> None:
    shared, again, names = filtered(), filtered(), names_of(5000)
    kept, used_again = shaped(shared), shaped(again)
    ring = RecordRing(2000 * SIZE)
    for number in range(1, 6):
        ring.add(record(number, f"p{number}", note=noted(kept)))
    once = ring.nbytes - 5 * SIZE
    assert once == shared.nbytes + shared.names.nbytes
    for number in range(6, 800):
        shape = used_again if number % 10 == 6 else shaped(filtered(names))
        ring.add(record(number, f"p{number}", note=noted(shape)))
        ring.validate()
    found = [ring.of_pod(("default", f"p{number}"))[0] for number in (1, 6, 7, 799)]
    assert [each.has_rejections for each in found] == [False, True, False, True]
    assert (shared.filtered, shared.passed_bits) == (None, None)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=150,
    ),
    st.integers(4, 60),
)
def test_every_invariant_holds_whatever_is_added(steps, room) -> None:
    ring = RecordRing(room * SIZE)
    attempts: dict[str, int] = {}
    names = names_of(3)
    share, logs = filtered(names), [log_of(names) for _ in range(9)]
    shapes = [shaped(share), *(shaped(share, log) for log in logs)]
    for number, (pod, fresh, holds, score) in enumerate(steps, 1):
        name = f"p{pod}"
        uid = f"uid-{name}" if number % 40 else f"uid-{name}-again"
        attempts[name] = attempts.get(name, 0) + 1
        log = logs[number // 20] if score else None
        shape = shapes[1 + number // 20 if score else 0]
        note = None if not holds else noted(shaped(filtered(names), log) if fresh else shape)
        ring.add(record(number, name, attempt=attempts[name], uid=uid, note=note))
        if score == 2:  # until then, records wait to be filed
            continue
        ring.validate()
        assert [each.number for each in ring][-1] == number, "the newest record is kept"


def test_dropped_filter_results_leave_the_ranking_of_a_record() -> None:
    names = names_of(2000)
    ring, log = RecordRing(2000 * SIZE), log_of(names)
    for number in range(1, 100):
        log.change([number])
        ring.add(record(number, f"p{number}", note=noted(shaped(filtered(names), log))))
        ring.validate()
    first = ring.of_pod(("default", "p1"))[0]
    note, shape = first.note, first.shape
    assert not first.has_rejections
    assert note is not None
    assert note.ranking is not None
    assert note.ranking.nodes == tuple(f"n{row}" for row in range(10))
    assert shape is not None
    assert shape.filtered.filtered is None, "only one bit for each node is kept"


def test_a_record_that_comes_after_its_filter_results_were_dropped_says_so() -> None:
    ring = RecordRing(200 * SIZE)
    shared = filtered(names_of(2000))
    first, second = shaped(shared), shaped(shared)
    ring.add(record(1, "p1", note=noted(first)))
    ring.add(record(2, "p2", note=noted(first)))
    ring.validate()
    ring.add(record(3, "p3", note=noted(first)))
    ring.add(record(4, "p4", note=noted(second)))
    found = [ring.of_pod(("default", f"p{number}"))[0] for number in (1, 3, 4)]
    assert [shown_attempt(each).filter_results for each in found] == ["dropped"] * 3
    ring.validate()


def test_nodes_are_ranked_though_their_filter_results_were_dropped_before_the_record_came() -> None:
    names = names_of(2000)
    ring, shared = RecordRing(200 * SIZE), filtered(names)
    plain, ranked = shaped(shared), shaped(shared, log_of(names_of(20)))
    ring.add(record(1, "p1", note=noted(plain)))
    ring.validate()
    assert plain.dropped
    ring.add(record(2, "p2", note=noted(ranked)))
    ring.validate()
    (found,) = ring.of_pod(("default", "p2"))
    assert not found.has_rejections
    assert found.note is not None
    assert found.note.looked_at is not None
    assert len(found.note.looked_at.passed_rows()) == 2000


def test_what_all_records_gave_up_is_counted_again_with_the_next_record() -> None:
    ring, shape = RecordRing(8 * SIZE), shaped(filtered(names_of(3)))
    for number in range(1, 60):
        note = noted(shape) if number in (1, 59) else None
        ring.add(record(number, f"p{number}", note=note))
        ring.validate()
        assert shape.holders == (number < 5 or number == 59)
    (found,) = ring.of_pod(("default", "p59"))
    assert found.shape is shape


def test_the_attempts_of_a_pod_that_came_again_under_its_name_are_told_alone() -> None:
    ring = RecordRing(40 * SIZE)
    for number in range(1, 4):
        ring.add(record(number, "p", attempt=number, uid="old"))
    for number in range(4, 6):
        ring.add(record(number, "p", attempt=number - 3, uid="new"))
    ring.validate()
    assert [each.number for each in ring.of_pod(("default", "p"))] == [4, 5]
    assert [each.number for each in ring] == [1, 2, 3, 4, 5]


def test_records_take_no_more_memory_than_is_told() -> None:
    ring = RecordRing(2**30)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5000):
            failure = Failure("reject", f"no room for {number}")
            ring.add(record(number, f"p{number}", failure=failure))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown <= ring.nbytes
    assert ring.nbytes <= 2 * grown


def test_logs_of_scores_take_no_more_memory_than_is_told() -> None:
    names = names_of(1000)
    raw_pn = np.zeros((3, 1000), np.int64)
    tracemalloc.start()
    try:
        ring = RecordRing(2**30)
        before = tracemalloc.get_traced_memory()[0]
        number = 0
        for _ in range(4):
            log, shared = ScoreLog(raw_pn), filtered(names)
            shape = shaped(shared, log)
            for row in range(CHANGES_MAX):
                number += 1
                log.change([row % 1000])
                if number % 50 == 0:
                    shape = shaped(filtered(names), log)
                more = (MoreRejections.from_answer(answered(1000)),)
                ring.add(record(number, f"p{number}", note=noted(shape, more)))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown <= ring.nbytes
    assert ring.nbytes <= 2 * grown
