"""The ring of records: what is kept within the bound, and what is dropped first."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.notes.filtered_nodes import MoreRejections
from moorage.engine.notes.score_log import CHANGES_MAX, ScoreLog
from moorage.observe.records.ring import RecordRing
from tests.observe.records.build import answered, filtered, log_of, logged, names_of, record

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
    shared, names = filtered(), names_of(5000)
    ring = RecordRing(2000 * SIZE)
    for number in range(1, 6):
        ring.add(record(number, f"p{number}", filtered=shared))
    once = ring.nbytes - 5 * SIZE
    assert once == shared.nbytes + shared.names.nbytes
    for number in range(6, 800):
        ring.add(record(number, f"p{number}", filtered=filtered(names)))
        ring.validate()
    found = ring.of_pod(("default", "p1"))
    assert [(each.filtered, each.dropped) for each in found] == [(None, True)]
    newest = ring.of_pod(("default", "p799"))
    assert newest[0].filtered is not None


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
    for number, (pod, fresh, holds, score) in enumerate(steps, 1):
        name = f"p{pod}"
        uid = f"uid-{name}" if number % 40 else f"uid-{name}-again"
        attempts[name] = attempts.get(name, 0) + 1
        results = None if not holds else filtered(names) if fresh else share
        best = logged(logs[number // 20]) if results is not None and score else None
        given: dict[str, Any] = {"uid": uid, "filtered": results, "best": best}
        ring.add(record(number, name, attempt=attempts[name], **given))
        if score == 2:  # until then, records wait to be filed
            continue
        ring.validate()
        assert all(each.has_rejections or each.dropped or not each.filtered for each in ring)
        assert [each.number for each in ring][-1] == number, "the newest record is kept"


def test_dropped_filter_results_leave_the_ranking_of_a_record() -> None:
    names = names_of(2000)
    ring, log = RecordRing(2000 * SIZE), log_of(names)
    for number in range(1, 100):
        log.change([number])
        ring.add(record(number, f"p{number}", filtered=filtered(names), best=logged(log)))
        ring.validate()
    first = ring.of_pod(("default", "p1"))[0]
    assert first.dropped
    assert first.best is not None
    assert first.best.ranking(first.looked_at).nodes == tuple(f"n{row}" for row in range(10))
    assert first.filtered is not None
    assert first.filtered.filtered is None, "only one bit for each node is kept"


def test_a_record_that_comes_after_its_filter_results_were_dropped_says_so() -> None:
    ring = RecordRing(40 * SIZE)
    shared = filtered(names_of(2000))
    ring.add(record(1, "p1", filtered=shared))
    ring.add(record(2, "p2", filtered=shared))
    ring.validate()
    ring.add(record(3, "p3", filtered=shared))
    (found,) = ring.of_pod(("default", "p3"))
    assert (found.filtered, found.dropped, found.has_rejections) == (None, True, False)
    ring.validate()


def test_records_take_no_more_memory_than_is_told() -> None:
    ring = RecordRing(2**30)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5000):
            message = f"no room for {number}"
            ring.add(record(number, f"p{number}", message=message, filtered=None))
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
        ring, shared = RecordRing(2**30), filtered(names)
        before = tracemalloc.get_traced_memory()[0]
        number = 0
        for _ in range(4):
            log = ScoreLog(raw_pn)
            for row in range(CHANGES_MAX):
                number += 1
                log.change([row % 1000])
                own = filtered(names) if number % 50 == 0 else shared
                more = (MoreRejections.of(answered(1000)),)
                given: dict[str, Any] = {"filtered": own, "best": logged(log), "more": more}
                ring.add(record(number, f"p{number}", **given))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown <= ring.nbytes
    assert ring.nbytes <= 2 * grown
