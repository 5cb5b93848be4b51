"""Pods by rank: kept row by row as from scratch; shifted sums leave no trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.clock import rfc3339
from moorage.snapshot.importance import NOT_STARTED, Importance
from moorage.snapshot.shifted import ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView, as_index
from scheduler.tests.snapshot.builders import node, pod, validate

START = 1_767_225_600_000_000_000


def made(index: int, priority: int, start: int | None, cpu: int):
    status = {} if start is None else {"startTime": rfc3339(START + start * 10**9)}
    requests = {"cpu": str(cpu)}
    namespace = f"ns{index % 3}"
    return pod(
        f"p{index}", namespace=namespace, requests=requests, status=status, priority=priority
    )


# Positions of pods and nodes; what cannot be done is left out.
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.integers(0, 30),
            st.integers(0, 3),
            st.builds(
                lambda *each: each,
                st.integers(-1, 2),
                st.none() | st.integers(0, 2),
                st.integers(0, 2),
            ),
        ),
        st.tuples(st.just("gone"), st.integers(0, 30), st.just(0), st.just((0, None, 0))),
        st.tuples(st.just("node"), st.just(0), st.integers(0, 3), st.just((0, None, 0))),
        st.tuples(st.just("ask"), st.just(0), st.just(0), st.just((0, None, 0))),
    ),
    max_size=40,
)


def said(importance: Importance, snapshot: Snapshot):
    rows = np.arange(snapshot.num_nodes)
    ranked = importance.rank_rows(rows)
    assert not ranked.resized.any()
    pods = [[each.name for each in importance.pods_by_rank(int(row))] for row in rows]
    requests = {name: array for name, array in ranked.requests.items() if array.any()}
    cpu = requests.get("cpu", np.zeros_like(ranked.priority))
    # Where no pod is, nobody reads the start, and an old one may stand there.
    starts = np.where(ranked.priority == np.iinfo(np.int64).max, NOT_STARTED, ranked.start_ns)
    for row, numbers in enumerate(ranked.namespace.tolist()):
        expected = [importance.number_of(each.namespace) for each in importance.pods_by_rank(row)]
        assert numbers == expected + [-1] * (len(numbers) - len(expected))
    return pods, ranked.priority.tolist(), starts.tolist(), cpu.tolist()


@settings(max_examples=80, deadline=None)
@given(steps)
def test_ranks_kept_by_change_are_the_ones_made_afresh(history):
    snapshot = Snapshot()
    importance = Importance(snapshot.table)
    for what, index, at, (priority, start, cpu) in history:
        table, name, uid = snapshot.table, f"n{at}", f"uid-p{index}"
        if what == "ask":
            said(importance, snapshot)
        elif what == "node":
            table.remove_node(name) if table.has_node(name) else table.add_node(node(name))
        elif what == "gone":
            if table.node_of_pod(uid) is not None:
                table.remove_pod(uid)
        elif (there := table.node_of_pod(uid)) is not None:
            table.update_pod(made(index, priority, start, cpu), there)
        else:
            table.add_pod(made(index, priority, start, cpu), name)
    pods, priorities, _, cpus = fresh = said(Importance(snapshot.table), snapshot)
    got = said(importance, snapshot)
    assert got == fresh
    for row, names in enumerate(pods):
        # Pods not started come last, and the other way round.
        counted = list(snapshot.pods(row))
        started = [p for p in counted if p.pod.status.start_time]
        late = [p for p in reversed(counted) if not p.pod.status.start_time]
        expected = sorted(
            [*started, *late], key=lambda p: (-p.priority, p.pod.status.start_time or "9")
        )
        assert names == [each.name for each in expected]
        assert priorities[row][: len(names)] == [each.priority for each in expected]
        assert sum(cpus[row]) == snapshot.requested("cpu")[row]


def test_a_pod_that_starts_moves_up_though_it_costs_the_same():
    snapshot = Snapshot()
    snapshot.table.add_node(node("n"))
    for index in range(2):
        snapshot.table.add_pod(made(index, 0, None, 1), "n")
    importance = Importance(snapshot.table)
    assert said(importance, snapshot)[0] == [["p1", "p0"]]
    snapshot.table.update_pod(made(0, 0, 5, 1), "n")
    assert said(importance, snapshot)[0] == [["p0", "p1"]]
    assert said(importance, snapshot)[2] == [[START + 5 * 10**9, NOT_STARTED]]


def test_shifted_sums_are_seen_and_leave_no_trace():
    snapshot = Snapshot()
    for index in range(4):
        snapshot.table.add_node(node(f"n{index}"))
        snapshot.table.add_pod(made(index, 0, None, 2), f"n{index}")
    view = snapshot.rows([3, 1])
    with ShiftedSums(snapshot.table, view, frozenset({"cpu", "unknown"})) as sums:
        shifts = {"cpu": np.array([-500, 300]), "memory": np.array([1, 1])}
        sums.shift(shifts, np.array([-1, 2]))
        assert snapshot.requested("cpu").tolist() == [2000, 2300, 2000, 1500]
        assert snapshot.pod_count.tolist() == [1, 3, 1, 0]
    assert snapshot.requested("cpu").tolist() == [2000] * 4
    assert snapshot.requested("memory").tolist() == [0] * 4
    assert snapshot.pod_count.tolist() == [1] * 4
    validate(snapshot)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([2, 3, 4], slice(2, 5), id="rows that follow one another"),
        pytest.param([7], slice(7, 8), id="one row"),
        pytest.param([2, 4, 3], None, id="the same rows in another order"),
        pytest.param([2, 2, 4], None, id="a row twice"),
        pytest.param([], None, id="no row"),
    ],
)
def test_rows_become_a_slice_where_they_can(rows, expected):
    array = np.array(rows, np.int64)
    index = as_index(array)
    assert (index == expected) if expected else (index is array)
    column = np.arange(10)
    assert NodeView.spanning(10, array).take_rows(column).tolist() == rows


def test_a_start_that_cannot_be_read_counts_as_none():
    snapshot = Snapshot()
    snapshot.table.add_node(node("n1"))
    for name, start in (("odd", "yesterday"), ("known", rfc3339(START))):
        snapshot.table.add_pod(pod(name, status={"startTime": start}), "n1")
    importance = Importance(snapshot.table)
    ranked = importance.rank_rows(np.array([0]))
    assert [each.name for each in importance.pods_by_rank(0)] == ["known", "odd"]
    assert ranked.start_ns.tolist() == [[START, NOT_STARTED]]
