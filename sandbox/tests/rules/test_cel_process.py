"""Rules that may take long: evaluated by the CEL process, or refused for their cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.cel.budget import USED_UP
from moorage.cel.evaluators import LATER, TooLongHere, running_on
from moorage_sandbox.rules import cel_process
from moorage_sandbox.rules.cel_process import CelProcess
from moorage_sandbox.rules.validation import rules_broken_by
from sandbox.tests.rules.builders import COUNT, TEXT, TEXTS, obj, with_rules

pytest.importorskip("cel_expr_python")

MEGA = "x" * 1_000_000
LIST = ["a"] * 100


def _doubled(times: int) -> str:
    text = f"a{times}.size() > 0"
    for n in range(times, 0, -1):
        text = f"cel.bind(a{n}, a{n - 1} + a{n - 1}, {text})"
    return f"cel.bind(a0, self.s, {text})"


def _compared(times: int) -> str:
    text = f"a{times} == dyn(a{times})"
    for n in range(times, 0, -1):
        text = f"cel.bind(a{n}, [a{n - 1}, a{n - 1}], {text})"
    return f"cel.bind(a0, self.s, {text})"


# Each makes 2 GB of text or more, or reads as much.
REFUSED = [
    pytest.param("self.l.all(x, (self.s + x).size() > 0)", {"s": MEGA, "l": LIST * 90}, id="sums"),
    pytest.param(_doubled(12), {"s": MEGA, "l": []}, id="sums of sums"),
    pytest.param(_doubled(20), {"s": "x" * 2000, "l": []}, id="twenty sums of a short text"),
    pytest.param(
        "self.s.replace('x', self.s.substring(0, 9000)).size() > 0",
        {"s": MEGA, "l": []},
        id="a product",
    ),
    pytest.param("self.l.join(self.s).size() > 0", {"s": MEGA, "l": LIST * 50}, id="a long join"),
    pytest.param("self.l.all(x, self.l == self.l)", {"s": "", "l": LIST * 100}, id="long lists"),
    pytest.param(_compared(25), {"s": "x", "l": []}, id="lists of lists, compared"),
]
SLOW = "self.l.all(x, !self.s.contains(x))"
SLOW_VALUE = {"s": MEGA[:2000], "l": ["b"] * 2000}
OVER = (
    "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no "
    "further validation rules will be run due to call cost exceeds limit for rule: "
)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[CelProcess]:
    # A busy machine may take seconds to start it.
    monkeypatch.setattr(cel_process, "DEADLINE_SECONDS", 60.0)
    process = CelProcess()
    with running_on(process):
        yield process
    process.close()


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        pytest.param("self.s == 'a'", {"s": MEGA}, False, id="a long text that is compared"),
        pytest.param("self.s + 'a' == 'b'", {"s": "a" * 500}, False, id="a sum"),
        pytest.param("self.l.all(x, x.size() < 9)", {"s": "", "l": LIST}, False, id="a loop"),
        pytest.param("self.s + 'a' == 'b'", {"s": MEGA}, False, id="a sum of a long text"),
        pytest.param(SLOW, SLOW_VALUE, True, id="a long text searched for thousands"),
        pytest.param(
            "self.l.all(x, self.l.all(y, y.matches('[0-9a-z]{200}')))",
            {"s": "", "l": ["a"] * 20},
            True,
            id="hundreds of regular expressions",
        ),
    ],
)
def test_rules_on_large_values_are_evaluated_in_the_cel_process(
    rule: str, value: Any, expected: bool
):
    schema = obj(rule, s=TEXT, l=TEXTS)
    with running_on(LATER), contextlib.suppress(TooLongHere):
        assert OVER[-20:] not in str(rules_broken_by(schema, value, None))
        assert not expected
        return
    assert expected


def test_many_quick_rules_together_are_evaluated_in_the_cel_process():
    schema = obj(l={"type": "array", "items": with_rules(COUNT, "self >= 0")})
    with running_on(LATER):
        assert rules_broken_by(schema, {"l": [1] * 1000}, None) == []
        with pytest.raises(TooLongHere):
            rules_broken_by(schema, {"l": [1] * 10_000}, None)


def test_on_the_event_loop_a_slow_rule_is_deferred():
    schema = obj(SLOW, s=TEXT, l=TEXTS)
    with running_on(LATER):
        assert len(rules_broken_by(schema, {"s": "a", "l": ["a"]}, None)) == 1
        with pytest.raises(TooLongHere):
            rules_broken_by(schema, SLOW_VALUE, None)


@pytest.mark.parametrize(("rule", "value"), REFUSED)
@pytest.mark.parametrize("where", [LATER, None], ids=["on the loop", "without a process"])
def test_a_rule_over_the_cost_limit_refuses_the_object(rule: str, value: Any, where: Any):
    schema = obj(rule, s=TEXT, l=TEXTS)
    with running_on(where):
        [error] = rules_broken_by(schema, value, None, "spec")
    assert error.message == OVER + rule


def test_rules_over_the_cost_limit_together_refuse_the_object():
    rules = [f"self.s.replace('x', 'yy').replace('y', 'z').size() > {n}" for n in range(30)]
    schema = obj(*rules, s=TEXT)
    with running_on(None):
        [error] = rules_broken_by(schema, {"s": MEGA[:900_000]}, None, "spec")
    assert error.message.startswith(OVER)


def test_a_message_over_the_cost_limit_is_left_out():
    rule = {
        "rule": "false",
        "messageExpression": _doubled(20).replace(" > 0", "") + " == 1 ? '' : ''",
    }
    schema = obj(s=TEXT) | {"x-kubernetes-validations": [rule]}
    with running_on(None):
        [error] = rules_broken_by(schema, {"s": "x" * 2000}, None, "spec")
    assert error.message == 'spec: Invalid value: "object": failed rule: false'


def test_a_rule_beyond_the_time_limit_of_the_process_refuses_the_object(
    process: CelProcess, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cel_process, "DEADLINE_SECONDS", 0.0)
    [error] = rules_broken_by(obj(SLOW, s=TEXT, l=TEXTS), SLOW_VALUE, None, "spec")
    assert error.message == f'spec: Invalid value: "object": {USED_UP}'


@pytest.mark.parametrize("old", [None, {"s": "x", "l": ["b"]}])
def test_the_cel_process_gives_the_same_errors_as_this_process(old: Any, process: CelProcess):
    rules = (f"!{SLOW}", "self.l == oldSelf.l", "self.l.size() == 9")
    schema, value = obj(*rules, s=TEXT, l=TEXTS), SLOW_VALUE
    errors = rules_broken_by(schema, value, old, "spec")
    again = rules_broken_by(schema, value, old, "spec")
    with running_on(None):
        assert errors == again == rules_broken_by(schema, value, old, "spec")
    assert len(errors) == (3 if old else 2)


def test_a_process_that_has_been_ended_is_started_again(process: CelProcess):
    schema, value = obj(f"!{SLOW}", s=TEXT, l=TEXTS), SLOW_VALUE
    assert "failed rule" in rules_broken_by(schema, value, None)[0].message
    assert process._running is not None
    child, _ = process._running
    child.kill()
    child.wait()
    assert USED_UP in rules_broken_by(schema, value, None)[0].message
    assert "failed rule" in rules_broken_by(schema, value, None)[0].message
