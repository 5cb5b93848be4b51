"""Statuses, their array form, scalar plugins adapted to it, cycle state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.framework.adapt import as_filter, as_score
from moorage.framework.cycle_state import CycleState, StateKey, StateMissingError
from moorage.framework.status import (
    SUCCESS,
    Code,
    ReasonTable,
    Status,
    answer_from,
    answer_where,
    unresolvable,
    unschedulable,
)
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.framework.builders import Fake, answers
from scheduler.tests.snapshot.builders import cluster, node, pod

POD = PodInfo(pod("p"))


@pytest.mark.parametrize(
    ("code", "text", "rejected"),
    [
        pytest.param(Code.SUCCESS, "Success", False, id="0"),
        pytest.param(Code.ERROR, "Error", False, id="1"),
        pytest.param(Code.UNSCHEDULABLE, "Unschedulable", True, id="2"),
        pytest.param(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "UnschedulableAndUnresolvable", True, id="3"
        ),
        pytest.param(Code.WAIT, "Wait", False, id="4"),
        pytest.param(Code.SKIP, "Skip", False, id="5"),
        pytest.param(Code.PENDING, "Pending", True, id="6"),
    ],
)
def test_codes_are_numbered_and_named_as_upstream(code, text, rejected, request):
    assert int(code) == int(request.node.callspec.id)
    status = Status(code, ("a", "b")).by("P")
    assert (code.text, status.rejected, status.ok) == (text, rejected, code == 0)
    assert (status.message, status.plugin) == ("a, b", "P")


def test_reasons_are_interned_as_tuples():
    table = ReasonTable()
    one, two = table.intern("a", "b"), table.intern("a, b")
    assert (one, two, table.intern("a", "b"), table.intern()) == (1, 2, 1, 0)
    assert [table.reasons(i) for i in range(3)] == [(), ("a", "b"), ("a, b",)]


def test_no_failure_is_no_answer():
    assert answer_where(np.zeros(3, np.bool_), Code.UNSCHEDULABLE, 1) is None
    assert answer_from([SUCCESS, SUCCESS], ReasonTable()) is None


def test_one_way_to_fail():
    answer = answer_where(np.array([True, False]), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 300)
    assert answer is not None
    assert (answer.code_n.tolist(), answer.reason_n.tolist()) == ([3, 0], [300, 0])
    assert (answer.code_n.dtype.name, answer.reason_n.dtype.name) == ("uint8", "int32")


def by_node(**values: Any) -> Any:
    return lambda state, info, node_info: values[node_info.name]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(None, [(0, ()), (2, ("full", "late")), (3, ("tainted",))], id="all rows"),
        pytest.param([2, 0], [(3, ("tainted",)), (0, ())], id="some rows, in their order"),
        pytest.param([0], None, id="all asked pass"),
        pytest.param([], None, id="no row asked"),
    ],
)
def test_a_scalar_filter_is_asked_row_by_row(rows, expected):
    snapshot, reasons = cluster(node("a"), node("b"), node("c")), ReasonTable()
    plugin = Fake(
        "Mine",
        filter_node=by_node(a=SUCCESS, b=unschedulable("full", "late"), c=unresolvable("tainted")),
    )
    adapted = as_filter(plugin, snapshot, reasons)
    view = snapshot.all() if rows is None else snapshot.rows(rows)
    answer = adapted.filter(CycleState(), POD, view)
    told = None
    if answer is not None:
        pairs = zip(answer.code_n.tolist(), answer.reason_n.tolist(), strict=True)
        told = [(code, reasons.reasons(reason)) for code, reason in pairs]
    assert told == expected
    assert adapted.name == "Mine"


def test_a_scalar_score_is_asked_row_by_row():
    snapshot = cluster(node("a"), node("b"), node("c"))
    adapted = as_score(Fake("Mine", score_node=by_node(a=5, b=0, c=100)), snapshot)
    scores = adapted.score(CycleState(), POD, snapshot.rows([2, 0]))
    assert (scores.tolist(), scores.dtype.name) == ([100, 5], "int64")
    assert adapted.score(CycleState(), POD, snapshot.rows([])).tolist() == []
    assert adapted.name == "Mine"


def test_vector_plugins_are_taken_as_they_are():
    snapshot = cluster()
    plugin: Any = Fake("V", filter=answers(None), score=answers(None))
    assert as_filter(plugin, snapshot, ReasonTable()) is plugin
    assert as_score(plugin, snapshot) is plugin


def test_a_plugin_that_extends_neither_form_is_rejected():
    with pytest.raises(AssertionError, match="does not extend FilterPlugin"):
        as_filter(Fake("X"), cluster(), ReasonTable())
    with pytest.raises(AssertionError, match="does not extend ScorePlugin"):
        as_score(Fake("X"), cluster())


def test_cycle_state_keys_are_their_own_identity():
    key, twin = StateKey[int]("K"), StateKey[int]("K")
    state = CycleState()
    state.write(key, 1)
    assert (state.read(key), state.find(key), state.find(twin)) == (1, 1, None)
    with pytest.raises(StateMissingError, match="not found"):
        state.read(twin)
    state.delete(key)
    state.delete(key)
    assert state.find(key) is None


def test_a_copied_state_shares_values_and_goes_its_own_way():
    key, other = StateKey[int]("K"), StateKey[int]("O")
    state = CycleState()
    state.write(key, 1)
    state.skip_filter = state.skip_score = state.skip_pre_bind = frozenset({"A"})
    twin = state.copy()
    twin.write(key, 2)
    twin.skip_filter = frozenset()
    assert (state.read(key), state.skip_filter) == (1, frozenset({"A"}))
    assert (twin.skip_score, twin.skip_pre_bind) == (frozenset({"A"}),) * 2
    twin.write(other, 3)
    state.absorb(twin)
    assert (state.read(key), state.read(other), state.skip_filter) == (2, 3, frozenset({"A"}))
