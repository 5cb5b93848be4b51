"""Scope: the words of `kinds.fields`, each alone; kinds have tests of their own."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.names import dns_label_faults
from moorage.kinds import fields
from moorage.kinds.fields import Rule

REQUIRED = "Required value"


@pytest.mark.parametrize(
    ("rule", "obj", "messages"),
    [
        pytest.param(
            fields.rules(("a.b c", fields.needed())),
            {"a": {"b": ""}, "c": 1},
            [f"x.a.b: {REQUIRED}"],
            id="several paths share a rule",
        ),
        pytest.param(
            fields.rules(fields.rules(("a", fields.needed()))),
            None,
            [f"x.a: {REQUIRED}"],
            id="an absent object lacks its required fields",
        ),
        pytest.param(
            fields.if_present(fields.needed()), None, [], id="given accepts only a missing value"
        ),
        pytest.param(
            fields.if_present(fields.needed()), "", [f"x: {REQUIRED}"], id="given, and empty"
        ),
        pytest.param(
            fields.each(fields.rules(("n", fields.needed())), unique="n"),
            [{"n": "a"}, {"n": ""}, {"n": "a"}, {"n": ""}],
            [f"x[1].n: {REQUIRED}", 'x[2].n: Duplicate value: "a"', f"x[3].n: {REQUIRED}"],
            id="names in a list differ, and empty names are not duplicates",
        ),
        pytest.param(
            fields.each(fields.if_present(fields.needed()), most=1),
            [{"n": 1}, {"n": 2}],
            ["x: Too many: 2: must have at most 1 item"],
            id="a list has a greatest length",
        ),
        pytest.param(
            fields.each_value(fields.within(1)),
            {"a": 0, "b": 1},
            ["x[a]: Invalid value: 0: must be greater than or equal to 1"],
            id="a map shows the key of a bad value",
        ),
        pytest.param(
            fields.name_rule(dns_label_faults, empty="required"),
            "",
            [f"x: {REQUIRED}"],
            id="no name",
        ),
        pytest.param(fields.name_rule(dns_label_faults), None, [], id="a name that may be absent"),
        pytest.param(fields.within(1, 3, "too far"), 4, ["x: Invalid value: 4: too far"], id="4"),
        pytest.param(
            fields.within(1, 3, "too far"), None, ["x: Invalid value: 0: too far"], id="no number"
        ),
        pytest.param(fields.port, 80, [], id="a port's number"),
        pytest.param(
            fields.port,
            "a--b",
            ['x: Invalid value: "a--b": must not contain consecutive hyphens'],
            id="a port's name",
        ),
        pytest.param(
            fields.amount,
            "120%",
            ['x: Invalid value: "120%": must not be greater than 100%'],
            id="too many percent",
        ),
        pytest.param(
            fields.each_one_of("a", by_index=True),
            ["a", "b"],
            ['x[1]: Unsupported value: "b": supported values: "a"'],
            id="a list of texts out of a closed list",
        ),
    ],
)
def test_each_field_rule_reports_its_errors(rule: Rule, obj: Any, messages: list[str]):
    assert [error.message for error in rule(obj, "x")] == messages


UNKNOWN = 'x: Unsupported value: "": supported values: "a", "b"'


@pytest.mark.parametrize(
    ("empty", "of_none", "of_empty"),
    [
        pytest.param("refused", [UNKNOWN], [UNKNOWN], id="refused"),
        pytest.param("accepted", [], [], id="accepted"),
        pytest.param("required", [f"x: {REQUIRED}"], [f"x: {REQUIRED}"], id="required"),
        pytest.param("absent", [], [UNKNOWN], id="absent"),
    ],
)
def test_missing_and_empty_values_of_an_enum_follow_the_empty_setting(empty, of_none, of_empty):
    rule = fields.one_of("b", "a", empty=empty)
    assert [error.message for error in rule(None, "x")] == of_none
    assert [error.message for error in rule("", "x")] == of_empty
    assert rule("a", "x") == []


def test_a_change_of_an_immutable_field_is_refused():
    change = fields.unchanging("a.b c")
    assert change({"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 2}) == []
    found = change({"a": {"b": 1}}, {"c": 2})
    assert [error.message for error in found] == [
        "a.b: Invalid value: 1: field is immutable",
        "c: Invalid value: null: field is immutable",
    ]


@pytest.mark.parametrize(
    ("entries", "obj", "filled"),
    [
        pytest.param({"unset": {"a.b": 1}}, {}, {"a": {"b": 1}}, id="a missing object is added"),
        pytest.param({"unset": {"a?.b": 1}}, {}, {}, id="a missing object stays missing"),
        pytest.param(
            {"unset": {"a?.b": 1}}, {"a": {}}, {"a": {"b": 1}}, id="an object that is there"
        ),
        pytest.param({"unset": {"a": 1}}, {"a": ""}, {"a": ""}, id="an empty text is a value"),
        pytest.param({"empty": {"a": 1}}, {"a": ""}, {"a": 1}, id="an empty text is no value"),
        pytest.param({"empty": {"a": 1}}, {"a": 0}, {"a": 0}, id="zero is a value"),
        pytest.param(
            {"unset": {"a[].b": 1}},
            {"a": [{}, {"b": 2}]},
            {"a": [{"b": 1}, {"b": 2}]},
            id="every object of a list",
        ),
    ],
)
def test_missing_fields_get_their_defaults(entries, obj, filled):
    fields.defaults(**entries)(obj)
    assert obj == filled


def test_objects_do_not_share_a_default():
    fill_in = fields.defaults(unset={"a": {}})
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    fill_in(one)
    fill_in(other)
    one["a"]["b"] = 1
    assert other == {"a": {}}


def test_selectable_fields_are_read_from_the_object():
    read = fields.selectable("spec.a", more={"b": lambda obj: "c"})
    assert read({"metadata": {"name": "n"}, "spec": {"a": "x"}}) == {
        "metadata.name": "n",
        "metadata.namespace": "",
        "spec.a": "x",
        "b": "c",
    }
