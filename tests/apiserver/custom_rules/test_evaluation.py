"""What rules say of values: which old value they see, what a broken one is called, what is let be.

Whether a rule may stand in a definition at all is in `test_compiling`.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apiserver.custom.rules import evaluation
from moorage.apiserver.custom.rules.compiled import compiled_rules
from moorage.apiserver.custom.rules.forms import form_of
from moorage.apiserver.custom.rules.values import Size, cel_value, in_order_of
from tests.apiserver.custom_rules.builders import (
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
        pytest.param({"n": 2}, {"n": 1}, [], id="it grows"),
        pytest.param({"n": 1}, {"n": 2}, SHRUNK, id="it shrinks"),
        pytest.param({"n": 1}, None, [], id="the object is new"),
        pytest.param({"n": 1}, {}, [], id="the field is new"),
        pytest.param({"n": 1}, {"n": None}, [], id="it was null"),
        pytest.param({}, {"n": 1}, [], id="the field goes"),
        pytest.param({"n": None}, {"n": 1}, [], id="it becomes null"),
    ],
)
def test_a_transition_rule_compares_with_what_was(new: Any, old: Any, errors: list[str]):
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
            {"type": "object", "additionalProperties": with_rules(COUNT, GROWS)},
            {"a": 1, "b": 1},
            {"a": 2},
            ['spec.x[a]: Invalid value: "integer": may only grow'],
            id="entries of a map are found by their name",
        ),
        pytest.param(
            listed("set", TEXT, FIXED), ["b", "a"], ["a", "b"], [], id="a set has no order"
        ),
        pytest.param(
            listed("set", TEXT, FIXED),
            ["b", "a"],
            ["a", "c"],
            ['spec.x: Invalid value: "array": is fixed'],
            id="a set has items",
        ),
        pytest.param(
            obj(FIXED, l=listed("map", obj(name=TEXT, s=listed("set", COUNT)))),
            {"l": [{"name": "b", "s": [2, 1]}, {"name": "a"}]},
            {"l": [{"name": "a"}, {"name": "b", "s": [1, 2]}]},
            [],
            id="a keyed list has no order either, at any depth",
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
            id="what a rule cannot see is compared, too",
        ),
        pytest.param(
            obj(FIXED, a=COUNT | {"nullable": True}),
            {"a": None},
            {},
            [],
            id="null and absent are the same",
        ),
        pytest.param(
            with_rules({"type": "string", "format": "duration"}, FIXED),
            "90m",
            "1h30m",
            [],
            id="a duration may be spelt anew",
        ),
    ],
)
def test_old_values_are_found(schema: Any, new: Any, old: Any, errors: list[str]):
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
def test_an_old_value_may_be_optional(new: Any, old: Any, errors: list[str]):
    text = "oldSelf.hasValue() ? self == oldSelf.value() : self == 7"
    schema = obj(n=with_rules(COUNT, rule(text, optionalOldSelf=True, message="fixed, or 7")))
    assert broken(schema, {"n": new}, None if old is None else {"n": old}) == errors


BROKEN = 'spec: Invalid value: "object"'


@pytest.mark.parametrize(
    ("each", "message"),
    [
        pytest.param(rule("self.a > 9"), f"{BROKEN}: failed rule: self.a > 9", id="the rule"),
        pytest.param(rule("self.a > 9", message=" more \n"), f"{BROKEN}: more", id="its message"),
        pytest.param(
            rule("self.a > 9", messageExpression="'a is %d'.format([self.a])", message="more"),
            f"{BROKEN}: a is 1",
            id="its message expression",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="' \\n '", message="more"),
            f"{BROKEN}: more",
            id="its message where the expression says nothing",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="'a\\nb'"),
            f"{BROKEN}: failed rule: self.a > 9",
            id="the rule where the expression says two lines",
        ),
        pytest.param(
            rule("self.a > 9", messageExpression="self.l[3]", message="more"),
            f"{BROKEN}: more",
            id="its message where the expression fails",
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
            rule("self.b > 9"), f"{BROKEN}: no such key: b evaluating rule: self.b > 9", id="absent"
        ),
        pytest.param(
            rule("self.b > 9", message="more"),
            f"{BROKEN}: no such key: b evaluating rule: more",
            id="a failure goes by the rule's message, too",
        ),
        pytest.param(
            rule("self.l[3] == ''"),
            f"{BROKEN}: index out of bounds: 3 evaluating rule: self.l[3] == ''",
            id="an index",
        ),
        pytest.param(
            rule("1 / (self.a - 1) == 1"),
            f"{BROKEN}: division by zero evaluating rule: 1 / (self.a - 1) == 1",
            id="a division",
        ),
        pytest.param(
            rule("self.p < 3"),
            f"{BROKEN}: 'no such overload': call arguments did not match a supported operator, "
            "function or macro signature for rule: self.p < 3",
            id="a text where an integer is meant",
        ),
    ],
)
def test_a_broken_rule_is_told(each: dict[str, Any], message: str):
    port = {"x-kubernetes-int-or-string": True}
    labels = {"type": "object", "additionalProperties": TEXT}
    schema = obj(each, a=COUNT, b=COUNT, l=TEXTS, m=labels, p=port)
    assert broken(schema, {"a": 1, "l": [], "m": {}, "p": "80%"}) == [message]


def test_every_broken_rule_is_told_from_outside_in():
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


def test_rules_inside_all_of_hold():
    schema = obj(a=COUNT, l={"type": "array", "items": COUNT})
    schema["allOf"] = [
        with_rules({}, rule("self.a > 1", message="more")),
        {"properties": {"a": with_rules({}, rule("self < 0", message="less"))}},
        {"properties": {"l": {"items": with_rules({}, rule("self > 5", message="larger"))}}},
    ]
    assert broken(schema, {"a": 1, "l": [5]}) == [
        'spec: Invalid value: "object": more',
        'spec.a: Invalid value: "integer": less',
        'spec.l[0]: Invalid value: "integer": larger',
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
def test_what_is_left_as_it_was_is_let_be(schema: Any, new: Any, old: Any, errors: list[str]):
    assert broken(schema, new, old) == errors


def test_a_transition_rule_holds_for_what_is_as_it_was():
    schema = obj(n=with_rules(COUNT, rule("self > oldSelf", message="must grow")))
    assert broken(schema, {"n": 1}, {"n": 1}) == ['spec.n: Invalid value: "integer": must grow']


def test_loops_that_take_too_long_end_it():
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


def test_many_rules_that_cost_much_end_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluation, "COST_MAX", 4200)
    loops = with_rules(TEXTS | {"maxItems": 30}, "self.all(x, self.all(y, x != y || x == y))")
    schema = obj(rows={"type": "array", "maxItems": 10, "items": loops})
    text = (
        "validation failed due to running out of cost budget, no further validation rules will be "
        "run"
    )
    assert broken(schema, {"rows": [["a"] * 30] * 3}) == []
    assert broken(schema, {"rows": [["a"] * 30] * 9}) == [
        f'spec.rows[3]: Invalid value: "array": {text}'
    ]


def test_a_rule_that_does_not_compile_refuses_objects():
    """Such a rule is stored only if it was before rules were evaluated here."""
    node = compiled_rules(obj("self.nope > 1", a=COUNT)).node
    assert node is not None
    [error] = evaluation.broken_rules(node, {"a": 1}, None, "spec")
    assert error.message == (
        f"{BROKEN}: rule compile error: compilation failed: ERROR: <input>:1:5: undefined field "
        "'nope'\n | self.nope > 1\n | ....^"
    )


LISTS = obj(
    FIXED,
    s=listed("set", TEXT),
    l=listed("map", obj(name=TEXT, s=listed("set", COUNT), a=listed("atomic", COUNT))),
    m={"type": "object", "additionalProperties": listed("set", COUNT)},
)
NUMBERS = st.lists(st.integers(0, 5), unique=True, max_size=4)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "s": st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
        "l": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("abc")}, optional={"s": NUMBERS, "a": NUMBERS}
            ),
            unique_by=lambda each: str(each["name"]),
            max_size=3,
        ),
        "m": st.dictionaries(st.sampled_from("xy"), NUMBERS),
    },
)


def shuffled(value: dict[str, Any], random: Any) -> dict[str, Any]:
    """Return an object with its sets and keyed lists in another order."""
    copied = copy.deepcopy(value)
    sets = [copied.get("s", []), copied.get("l", []), *copied.get("m", {}).values()]
    sets += [each["s"] for each in copied.get("l", []) if "s" in each]
    for each in sets:
        random.shuffle(each)
    return copied


@given(value=OBJECTS, random=st.randoms(use_true_random=False))
def test_order_of_sets_and_keyed_lists_never_counts(value: dict[str, Any], random: Any):
    form = form_of(LISTS)
    assert form is not None
    other = shuffled(value, random)
    assert in_order_of(form, other, value) == value
    assert broken(LISTS, value, other) == []


@given(value=OBJECTS, other=OBJECTS)
def test_values_are_equal_to_rules_if_they_differ_in_order_only(
    value: dict[str, Any], other: dict[str, Any]
):
    def canonical(each: dict[str, Any]) -> Any:
        return {
            "s": sorted(each["s"]) if "s" in each else None,
            "l": {i["name"]: (sorted(i["s"]) if "s" in i else None, i.get("a")) for i in each["l"]}
            if "l" in each
            else None,
            "m": {k: sorted(v) for k, v in each["m"].items()} if "m" in each else None,
        }

    assert (broken(LISTS, value, other) == []) is (canonical(value) == canonical(other))


def test_the_size_of_a_value_is_told():
    form = form_of(obj(a=COUNT, l=TEXTS))
    assert form is not None
    size = Size()
    assert cel_value(form, {"a": 1, "l": ["ab", "c"], "gone": None}, size) == {
        "a": 1,
        "l": ["ab", "c"],
        "\x01gone": b"null",
    }
    assert size == Size(nodes=5, characters=3)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("1h", "3600000000000ns"),
        ("1h30m", "5400000000000ns"),
        ("-1.5s", "-1500000000ns"),
        ("2 days", "172800000000000ns"),
        ("1 Week", "604800000000000ns"),
        ("3 µs", "3000ns"),
        (".5h", "1800000000000ns"),
        ("0", "0ns"),
        ("+10ms", "10000000ns"),
    ],
)
def test_durations_are_read_as_their_format_allows(text: str, seen: str):
    form = form_of({"type": "string", "format": "duration"})
    assert form is not None
    assert cel_value(form, text, Size()) == seen


def test_a_text_that_is_no_duration_breaks_the_rule():
    schema = obj(d=with_rules({"type": "string", "format": "duration"}, "self > duration('1s')"))
    assert broken(schema, {"d": "3 parsecs"}) == [
        'spec.d: Invalid value: "string": unable to parse 3 parsecs as duration evaluating rule: '
        "self > duration('1s')"
    ]


MAP = "expected a map for the provided schema with type=object"
ARRAY = "expected an array for the provided schema with type=array"


@pytest.mark.parametrize(
    ("schema", "new", "old", "why"),
    [
        pytest.param(obj(FIXED, a=COUNT), {"a": 1}, "x", MAP, id="it was no object"),
        pytest.param(
            listed("map", obj(name=TEXT), FIXED), [{"name": "a"}], {"a": 1}, ARRAY, id="nor a list"
        ),
        pytest.param(
            listed("map", obj(name=TEXT), FIXED), [{"name": "a"}], ["a"], MAP, id="of other items"
        ),
        pytest.param(with_rules(COUNT, FIXED), 1, {"a": 1}, "expected int", id="nor a number"),
    ],
)
def test_an_old_value_may_have_been_something_else(schema: Any, new: Any, old: Any, why: str):
    kind = schema["type"]
    assert broken(obj(x=schema), {"x": new}, {"x": old}) == [
        f'spec.x: Invalid value: "{kind}": invalid data, {why} evaluating rule: is fixed'
    ]


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
def test_what_rules_cannot_see_breaks_them(schema: Any, value: Any, why: str):
    [message] = broken(obj(x=schema), {"x": value})
    assert f": {why} evaluating rule: " in message


def test_the_largest_integers_are_seen():
    schema = obj(l={"type": "array", "items": with_rules(COUNT, "self == -self - 1 || true")})
    assert broken(schema, {"l": [2**63 - 1, -(2**63)]}) == []
