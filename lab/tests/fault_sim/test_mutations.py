"""The changes that the tool of mutations makes, and the interval of what a hunt finds of them.

Not covered: a hunt itself. It runs for minutes, and `lab.tests.fault_sim.planted` has tests of its
kind.
"""

from __future__ import annotations

import ast

import pytest

from lab.tests.fault_sim.mutations import (
    SOURCE,
    Mutation,
    drawn,
    interval,
    mutated,
    mutations_of,
    summary,
)
from lab.tests.fault_sim.reach import report


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param("x = a < b", [("comparison", "x = (a <= b)")], id="a bound is moved by one"),
        pytest.param("x = a in b", [("comparison", "x = (a not in b)")], id="in becomes not in"),
        pytest.param("x = a and b", [("and, or", "x = (a or b)")], id="and becomes or"),
        pytest.param("x = é + b", [("operator", "x = (é - b)")], id="plus becomes minus"),
        pytest.param("x = f'{a}' + b", [], id="texts are not subtracted"),
        pytest.param(
            "if a:\n    b = 1", [("condition", "if (not (a)):\n    b = 1")], id="a condition"
        ),
        pytest.param("f(x)", [("dropped call", "pass")], id="a call is left out"),
        pytest.param("_log.info(x)", [], id="a call that only tells stays"),
        pytest.param(
            "def f(): return not a",
            [("result", "def f(): return (not (not a))")],
            id="an answer is turned round",
        ),
        pytest.param(
            "def f() -> None:\n    x = 1\n    y = 2",
            [("early return", "def f() -> None:\n    x = 1\n    return")],
            id="a function ends before its last step",
        ),
        pytest.param("x: a | b\nassert a < b", [], id="types and assertions stay"),
    ],
)
def test_each_kind_of_change_is_made(text: str, changed: list[tuple[str, str]]) -> None:
    made = [(each.kind, mutated(text, each)) for each in mutations_of("f.py", text)]
    assert made == changed


def test_changes_that_are_drawn_leave_a_program() -> None:
    chosen = drawn(1, 20)
    assert chosen == drawn(1, 20)
    assert chosen != drawn(2, 20)
    for each in chosen:
        text = (SOURCE / each.file).read_text()
        assert ast.dump(ast.parse(mutated(text, each))) != ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    [
        pytest.param(0, 0, 0.0, 1.0, id="nothing tried"),
        pytest.param(0, 10, 0.0, 0.278, id="nothing found"),
        pytest.param(10, 10, 0.722, 1.0, id="everything found"),
        pytest.param(20, 40, 0.352, 0.648, id="half found"),
    ],
)
def test_the_interval_is_that_of_wilson(found: int, of: int, low: float, high: float) -> None:
    assert interval(found, of) == pytest.approx((low, high), abs=0.001)


def test_changes_that_are_judged_equal_are_told_apart() -> None:
    results = [
        {"invariant": "room", "judged": ""},
        {"invariant": "", "judged": "equal: it saves time only"},
        {"invariant": "", "judged": "not run: the plugin is in no set-up"},
    ]
    assert summary(results).splitlines() == [
        "1 of 3, all: 33% (6% to 79%)",
        "1 of 2, those that can be observed: 50% (9% to 91%)",
    ]


def test_the_reach_of_runs_is_the_share_of_changes_on_lines_that_they_ran() -> None:
    changes = [
        Mutation("engine/cycle.py", 1, "result", 0, 1, "x"),
        Mutation("engine/cycle.py", 2, "result", 2, 3, "x"),
        Mutation("plugins/claims/devices/pools.py", 7, "result", 0, 1, "x"),
        Mutation("state/queue.py", 5, "result", 0, 1, "x"),
    ]
    assert report(changes, {"engine/cycle.py": {1}, "state/queue.py": {5, 6}}).splitlines() == [
        "all: 2 of 4, 50%",
        "engine: 1 of 2, 50%",
        "plugins/claims: 0 of 1, 0%",
        "state: 1 of 1, 100%",
    ]
