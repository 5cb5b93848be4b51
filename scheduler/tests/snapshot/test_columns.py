"""Columns are handed out read-only; the log of changes is bounded and never wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moorage.snapshot.columns import Columns
from moorage.snapshot.key_log import KeyLog
from scheduler.tests.snapshot.builders import COUNTS, cluster, node, pod


def arrays() -> dict[str, NDArray[Any]]:
    snapshot = cluster(
        node("n1", labels={"zone": "a"}, allocatable={"cpu": "1"}), pods={"n1": [pod("p")]}
    )
    return {
        "allocatable": snapshot.allocatable("cpu"),
        "allocatable as float": snapshot.allocatable_float("cpu"),
        "allocatable of an unknown resource": snapshot.allocatable("a.b/c"),
        "float of an unknown resource": snapshot.allocatable_float("a.b/c"),
        "requested": snapshot.requested("cpu"),
        "nonzero": snapshot.nonzero_requested("memory"),
        "pod count": snapshot.pod_count,
        "allowed pods": snapshot.allowed_pods,
        "unschedulable": snapshot.unschedulable,
        "labels": snapshot.label_column("zone").ids,
        "taints": snapshot.taint_sets.ids,
        "ports": snapshot.port_sets.ids,
        "features": snapshot.feature_sets.ids,
        "images": snapshot.image_presence("app:1"),
        "counts": snapshot.count_column(COUNTS[0]),
    }


@pytest.mark.parametrize("name", sorted(arrays()))
def test_a_column_cannot_be_written_by_its_reader(name):
    with pytest.raises(ValueError, match="read-only"):
        arrays()[name][0] = 1


def test_a_view_shows_later_writes_until_rows_move():
    columns = Columns()
    columns.append_row()
    view = columns.view("pod_count")
    columns.ensure("pod_count")[0] = 7
    assert view.tolist() == [7]
    assert columns.view("pod_count") is view
    structure = columns.structure
    columns.append_row()
    assert columns.view("pod_count").tolist() == [7, 0]
    assert columns.structure == structure + 1
    assert columns.remove_row(0) == 1
    assert columns.view("pod_count").tolist() == [0]


def test_dropping_a_column_starts_it_afresh():
    columns = Columns()
    columns.append_row()
    columns.ensure(("count", 0))[0] = 3
    columns.drop(("count", 0))
    assert not columns.has(("count", 0))
    assert columns.view(("count", 0)).tolist() == [0]


def test_the_log_drops_old_entries_and_returns_none_for_them():
    log: KeyLog[int] = KeyLog(limit=3)
    for row in range(6):
        log.append(row)
    assert (log.position, log.since(0), log.since(6)) == (6, [0, 1, 2, 3, 4, 5], [])
    log.append(6)
    assert (log.position, log.since(0), log.since(3)) == (7, None, None)
    assert (log.since(4), log.since(6), log.since(7)) == ([4, 5, 6], [6], [])


@given(st.integers(1, 5), st.lists(st.integers(0, 9), max_size=60), st.integers(0, 60))
def test_the_log_tells_everything_since_or_nothing(limit, rows, start):
    log: KeyLog[int] = KeyLog(limit=limit)
    for row in rows:
        log.append(row)
    assert log.position == len(rows)
    assert len(log._keys) <= 2 * limit
    start = min(start, len(rows))
    told = log.since(start)
    assert told is None or told == list(dict.fromkeys(rows[start:]))
    if len(rows) - start <= limit:
        assert told is not None
    for row in range(10):
        assert log.may_have_changed(row, start) is (told is None or row in told)


@pytest.mark.parametrize(
    ("change", "rises"),
    [
        pytest.param(lambda c: c.append_row(), True, id="a row is added"),
        pytest.param(lambda c: c.remove_row(0), True, id="a row is removed"),
        pytest.param(lambda c: c.view("allowed_pods"), True, id="a column is made"),
        pytest.param(lambda c: c.drop("pod_count"), True, id="a column is dropped"),
        pytest.param(lambda c: c.view("pod_count"), False, id="a column is read again"),
        pytest.param(
            lambda c: c.ensure("pod_count").__setitem__(0, 3), False, id="a value is written"
        ),
    ],
)
def test_the_generation_rises_when_kept_arrays_may_be_another_columns(
    change: Callable[[Columns], object], rises: bool
) -> None:
    columns = Columns()
    columns.append_row()
    columns.append_row()
    columns.view("pod_count")
    before = columns.generation
    change(columns)
    assert (columns.generation > before) is rises
