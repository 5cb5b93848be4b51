"""What rules say of values: which old value they see, what a broken one is called, what is let be.

Whether a rule may stand in a definition at all is in `test_compiling`.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cel.values import Size, cel_value
from sandbox.tests.rules.builders import (
    COUNT,
    TEXT,
    TEXTS,
    broken,
    listed,
    obj,
    rule,
    with_rules,
)

GROWS = rule("self >= oldSelf", message="may only grow")
FIXED = rule("self == oldSelf", message="is fixed")
SHRUNK = ['spec.n: Invalid value: "integer": may only grow']


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        pytest.param({"n": 2}, {"n": 1}, [], id="the number grows"),
        pytest.param({"n": 1}, {"n": 2}, SHRUNK, id="the number shrinks"),
        pytest.param({"n": 1}, None, [], id="the object is new"),
        pytest.param({"n": 1}, {}, [], id="the field is new"),
        pytest.param({"n": 1}, {"n": None}, [], id="the old value is null"),
        pytest.param({}, {"n": 1}, [], id="the field goes"),
        pytest.param({"n": None}, {"n": 1}, [], id="the new value is null"),
    ],
)
def test_a_transition_rule_compares_the_new_value_with_the_old(
    new: Any, old: Any, errors: list[str]
):
    schema = obj(n=with_rules(COUNT | {"nullable": True}, GROWS))
    assert broken(schema, new, old) == errors


@pytest.mark.parametrize(
    ("schema", "new", "old", "errors"),
    [
        pytest.param(
            listed("map", obj(name=TEXT, n=with_rules(COUNT, GROWS))),
            [{"name": "b", "n": 3}, {"name": "a", "n": 1}, {"name": "c", "n": 0}],
            [{"name": "a", "n": 2}, {"name": "b", "n": 2}],
            ['spec.x[1].n: Invalid value: "integer": may only grow'],
            id="items of a keyed list are found by their key",
        ),
        pytest.param(
            listed("map", obj(FIXED, name=TEXT, n=COUNT)),
            [{"name": "b"}, {"name": "a", "n": 1}],
            [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
            ['spec.x[0]: Invalid value: "object": is fixed'],
            id="so are whole items",
        ),
        pytest.param(
            listed("set", TEXT, FIXED),
            ["b", "a"],
            ["a", "b"],
            ['spec.x: Invalid value: "array": is fixed'],
            id="a set is compared in its order",
        ),
        pytest.param(
            obj(FIXED, at={"type": "string", "format": "duration"}),
            {"at": "90m"},
            {"at": "1h30m"},
            ['spec.x: Invalid value: "object": is fixed'],
            id="a duration inside an object is compared as text",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": with_rules(COUNT, GROWS)},
            {"a": 1, "b": 1},
            {"a": 2},
            ['spec.x[a]: Invalid value: "integer": may only grow'],
            id="entries of a map are found by their name",
        ),
        pytest.param(
            listed("atomic", TEXT, FIXED),
            ["b", "a"],
            ["a", "b"],
            ['spec.x: Invalid value: "array": is fixed'],
            id="an atomic list has an order",
        ),
        pytest.param(
            obj(FIXED, a=COUNT) | {"x-kubernetes-preserve-unknown-fields": True},
            {"a": 1, "extra": {"deep": 2}},
            {"a": 1, "extra": {"deep": 1}},
            ['spec.x: Invalid value: "object": is fixed'],
            id="fields outside the schema are compared, too",
        ),
        pytest.param(
            obj(FIXED, a=COUNT | {"nullable": True}),
            {"a": None},
            {},
            [],
            id="null and absent are the same",
        ),
    ],
)
def test_old_values_are_found_by_the_key_of_their_item(
    schema: Any, new: Any, old: Any, errors: list[str]
):
    assert broken(obj(x=schema), {"x": new}, {"x": old}) == errors


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        pytest.param(3, 3, [], id="as it was"),
        pytest.param(3, 4, ['spec.n: Invalid value: "integer": fixed, or 7'], id="changed"),
        pytest.param(7, None, [], id="new and as it should be"),
        pytest.param(3, None, ['spec.n: Invalid value: "integer": fixed, or 7'], id="new"),
    ],
)
def test_old_self_may_be_optional(new: Any, old: Any, errors: list[str]):
    text = "oldSelf.hasValue() ? self == oldSelf.value() : self == 7"
    schema = obj(n=with_rules(COUNT, rule(text, optionalOldSelf=True, message="fixed, or 7")))
    assert broken(schema, {"n": new}, None if old is None else {"n": old}) == errors


BROKEN = 'spec: Invalid value: "object"'


@pytest.mark.parametrize(
    ("each", "message"),
    [
        pytest.param(rule("self.a > 9"), f"{BROKEN}: failed rule: self.a > 9", id="the rule"),
        pytest.param(rule("self.a > 9", message=" more \n"), f"{BROKEN}: more", id="the message"),
        pytest.param(
            rule("self.a > 9", messageExpression="'a is %d'.format([self.a])", message="more"),
            f"{BROKEN}: a is 1",
            id="the message expression",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="' \\n '", message="more"),
            f"{BROKEN}: more",
            id="an empty message expression: the message",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="'a\\nb'"),
            f"{BROKEN}: failed rule: self.a > 9",
            id="the rule where the expression says two lines",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="self.l[3]", message="more"),
            f"{BROKEN}: more",
            id="a failing message expression: the message",
        ),
        pytest.param(
            rule("self.a > 9", message="more", fieldPath=".a"),
            'spec.a: Invalid value: "object": more',
            id="another field",
        ),
        pytest.param(
            rule("self.a > 9", message="more", fieldPath=".m['x.y']"),
            'spec.m[x.y]: Invalid value: "object": more',
            id="an entry of a map",
        ),
        pytest.param(
            rule("self.a > 9", message="more", reason="FieldValueForbidden"),
            "spec: Forbidden: more",
            id="forbidden",
        ),
        pytest.param(
            rule("self.a > 9", message="more", reason="FieldValueRequired", fieldPath=".m"),
            "spec.m: Required value: more",
            id="required",
        ),
        pytest.param(
            rule("self.a > 9", message="more", reason="FieldValueDuplicate"),
            'spec: Duplicate value: "object"',
            id="duplicate",
        ),
        pytest.param(
            rule("self.a > 9", message="more", reason="FieldValueInvalid"),
            f"{BROKEN}: more",
            id="invalid",
        ),
        pytest.param(
            rule("self.b > 9"),
            f'{BROKEN}: Key not found in map : "b" evaluating rule: self.b > 9',
            id="absent",
        ),
        pytest.param(
            rule("self.b > 9", message="more"),
            f'{BROKEN}: Key not found in map : "b" evaluating rule: more',
            id="a failure goes by the rule's message, too",
        ),
        pytest.param(
            rule("self.l[3] == ''"),
            f"{BROKEN}: Index error: index=3 size=0 evaluating rule: self.l[3] == ''",
            id="an index",
        ),
        pytest.param(
            rule("1 / (self.a - 1) == 1"),
            f"{BROKEN}: divide by zero evaluating rule: 1 / (self.a - 1) == 1",
            id="a division",
        ),
        pytest.param(
            rule("self.p < 3"),
            f"{BROKEN}: No matching overloads found : _<_(string, int64) evaluating rule: "
            "self.p < 3",
            id="a text where an integer is meant",
        ),
    ],
)
def test_a_broken_rule_is_reported_with_its_message(each: dict[str, Any], message: str):
    port = {"x-kubernetes-int-or-string": True}
    labels = {"type": "object", "additionalProperties": TEXT}
    schema = obj(each, a=COUNT, b=COUNT, l=TEXTS, m=labels, p=port)
    assert broken(schema, {"a": 1, "l": [], "m": {}, "p": "80%"}) == [message]


def test_broken_rules_are_reported_from_outside_in():
    schema = obj(
        rule("self.a > 9", message="more"),
        rule("self.a < 0", message="less"),
        rule("self.a == 1", message="kept"),
        a=with_rules(COUNT, rule("self == 2", message="two")),
        m={
            "type": "object",
            "additionalProperties": obj(rule("self.b", message="b"), b={"type": "boolean"}),
        },
        l={"type": "array", "items": with_rules(TEXT, rule("self != ''", message="say it"))},
    )
    found = broken(schema, {"a": 1, "m": {"k": {"b": False}}, "l": ["x", "", None]})
    assert found == [
        'spec: Invalid value: "object": more',
        'spec: Invalid value: "object": less',
        'spec.a: Invalid value: "integer": two',
        'spec.m[k]: Invalid value: "object": b',
        'spec.l[1]: Invalid value: "string": say it',
    ]


EVEN = rule("self % 2 == 0", message="must be even")
ODD = ['spec.n: Invalid value: "integer": must be even']


@pytest.mark.parametrize(
    ("schema", "new", "old", "errors"),
    [
        pytest.param(obj(n=with_rules(COUNT, EVEN)), {"n": 1}, None, ODD, id="a new object"),
        pytest.param(obj(n=with_rules(COUNT, EVEN)), {"n": 1}, {"n": 1}, [], id="as it was"),
        pytest.param(obj(n=with_rules(COUNT, EVEN)), {"n": 1}, {"n": 3}, ODD, id="changed"),
        pytest.param(obj(n=with_rules(COUNT, EVEN)), {"n": 1}, {}, ODD, id="a new field"),
        pytest.param(
            obj(rule("self.n % 2 == 0", message="must be even", fieldPath=".n"), n=COUNT, m=COUNT),
            {"n": 1, "m": 1},
            {"n": 1, "m": 2},
            ['spec.n: Invalid value: "object": must be even'],
            id="something beside it changed",
        ),
        pytest.param(
            obj(l=listed("atomic", with_rules(COUNT, EVEN))),
            {"l": [1]},
            {"l": [1]},
            [],
            id="in a list that is as it was",
        ),
        pytest.param(
            obj(l=listed("atomic", with_rules(COUNT, EVEN))),
            {"l": [1, 2]},
            {"l": [1]},
            ['spec.l[0]: Invalid value: "integer": must be even'],
            id="in a list that changed",
        ),
        pytest.param(
            obj(l=listed("map", obj(name=TEXT, n=with_rules(COUNT, EVEN)))),
            {"l": [{"name": "b", "n": 1}, {"name": "a", "n": 1}]},
            {"l": [{"name": "a", "n": 1}]},
            ['spec.l[0].n: Invalid value: "integer": must be even'],
            id="in another item of a keyed list",
        ),
    ],
)
def test_an_unchanged_value_that_breaks_a_rule_is_accepted(
    schema: Any, new: Any, old: Any, errors: list[str]
):
    assert broken(schema, new, old) == errors


def test_a_transition_rule_applies_to_an_unchanged_value():
    schema = obj(n=with_rules(COUNT, rule("self > oldSelf", message="must grow")))
    assert broken(schema, {"n": 1}, {"n": 1}) == ['spec.n: Invalid value: "integer": must grow']


def test_a_loop_beyond_the_cost_limit_ends_the_evaluation():
    schema = obj(
        "self.l.all(x, self.l.all(y, x + y >= 0))",
        "false",
        l={"type": "array", "items": COUNT},
    )
    assert broken(schema, {"l": list(range(90))}) == [BROKEN + ": failed rule: false"]
    assert broken(schema, {"l": list(range(101))}) == [
        f"{BROKEN}: 'operation cancelled: actual cost limit exceeded': no further validation rules "
        "will be run due to call cost exceeds limit for rule: "
        "self.l.all(x, self.l.all(y, x + y >= 0))"
    ]


def test_values_are_converted_for_cel():
    schema = obj(**{"a-b": COUNT, "l": TEXTS, "n": {"type": "number"}, "gone": COUNT})
    size = Size()
    assert cel_value(
        schema, {"a-b": 1, "l": ["ab", "c"], "n": 2, "gone": None, "x-y": [1]}, size
    ) == {"a__dash__b": 1, "l": ["ab", "c"], "n": 2.0, "x-y": [1]}
    assert size == Size(nodes=8, characters=3)


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        pytest.param(
            with_rules(COUNT, "self > 0"),
            2**70,
            "invalid data, expected int, got float64",
            id="an integer of more than 64 bits",
        ),
        pytest.param(
            with_rules(TEXT, "self == 'a'"),
            "a\x00b",
            "a text with a null character, which rules cannot read here",
            id="a null character",
        ),
        pytest.param(
            with_rules({"type": "object", "additionalProperties": COUNT}, "size(self) > 1"),
            {"a\x00b": 1, "a\x00c": 2},
            "a text with a null character, which rules cannot read here",
            id="a null character in a key",
        ),
    ],
)
def test_a_value_that_cel_cannot_hold_breaks_the_rule(schema: Any, value: Any, why: str):
    [message] = broken(obj(x=schema), {"x": value})
    assert f": {why} evaluating rule: " in message


def test_rules_see_the_largest_integers():
    schema = obj(l={"type": "array", "items": with_rules(COUNT, "self == -self - 1 || true")})
    assert broken(schema, {"l": [2**63 - 1, -(2**63)]}) == []
