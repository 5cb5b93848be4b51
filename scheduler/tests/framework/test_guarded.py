"""Plugins from outside: what they may answer, and what becomes of those that misbehave.

Left out: stopping a call whose time is up (``scheduler/tests/service/test_plugin_watch.py``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.base.errors import ConfigError
from moorage.config.merge import ProfileSpec
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.select_node import smallest_name
from moorage.framework.containment import (
    OVERRAN,
    RAISED,
    WRONG_ANSWER,
    Containment,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.extender import EVERY_EVENT
from moorage.framework.loading import entry_of
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.runner import run_permit, run_pre_enqueue, run_reserve
from moorage.framework.status import SUCCESS, Code, FilterAnswer, Status, error, unschedulable
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.framework.builders import handle
from scheduler.tests.framework.outside import (
    BOOM,
    NODES,
    POD,
    EndsAt,
    plugin_class,
    profile,
    snapshot,
)

SCORES = np.array([1, 2, 3])


def decide(*names: str, **methods: Any) -> tuple[Decision, Containment]:
    given = snapshot(*(names or NODES))
    made, containment = profile(given, **methods)
    return Cycle(made, given, smallest_name).decide(POD), containment


def by_node(**answers: Any) -> Any:
    """A scalar method that answers by the node's name, or raises what it has for it."""

    def method(state: object, asked: object, at: Any) -> Any:
        answer = answers[at.name]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return method


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(True, SUCCESS, id="True means success"),
        pytest.param(None, SUCCESS, id="None means success"),
        pytest.param(np.bool_(1), SUCCESS, id="NumPy's True means success"),
        pytest.param(SUCCESS, SUCCESS, id="a status is used unchanged"),
        pytest.param(
            False,
            unschedulable("node(s) didn't satisfy plugin Mine"),
            id="False is a rejection with a reason of our own",
        ),
        pytest.param(
            "too hot", unschedulable("too hot"), id="a text is a rejection with this reason"
        ),
        pytest.param(
            "",
            unschedulable("node(s) didn't satisfy plugin Mine"),
            id="an empty text is a rejection with a reason of our own",
        ),
        pytest.param(
            7,
            error(
                "plugin answered 7; understood is True, False, a text that says why not, None or a "
                "Status"
            ),
            id="a number is an error",
        ),
        pytest.param(BOOM, error("boom"), id="raising is an error"),
        pytest.param(
            SystemExit(3),
            error("it tried to end the process: SystemExit(3)"),
            id="ending the process is an error",
        ),
    ],
)
def test_yes_or_no(answer: Any, status: Status) -> None:
    gate, _ = profile(pre_enqueue=answer)
    permit, _ = profile(permit=answer)
    for found in (
        run_pre_enqueue(gate, POD.pod),
        run_permit(permit, CycleState(), POD, "a").status,
    ):
        assert found.code is status.code
        assert status.message in found.message


@pytest.mark.parametrize(
    ("answers", "node_name", "message"),
    [
        pytest.param({"a": False, "b": "no", "c": True}, "c", "", id="the node that passes"),
        pytest.param(
            {"a": "wet", "b": "dry", "c": "wet"},
            "",
            "0/3 nodes are available: 1 dry, 2 wet.",
            id="reasons are counted",
        ),
        pytest.param(
            {"a": BOOM, "b": True, "c": True},
            "",
            'running "Mine" filter plugin: node a: boom',
            id="raising over a node fails the attempt, with plugin and node",
        ),
        pytest.param(
            {"a": True, "b": 3.5, "c": True},
            "",
            'running "Mine" filter plugin: node b: plugin answered 3.5; understood is True, False, '
            "a text that says why not, None or a Status",
            id="a wrong type fails the attempt, with plugin and node",
        ),
    ],
)
def test_a_scalar_filter(answers: dict[str, Any], node_name: str, message: str) -> None:
    decision, _ = decide(filter_node=by_node(**answers))
    assert (decision.node_name, decision.message) == (node_name, message)


def test_breaking_over_many_nodes_counts_once() -> None:
    decision, containment = decide(filter_node=BOOM)
    assert decision.outcome is Outcome.ERROR
    assert containment.failures == {("Mine", "Filter", RAISED): 1}


@pytest.mark.parametrize(
    ("answers", "node_name", "message"),
    [
        pytest.param({"a": 1, "b": 2, "c": 0}, "b", "", id="the highest wins"),
        pytest.param({"a": 1.4, "b": 1, "c": 1.6}, "c", "", id="fractions are rounded"),
        pytest.param(
            {"a": 0, "b": np.float32(3), "c": 2}, "b", "", id="NumPy's numbers are numbers"
        ),
        pytest.param(
            {"a": 1, "b": math.nan, "c": 0},
            "",
            "node b: plugin answered nan; understood is a finite number",
            id="NaN",
        ),
        pytest.param(
            {"a": 1, "b": -math.inf, "c": 0},
            "",
            "node b: plugin answered -inf; understood is a finite number",
            id="infinity",
        ),
        pytest.param(
            {"a": 1, "b": None, "c": 0},
            "",
            "node b: plugin answered None; understood is a number",
            id="None instead of a score",
        ),
        pytest.param(
            {"a": 1, "b": True, "c": 0},
            "",
            "node b: plugin answered True; understood is a number",
            id="a bool instead of a score",
        ),
        pytest.param(
            {"a": 1, "b": 2**70, "c": 0},
            "",
            f"node b: plugin answered {2**70}; understood is a number that fits 64 bits",
            id="a number too large",
        ),
        pytest.param({"a": 1, "b": BOOM, "c": 0}, "", "node b: boom", id="raising"),
    ],
)
def test_a_scalar_score(answers: dict[str, Any], node_name: str, message: str) -> None:
    decision, containment = decide(score_node=by_node(**answers))
    assert decision.node_name == node_name
    wrapped = f'running Score plugins: plugin "Mine" failed with: {message}' if message else ""
    assert decision.message == wrapped
    assert sum(containment.failures.values()) == bool(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(101, "101", id="more than 100"),
        pytest.param(-1, "-1", id="less than 0"),
    ],
)
def test_a_score_out_of_range_fails_the_attempt(value: int, message: str) -> None:
    decision, _ = decide(score_node=value)
    assert decision.message == (
        'applying score defaultWeights on Score plugins: plugin "Mine" returns an invalid score '
        f"{message}, it should in the range of [0, 100] after normalizing"
    )


def filled(code: Any, reason: Any) -> FilterAnswer:
    return FilterAnswer(np.asarray(code), np.asarray(reason))


@pytest.mark.parametrize(
    ("answer", "node_name", "message"),
    [
        pytest.param(None, "a", "", id="None passes every row"),
        pytest.param(
            np.array([False, True, False]), "b", "", id="a mask passes the rows that are True"
        ),
        pytest.param([False, False, True], "c", "", id="a list of bools"),
        pytest.param(
            filled([2, 0, 2], [0, 0, 0]), "b", "", id="codes and reasons are used unchanged"
        ),
        pytest.param(
            np.array([True, True]),
            "",
            "plugin answered with shape (2,) instead of (3,)",
            id="short",
        ),
        pytest.param(
            np.array([1, 1, 0]),
            "",
            "plugin answered array([1, 1, 0]); understood is None, a FilterAnswer or 3 bools",
            id="numbers instead of a mask",
        ),
        pytest.param(
            filled([0, 0], [0, 0]),
            "",
            "code_n has shape (2,) instead of (3,)",
            id="codes that are too short",
        ),
        pytest.param(
            filled([0, 0, 9], [0, 0, 0]),
            "",
            "code_n has values outside 0 to 6",
            id="an unknown code",
        ),
        pytest.param(
            filled([0, 0, 2], [0, 0, 99]),
            "",
            "reason_n has values outside 0 to 0",
            id="an unknown reason id",
        ),
        pytest.param(
            filled([0.0, 0.0, 2.0], [0, 0, 0]),
            "",
            "code_n of the answer is no array of whole numbers",
            id="fractional codes",
        ),
    ],
)
def test_a_vector_filter(answer: Any, node_name: str, message: str) -> None:
    decision, containment = decide(filter=lambda *_: answer)
    wrapped = f'running "Mine" filter plugin: {message}' if message else ""
    assert (decision.node_name, decision.message) == (node_name, wrapped)
    kinds = {("Mine", "Filter", WRONG_ANSWER): 1} if message else {}
    assert containment.failures == kinds


@pytest.mark.parametrize(
    ("answer", "node_name", "message"),
    [
        pytest.param(np.array([1, 3, 2]), "b", "", id="int64"),
        pytest.param(np.array([1, 3, 2], np.int8), "b", "", id="smaller integers"),
        pytest.param([0.2, 0.1, 1.7], "c", "", id="fractions are rounded"),
        pytest.param(
            np.array([1, 2]), "", "plugin answered with shape (2,) instead of (3,)", id="short"
        ),
        pytest.param(
            np.array([1.0, math.nan, 2.0]),
            "",
            "plugin answered nan for row 1; finite numbers are understood",
            id="NaN",
        ),
        pytest.param(
            np.array(["1", "2", "3"]),
            "",
            "plugin answered with dtype <U1; numbers are understood",
            id="texts",
        ),
        pytest.param(
            None, "", "plugin answered with shape () instead of (3,)", id="None instead of scores"
        ),
    ],
)
def test_a_vector_score(answer: Any, node_name: str, message: str) -> None:
    decision, containment = decide(score=lambda *_: answer)
    wrapped = f'running Score plugins: plugin "Mine" failed with: {message}' if message else ""
    assert (decision.node_name, decision.message) == (node_name, wrapped)
    assert containment.failures == ({("Mine", "Score", WRONG_ANSWER): 1} if message else {})


def test_normalize_is_checked_and_cannot_change_the_raw_scores() -> None:
    def spoil(state: object, asked: object, raw_n: Any) -> Any:
        raw_n[:] = 0
        return np.array([50, 100, math.nan])

    decision, _ = decide(score=lambda *_: np.array([1, 2, 3]), normalize=spoil)
    assert decision.message == (
        'running Normalize on Score plugins: plugin "Mine" failed with: plugin answered nan for '
        "row 2; finite numbers are understood"
    )


@pytest.mark.parametrize(
    ("answer", "node_name", "message"),
    [
        pytest.param((PreFilterResult(frozenset("b")), SUCCESS), "b", "", id="names and a success"),
        pytest.param(True, "a", "", id="a success alone"),
        pytest.param(
            "not today",
            "",
            "0/3 nodes are available: not today.",
            id="a text alone rejects every node",
        ),
        pytest.param(
            (PreFilterResult(["b"]), SUCCESS),  # type: ignore[arg-type]
            "",
            "running PreFilter plugin \"Mine\": plugin answered ['b']; understood is a "
            "frozenset of node names",
            id="a list of names",
        ),
        pytest.param(BOOM, "", 'running PreFilter plugin "Mine": boom', id="raising"),
    ],
)
def test_pre_filter(answer: Any, node_name: str, message: str) -> None:
    decision, _ = decide(pre_filter=answer)
    assert (decision.node_name, decision.message.strip()) == (node_name, message)


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        pytest.param((Status(Code.WAIT), 5), {"Mine": 5.0}, id="a wait has its seconds"),
        pytest.param((True, None), {}, id="without a wait the seconds do not matter"),
    ],
)
def test_permit(answer: Any, waits: dict[str, float]) -> None:
    made, _ = profile(permit=lambda *_: answer)
    outcome = run_permit(made, CycleState(), POD, "a")
    assert outcome.waits == waits


@pytest.mark.parametrize("seconds", [None, -1.0, math.nan, True, "5"])
def test_a_wait_without_usable_seconds_is_an_error(seconds: Any) -> None:
    made, _ = profile(permit=lambda *_: (Status(Code.WAIT), seconds))
    outcome = run_permit(made, CycleState(), POD, "a")
    assert outcome.status.code is Code.ERROR
    assert 'running Permit plugin "Mine"' in outcome.status.message


def test_reserve_names_the_plugin_and_unreserve_is_contained() -> None:
    made, containment = profile(reserve=BOOM, unreserve=BOOM)
    status = run_reserve(made, CycleState(), POD, "a")
    assert status == error('running Reserve plugin "Mine": boom').by("Mine")
    assert containment.failures == {("Mine", "Reserve", RAISED): 1}


ANSWERS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.booleans(), st.integers(0, 100)), min_size=1
)


@given(ANSWERS)
def test_scalar_and_vector_form_decide_alike(answers: dict[str, tuple[bool, int]]) -> None:
    names = list(answers)

    def column(index: int) -> Any:
        def method(state: object, asked: object, view: Any) -> Any:
            return np.array([answers[names[row]][index] for row in view.row_numbers()])

        return method

    scalar, _ = decide(
        *names,
        filter_node=by_node(**{name: passes for name, (passes, _) in answers.items()}),
        score_node=by_node(**{name: score for name, (_, score) in answers.items()}),
    )
    vector, _ = decide(*names, filter=column(0), score=column(1))
    assert (scalar.node_name, scalar.message) == (vector.node_name, vector.message)


# -- ordering the queue ----------------------------------------------------------------------------


def test_keys_of_a_queue_sort_plugin_order_the_queue() -> None:
    made, _ = profile(sort_key=lambda priority, t, asked: (asked.name,))
    keys = [made.queue_sort.sort_key(0, 5, pod(name)) for name in ("b", "c", "a")]
    assert sorted(keys) == [(0, ("a",)), (0, ("b",)), (0, ("c",))]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(BOOM, id="raising"),
        pytest.param("text", id="a key that is no tuple"),
        pytest.param((1, 2), id="a key of another length than the first"),
        pytest.param((1,), id="a key of another type than the first"),
        pytest.param((None,), id="a key that cannot be compared"),
        pytest.param((math.nan,), id="a key with NaN"),
    ],
)
def test_a_pod_without_a_usable_key_comes_last(bad: Any) -> None:
    answers = iter([("m",), bad, bad, ("z",)])

    def key(*_: object) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    made, containment = profile(sort_key=key)
    keys = [
        made.queue_sort.sort_key(priority, t, pod())
        for priority, t in [(0, 1), (0, 2), (9, 3), (0, 4)]
    ]
    assert [keys.index(each) for each in sorted(keys)] == [0, 3, 2, 1]
    assert sum(containment.failures.values()) == 2


# -- waking pods -----------------------------------------------------------------------------------


def compared(less: Any, *pods: tuple[int, str]) -> tuple[list[str], Containment]:
    """Return the names of pods of a priority each, in the order of a comparator."""
    made, containment = profile(less=less)
    keys = [
        (made.queue_sort.sort_key(priority, at, pod(name)), name)
        for at, (priority, name) in enumerate(pods)
    ]
    return [name for _, name in sorted(keys, key=lambda each: each[0])], containment


def test_a_comparator_orders_the_queue() -> None:
    order, containment = compared(
        lambda first, second: first.pod.name < second.pod.name, (0, "b"), (9, "c"), (0, "a")
    )
    assert (order, containment.failures) == (["a", "b", "c"], {})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(BOOM, RAISED, id="a comparator that raises"),
        pytest.param(1, WRONG_ANSWER, id="a comparator that answers a number"),
    ],
)
def test_a_comparator_without_an_answer_leaves_the_order_of_priority_sort(
    answer: Any, kind: str
) -> None:
    def less(first: object, second: object) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    order, containment = compared(less, (0, "b"), (9, "c"), (0, "a"))
    assert order == ["c", "b", "a"]
    assert set(containment.failures) == {("Mine", "QueueSort", kind)}


def test_a_key_wins_over_a_comparator() -> None:
    made, _ = profile(
        sort_key=lambda priority, t, asked: (asked.name,), less=lambda first, second: 1 / 0
    )
    keys = [made.queue_sort.sort_key(0, 5, pod(name)) for name in ("b", "a")]
    assert sorted(keys) == keys[::-1]


def test_a_plugin_that_says_nothing_about_events_waits_for_every_one() -> None:
    made, _ = profile(filter_node=True)
    assert made.registrations() == {"Mine": EVERY_EVENT}


def test_hints_are_called_within_the_budget() -> None:
    event = ClusterEvent(Resource.NODE, Action.ADD)
    hint = EventRegistration(event, lambda waiting, old, new: old is None)
    made, containment = profile(filter_node=True, events_to_register=lambda: [hint])
    (found,) = made.registrations()["Mine"]
    assert found.event == event
    assert found.hint is not None
    assert [found.hint(pod(), None, node()), found.hint(pod(), node(), node())] == [True, False]
    assert not containment.failures


@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param(BOOM, 'plugin "Mine" at events_to_register: boom', id="raising"),
        pytest.param(
            ["Pod"],
            "plugin \"Mine\" at events_to_register: 'Pod' is no registration",
            id="something else",
        ),
    ],
)
def test_events_that_cannot_be_registered_stop_the_start(events: Any, message: str) -> None:
    made, _ = profile(filter_node=True, events_to_register=events)
    with pytest.raises(ConfigError) as problem:
        made.registrations()
    assert str(problem.value) == message


def test_a_plugin_that_cannot_be_made_stops_the_start() -> None:
    def broken(self: object) -> None:
        raise BOOM

    class_: Any = plugin_class(filter_node=True)
    class_.__init__ = broken
    registry = Registry([entry_of(class_, origin="here")])
    with pytest.raises(ConfigError) as problem:
        Profile(ProfileSpec("mine", {"filter": ("Mine",)}, {}, {}), registry, handle())
    assert str(problem.value) == (
        'creating profile for scheduler name default-scheduler: initializing plugin "Mine": boom'
    )


# -- the budget -----------------------------------------------------------------------------------


def test_a_call_whose_time_is_up_fails_the_attempt() -> None:
    given = snapshot(*NODES)
    made, containment = profile(given, filter_node=True)
    containment.budget = EndsAt(1)
    decision = Cycle(made, given, smallest_name).decide(POD)
    assert decision.message == 'running "Mine" filter plugin: Mine at Filter took too long'
    assert containment.failures == {("Mine", "Filter", OVERRAN): 1}
    assert Cycle(made, given, smallest_name).decide(POD).node_name == "a"
