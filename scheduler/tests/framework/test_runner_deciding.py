"""The runner at the deciding points: who is asked, what is remembered, what the texts are."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

import pytest

from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.points import PostFilterResult, PreFilterOutcome, PreFilterResult
from moorage.framework.runner import (
    PermitOutcome,
    PostFilterOutcome,
    run_permit,
    run_post_filter,
    run_pre_enqueue,
    run_pre_filter,
    run_pre_score,
    run_reserve,
    run_unreserve,
)
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod

POD = PodInfo(pod("p"))
WAIT = Status(Code.WAIT, ("slow",))
PENDING = Status(Code.PENDING, ("soon",))
BROKEN = RuntimeError("boom")


def of(method: str, **by_name: Any):
    """A profile of plugins by name and answer, and the list of those that are asked."""
    asked: list[str] = []

    def make(name: str, value: Any) -> Fake:
        answer = answers(value)

        def call(*args: Any) -> Any:
            asked.append(name)
            return answer(*args)

        return Fake(name, **{method: call})

    return profile(*(make(name, value) for name, value in by_name.items())), asked


@pytest.mark.parametrize(
    ("plugins", "status", "asked"),
    [
        pytest.param({}, SUCCESS, [], id="no plugins"),
        pytest.param(
            {"A": SUCCESS, "B": SUCCESS}, SUCCESS, ["A", "B"], id="all plugins let the pod in"
        ),
        pytest.param(
            {"A": unresolvable("gated"), "B": SUCCESS},
            unresolvable("gated").by("A"),
            ["A"],
            id="the first plugin that rejects decides",
        ),
        pytest.param(
            {"A": BROKEN, "B": SUCCESS},
            error("boom").by("A"),
            ["A"],
            id="a plugin that raises gates the pod",
        ),
    ],
)
def test_pre_enqueue(plugins, status, asked):
    given, seen = of("pre_enqueue", **plugins)
    assert run_pre_enqueue(given, POD.pod) == status
    assert seen == asked


def named(*names: str) -> tuple[PreFilterResult, Status]:
    return PreFilterResult(frozenset(names)), SUCCESS


def said(status: Status) -> tuple[None, Status]:
    return None, status


def names(*given: str) -> frozenset[str]:
    return frozenset(given)


@pytest.mark.parametrize(
    ("plugins", "outcome", "asked", "skipped"),
    [
        pytest.param({}, PreFilterOutcome(SUCCESS), "", names(), id="no plugin"),
        pytest.param(
            {"A": said(SUCCESS), "B": (PreFilterResult(), SUCCESS)},
            PreFilterOutcome(SUCCESS),
            "AB",
            names(),
            id="a result without names restricts nothing",
        ),
        pytest.param(
            {"A": said(SKIP), "B": said(SUCCESS), "C": said(SKIP)},
            PreFilterOutcome(SUCCESS, results={"A": SKIP.by("A"), "C": SKIP.by("C")}),
            "ABC",
            names("A", "C"),
            id="Skip leaves the plugin's Filter out",
        ),
        pytest.param(
            {"A": named("x", "y"), "B": named("y", "z")},
            PreFilterOutcome(
                SUCCESS,
                names("y"),
                names("A", "B"),
                restricted_by={"A": names("x", "y"), "B": names("y", "z")},
            ),
            "AB",
            names(),
            id="names are intersected",
        ),
        pytest.param(
            {"A": named(), "B": said(SUCCESS)},
            PreFilterOutcome(
                unresolvable("node(s) didn't satisfy plugin A"),
                names(),
                names("A"),
                restricted_by={"A": names()},
            ),
            "A",
            names(),
            id="an empty set from one plugin stops at once",
        ),
        pytest.param(
            {"Z": named("x"), "A": named("y"), "C": said(SUCCESS)},
            PreFilterOutcome(
                unresolvable("node(s) didn't satisfy plugin(s) [A Z] simultaneously"),
                names(),
                names("A", "Z"),
                restricted_by={"Z": names("x"), "A": names("y")},
            ),
            "ZA",
            names(),
            id="an empty intersection names all that restricted, sorted",
        ),
        pytest.param(
            {"S": said(SKIP), "A": named("x"), "B": said(unresolvable("no")), "C": said(SUCCESS)},
            PreFilterOutcome(
                unresolvable("no").by("B"),
                None,
                names("B"),
                results={"S": SKIP.by("S"), "B": unresolvable("no").by("B")},
                restricted_by={"A": names("x")},
            ),
            "SAB",
            names("S"),
            id="UnschedulableAndUnresolvable stops and only the rejecting plugin is recorded",
        ),
        pytest.param(
            {
                "A": named("x"),
                "B": said(unschedulable("first")),
                "C": said(unschedulable("last")),
                "D": said(SKIP),
            },
            PreFilterOutcome(
                unschedulable("last").by("C"),
                None,
                names("A", "C"),
                results={
                    "B": unschedulable("first").by("B"),
                    "C": unschedulable("last").by("C"),
                    "D": SKIP.by("D"),
                },
                restricted_by={"A": names("x")},
            ),
            "ABCD",
            names("D"),
            id="Unschedulable is remembered, the last wins, the rest still run",
        ),
        pytest.param(
            {"A": said(unschedulable("no")), "B": said(unresolvable("never"))},
            PreFilterOutcome(
                unresolvable("never").by("B"),
                None,
                names("B"),
                results={"A": unschedulable("no").by("A"), "B": unresolvable("never").by("B")},
            ),
            "AB",
            names(),
            id="a later UnschedulableAndUnresolvable replaces what was remembered",
        ),
        pytest.param(
            {"A": said(PENDING), "B": said(SUCCESS)},
            PreFilterOutcome(
                error('running PreFilter plugin "A": soon').by("A"), results={"A": PENDING.by("A")}
            ),
            "A",
            names(),
            id="Pending is an error here",
        ),
        pytest.param(
            {"A": BROKEN, "B": said(SUCCESS)},
            PreFilterOutcome(
                error('running PreFilter plugin "A": boom').by("A"),
                results={"A": error("boom").by("A")},
            ),
            "A",
            names(),
            id="an exception of a plugin is contained with the plugin's name",
        ),
    ],
)
def test_pre_filter(plugins, outcome, asked, skipped):
    given, seen = of("pre_filter", **plugins)
    state = CycleState()
    assert run_pre_filter(given, state, POD, Snapshot()) == outcome
    assert ("".join(seen), state.skip_filter) == (asked, skipped)


def nominate(node: str | None, status: Status) -> tuple[PostFilterResult, Status]:
    return PostFilterResult(node), status


@pytest.mark.parametrize(
    ("plugins", "outcome", "asked"),
    [
        pytest.param({}, PostFilterOutcome(unschedulable(), ""), "", id="no plugin"),
        pytest.param(
            {"A": said(unschedulable("a1", "a2")), "B": said(unschedulable("b"))},
            PostFilterOutcome(unschedulable("a1", "a2", "b"), "a1, a2, b"),
            "AB",
            id="reasons accumulate over Unschedulable",
        ),
        pytest.param(
            {"A": said(unschedulable("a")), "B": nominate("n1", SUCCESS), "C": said(SUCCESS)},
            PostFilterOutcome(SUCCESS.by("B"), "", PostFilterResult("n1")),
            "AB",
            id="Success stops and has no text",
        ),
        pytest.param(
            {"A": nominate("n1", unschedulable("a")), "B": said(unresolvable("never")), "C": 0},
            PostFilterOutcome(unresolvable("never").by("B"), "never"),
            "AB",
            id="UnschedulableAndUnresolvable stops and its text replaces the rest",
        ),
        pytest.param(
            {"A": said(unschedulable("a")), "B": nominate("n1", error("bad")), "C": 0},
            PostFilterOutcome(error("bad").by("B"), "bad"),
            "AB",
            id="an error stops and leaves the nomination alone",
        ),
        pytest.param(
            {"A": BROKEN},
            PostFilterOutcome(error("boom").by("A"), "boom"),
            "A",
            id="an exception of a plugin is an error",
        ),
        pytest.param(
            {"A": said(SKIP)},
            PostFilterOutcome(error("").by("A"), ""),
            "A",
            id="an answer that means nothing here is an error",
        ),
        pytest.param(
            {"A": nominate("n1", unschedulable("a")), "B": nominate(None, unschedulable("b"))},
            PostFilterOutcome(unschedulable("a", "b"), "a, b", PostFilterResult("n1")),
            "AB",
            id="the last proposal with a node or a clearing is kept",
        ),
        pytest.param(
            {"A": nominate("n1", unschedulable("a")), "B": nominate("", unschedulable("b"))},
            PostFilterOutcome(unschedulable("a", "b"), "a, b", PostFilterResult("")),
            "AB",
            id="a clearing is a proposal",
        ),
    ],
)
def test_post_filter(plugins, outcome, asked):
    given, seen = of("post_filter", **plugins)
    nodes: Mapping[str, Status] = {"n1": unschedulable("full")}
    assert run_post_filter(given, CycleState(), POD, nodes) == outcome
    assert "".join(seen) == asked


@pytest.mark.parametrize(
    ("plugins", "only", "status", "asked", "skipped"),
    [
        pytest.param(
            {"A": SKIP, "B": SUCCESS}, None, SUCCESS, "AB", names("A"), id="Skip leaves Score out"
        ),
        pytest.param(
            {"A": SKIP, "B": unschedulable("no"), "C": SUCCESS},
            None,
            error('running PreScore plugin "B": no').by("B"),
            "AB",
            names(),
            id="any other status ends the cycle",
        ),
        pytest.param(
            {"A": BROKEN},
            None,
            error('running PreScore plugin "A": boom').by("A"),
            "A",
            names(),
            id="an exception of a plugin is contained",
        ),
        pytest.param(
            {"A": BROKEN, "B": SKIP},
            names("B"),
            SUCCESS,
            "B",
            names("B"),
            id="only the given plugins are run",
        ),
    ],
)
def test_pre_score(plugins, only, status, asked, skipped):
    given, seen = of("pre_score", **plugins)
    state = CycleState()
    some = None if only is None else [each for each in given.pre_scores if each.name in only]
    assert run_pre_score(given, state, POD, Snapshot().all(), only=some) == status
    assert ("".join(seen), state.skip_score) == (asked, skipped)


@pytest.mark.parametrize(
    ("plugins", "status", "asked"),
    [
        pytest.param({"A": SUCCESS, "B": SUCCESS}, SUCCESS, "AB", id="in order"),
        pytest.param(
            {"A": unschedulable("no"), "B": SUCCESS},
            unschedulable("no").by("A"),
            "A",
            id="a rejection keeps its code and plugin",
        ),
        pytest.param(
            {"A": PENDING, "B": SUCCESS}, PENDING.by("A"), "A", id="Pending is a rejection"
        ),
        pytest.param(
            {"A": BROKEN, "B": SUCCESS},
            error('running Reserve plugin "A": boom').by("A"),
            "A",
            id="an error says where",
        ),
        pytest.param(
            {"A": WAIT},
            error('running Reserve plugin "A": slow').by("A"),
            "A",
            id="Wait is an error here",
        ),
    ],
)
def test_reserve(plugins, status, asked):
    given, seen = of("reserve", **plugins)
    assert run_reserve(given, CycleState(), POD, "n1") == status
    assert "".join(seen) == asked


def test_unreserve_runs_all_last_first_whatever_breaks(caplog):
    calls: list[str] = []

    def undo(name: str) -> Any:
        def call(state: CycleState, info: PodInfo, node: str) -> None:
            calls.append(f"{name} {info.name} {node}")
            if name == "B":
                raise BROKEN

        return call

    plugins = [Fake(n, reserve=answers(SUCCESS), unreserve=undo(n)) for n in "ABC"]
    with caplog.at_level(logging.ERROR):
        run_unreserve(profile(*plugins), CycleState(), POD, "n1")
    assert calls == ["C p n1", "B p n1", "A p n1"]
    assert [record.getMessage() for record in caplog.records] == ["plugin B failed at Unreserve"]


ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


@pytest.mark.parametrize(
    ("plugins", "outcome", "asked"),
    [
        pytest.param({"A": (SUCCESS, 0.0)}, PermitOutcome(SUCCESS), "A", id="allowed"),
        pytest.param(
            {"A": (WAIT, 5.0), "B": (SUCCESS, 9.0), "C": (Status(Code.WAIT), 10_000.0)},
            PermitOutcome(Status(Code.WAIT, (ASKED_TO_WAIT,)), {"A": 5.0, "C": 900.0}),
            "ABC",
            id="waits are collected, at most fifteen minutes each",
        ),
        pytest.param(
            {"A": (WAIT, 5.0)},
            PermitOutcome(Status(Code.WAIT, ("slow", ASKED_TO_WAIT)), {"A": 5.0}),
            "A",
            id="the reasons of the last that waits come first",
        ),
        pytest.param(
            {"A": (WAIT, math.nan), "B": (WAIT, -1.0), "C": (WAIT, math.inf)},
            PermitOutcome(
                Status(Code.WAIT, ("slow", ASKED_TO_WAIT)), {"A": 0.0, "B": 0.0, "C": 900.0}
            ),
            "ABC",
            id="NaN and negative seconds count as 0",
        ),
        pytest.param(
            {"A": (WAIT, 5.0), "B": (unschedulable("no"), 0.0), "C": (SUCCESS, 0.0)},
            PermitOutcome(unschedulable("no").by("B")),
            "AB",
            id="a rejection ends the point",
        ),
        pytest.param(
            {"A": BROKEN, "B": (SUCCESS, 0.0)},
            PermitOutcome(error('running Permit plugin "A": boom').by("A")),
            "A",
            id="an error ends the point",
        ),
    ],
)
def test_permit(plugins, outcome, asked):
    given, seen = of("permit", **plugins)
    assert run_permit(given, CycleState(), POD, "n1") == outcome
    assert "".join(seen) == asked


def test_reading_state_nobody_wrote_is_an_error_without_a_traceback(caplog):
    key: StateKey[int] = StateKey("PreFilterX")
    plugin = Fake("A", reserve=lambda state, info, node: state.read(key))
    with caplog.at_level(logging.ERROR):
        status = run_reserve(profile(plugin), CycleState(), POD, "n1")
    assert status == error('running Reserve plugin "A": not found').by("A")
    assert caplog.records == []


def test_an_exception_without_text_is_told_by_its_type():
    given, _ = of("reserve", A=ValueError())
    assert run_reserve(given, CycleState(), POD, "n1").message == (
        'running Reserve plugin "A": ValueError'
    )
