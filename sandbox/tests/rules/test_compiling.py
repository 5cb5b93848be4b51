"""Which rules a definition may have: compiled, refused in the compiler's words, or left out."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cel.values import escaped
from moorage_sandbox.rules.compiled import compiled_rules
from sandbox.tests.rules.builders import (
    COUNT,
    TEXT,
    TEXTS,
    left_out,
    listed,
    obj,
    refused,
    rule,
    with_rules,
)

SPEC = {
    "replicas": COUNT,
    "name": TEXT,
    "doors": listed("map", obj(name=TEXT, open={"type": "boolean"})),
    "labels": {"type": "object", "additionalProperties": TEXT},
    "created": {"type": "string", "format": "date-time"},
    "days": {"type": "array", "items": {"type": "string", "format": "date"}},
    "extras": {"x-kubernetes-preserve-unknown-fields": True},
    "share": {"x-kubernetes-int-or-string": True},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"spec": obj(a=COUNT)},
    },
}


def compiler_says(text: str) -> str | None:
    """Return the compiler's message about a rule of an object, None when there is none."""
    errors = compiled_rules(obj(rule(text, message="no"), **SPEC), whole=False).refused
    return errors[0].detail if errors else None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("self.replicas > 1", id="a field"),
        pytest.param("has(self.name) && self.name != ''", id="a field that may be absent"),
        pytest.param("self.doors.all(d, d.open)", id="fields of items"),
        pytest.param("self.doors[0].open", id="a field of one item"),
        pytest.param("self.doors.filter(d, d.open).all(d, d.name == '')", id="of those filtered"),
        pytest.param("self.doors.map(d, d.name).all(n, n.size() < 3)", id="of those mapped"),
        pytest.param("self.?doors[?0].?name.orValue('') == ''", id="optional selections"),
        pytest.param("self.?name.optMap(n, n.size() < 3).orValue(true)", id="mapped optionals"),
        pytest.param("cel.bind(d, self.doors, d.all(x, x.open))", id="a name for a value"),
        pytest.param("self.labels.anything == ''", id="keys of a map"),
        pytest.param("self.labels.all(k, self.labels[k] != '')", id="entries of a map"),
        pytest.param("self.share.startsWith('a')", id="an integer or a string"),
        pytest.param("self.template.metadata.name == 'a'", id="the name of an embedded object"),
        pytest.param("self.name.matches('self.nope')", id="a field in a quotation"),
        pytest.param("self.name != '' // self.nope", id="a field in a comment"),
        pytest.param("self.extras == 1", id="a field without a type"),
        pytest.param("self.doors.exists(d, d.shut)", id="a field of an item that does not exist"),
        pytest.param("self > 0", id="an operator that does not fit an object"),
        pytest.param("(self.replicas > 1 ? self.doors : self.doors)[0].open", id="a choice"),
        pytest.param("{'a': self.name}.all(k, true)", id="a literal map"),
        pytest.param("dyn(self).anything", id="a field of a dynamic value"),
    ],
)
def test_a_rule_compiles(text: str):
    assert compiler_says(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "self.nonExistingField > 0",
            "compilation failed: ERROR: <input>:1:5: undefined field 'nonExistingField'\n"
            " | self.nonExistingField > 0\n"
            " | ....^",
            id="a field that does not exist",
        ),
        pytest.param(
            "self.replicas > 0 &&\n  self.nope",
            "compilation failed: ERROR: <input>:2:7: undefined field 'nope'\n"
            " |   self.nope\n"
            " | ......^",
            id="the place is told by line and column",
        ),
        pytest.param(
            "has(self.name) || self.doors.all(d, d.open != self.nope)",
            "compilation failed: ERROR: <input>:1:51: undefined field 'nope'\n"
            " | has(self.name) || self.doors.all(d, d.open != self.nope)\n"
            " | ..................................................^",
            id="a field inside a loop",
        ),
        pytest.param(
            "self.metadata.name == ''",
            "compilation failed: ERROR: <input>:1:5: undefined field 'metadata'\n"
            " | self.metadata.name == ''\n"
            " | ....^",
            id="metadata exists at the root only",
        ),
        pytest.param(
            "self.template.metadata.labels == {}",
            "compilation failed: ERROR: <input>:1:23: undefined field 'labels'\n"
            " | self.template.metadata.labels == {}\n"
            " | ......................^",
            id="of metadata there are the names only",
        ),
        pytest.param(
            "self.replicas >",
            "compilation failed: ERROR: <input>:1:16: Syntax error: mismatched input '<EOF>' "
            "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
            "NUM_UINT, STRING, BYTES, IDENTIFIER}\n"
            " | self.replicas >\n"
            " | ...............^",
            id="an expression that ends too early",
        ),
        pytest.param(
            "sefl.replicas > 1",
            "compilation failed: ERROR: <input>:1:5: undeclared reference to 'sefl.replicas' "
            "(in container '')\n"
            " | sefl.replicas > 1\n"
            " | ....^",
            id="a variable that does not exist",
        ),
        pytest.param("size('a')", "must evaluate to a bool", id="a number is no rule"),
    ],
)
def test_a_rule_does_not_compile(text: str, message: str):
    assert compiler_says(text) == message


def test_a_rule_with_an_optional_old_self_is_quoted_unchanged():
    schema = obj(rule("oldSelf.hasValue() &&", optionalOldSelf=True), a=COUNT)
    [error] = compiled_rules(schema).refused
    assert error.detail.startswith("compilation failed: ERROR: <input>:1:22: Syntax error")
    assert error.detail.endswith("\n | oldSelf.hasValue() &&\n | .....................^")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        pytest.param(
            "self.doors.indexOf(self.doors[0]) == 0",
            "function indexOf of lists, such as 'doors'",
            id="a function of texts that may be one of lists",
        ),
        pytest.param(
            "self.doors.slice(0, 1).size() == 1",
            "function slice with these arguments",
            id="a function that the runtime does not have",
        ),
        pytest.param(
            "self.doors.all(i, d, i < 3 && d.open)",
            "function all with these arguments",
            id="a macro over two variables",
        ),
        pytest.param(
            "ip(self.name).family() == 4",
            "function ip with these arguments",
            id="the library of addresses",
        ),
        pytest.param(
            "!format.dns1123Label().validate(self.name).hasValue()",
            "function dns1123Label with these arguments",
            id="the library of formats",
        ),
        pytest.param(
            "self.created > timestamp('2026-01-01T00:00:00Z')",
            "dates and durations of objects, such as 'created'",
            id="a timestamp",
        ),
        pytest.param(
            "self.days.all(d, d < timestamp('2026-01-01T00:00:00Z'))",
            "dates and durations of objects, such as 'days'",
            id="a list of dates",
        ),
        pytest.param(
            " + ".join(["self.replicas"] * 50) + " > 1",
            "room for an expression nested so deep",
            id="more than can be read",
        ),
        pytest.param(
            " : ".join(["self.replicas == 1 ? true"] * 40) + " : false",
            "room for an expression nested so deep",
            id="more than can be checked",
        ),
    ],
)
def test_a_rule_with_an_unsupported_function_is_left_out(text: str, missing: str):
    schema = obj(spec=obj("self.replicas > 0", text, **SPEC))
    assert refused(schema) == []
    place = ".properties[spec].x-kubernetes-validations[1].rule"
    assert left_out(schema) == [(place, missing)]
    node = compiled_rules(schema).node
    assert node is not None
    assert len(node.fields["spec"].rules) == 1


def test_a_message_expression_with_an_unsupported_function_is_left_out():
    schema = obj(rule("false", message="no", messageExpression="['a'].flatten()[0]"))
    assert refused(schema) == []
    assert left_out(schema) == [
        (".x-kubernetes-validations[0].messageExpression", "function flatten with these arguments")
    ]


LOGIC = "rules in allOf, anyOf, oneOf and not"


def test_rules_inside_logical_operators_are_left_out():
    schema = obj(a=COUNT) | {
        "allOf": [with_rules({}, "self.a > 2")],
        "anyOf": [{}, with_rules({}, "self.a > 1")],
        "not": obj(a=with_rules({}, "x")),
    }
    assert left_out(schema) == [
        (".not", LOGIC),
        (".allOf[0]", LOGIC),
        (".anyOf[1]", LOGIC),
    ]


WHERE = "schema.x-kubernetes-validations[0]"


@pytest.mark.parametrize(
    ("each", "message"),
    [
        pytest.param(
            {"message": "a"}, f"{WHERE}.rule: Required value: rule is not specified", id="no rule"
        ),
        pytest.param(
            {"rule": 5},
            f'{WHERE}: Invalid value: {{"rule":5}}: Expected `str`, got `int` - at `$.rule`',
            id="a rule that is a number",
        ),
        pytest.param(
            {"rule": " "}, f"{WHERE}.rule: Required value: rule is not specified", id="a blank rule"
        ),
        pytest.param(
            rule("true", message=" "),
            f'{WHERE}.message: Invalid value: " ": message must be non-empty if specified',
            id="a blank message",
        ),
        pytest.param(
            rule("true", message="a\nb"),
            f'{WHERE}.message: Invalid value: "a\\nb": message must not contain line breaks',
            id="a message of two lines",
        ),
        pytest.param(
            rule("true ||\nfalse"),
            f"{WHERE}.message: Required value: message must be specified if rule contains line "
            "breaks",
            id="a rule of two lines without a message",
        ),
        pytest.param(
            rule("true", messageExpression=" "),
            f"{WHERE}.messageExpression: Required value: messageExpression must be non-empty if "
            "specified",
            id="a blank message expression",
        ),
        pytest.param(
            rule("true", reason="Bad"),
            f'{WHERE}.reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            id="another reason",
        ),
        pytest.param(
            rule("true", fieldPath=".b"),
            f'{WHERE}.fieldPath: Invalid value: ".b": fieldPath must be a valid path',
            id="a path to no field",
        ),
        pytest.param(
            rule("true", fieldPath=".l[0]"),
            f'{WHERE}.fieldPath: Invalid value: ".l[0]": fieldPath must be a valid path',
            id="a path into a list",
        ),
        pytest.param(
            rule("self.a > 0", optionalOldSelf=True),
            f"{WHERE}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used "
            "in rule",
            id="an optional old value nobody asks for",
        ),
        pytest.param(
            rule("self.b > 0"),
            f'{WHERE}.rule: Invalid value: "self.b > 0": '
            "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 0\n | ....^",
            id="a rule that does not compile",
        ),
        pytest.param(
            rule("true", messageExpression="1 + 1"),
            f'{WHERE}.messageExpression: Invalid value: "1 + 1": must evaluate to a string',
            id="a message expression that is a number",
        ),
    ],
)
def test_a_definition_is_refused_for_a_rule(each: dict[str, Any], message: str):
    assert refused(obj(each, a=COUNT, l=TEXTS)) == [message]


def test_rules_that_are_no_list_are_refused():
    schema = obj(a=COUNT) | {"x-kubernetes-validations": {"rule": "true"}}
    assert refused(schema) == [
        'schema.x-kubernetes-validations: Invalid value: {"rule":"true"}: must be a list of rules'
    ]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            obj(l=listed("atomic", with_rules(TEXT, "self == oldSelf"))),
            id="items of an atomic list",
        ),
        pytest.param(
            obj(l=listed("set", with_rules(TEXT, "self == oldSelf"))), id="items of a set"
        ),
        pytest.param(
            obj(
                l={
                    "type": "array",
                    "maxItems": 5,
                    "items": obj(a=listed("map", obj("self == oldSelf", name=TEXT))),
                }
            ),
            id="a keyed list in an atomic list",
        ),
    ],
)
def test_old_self_is_refused_where_items_have_no_identity(schema: dict[str, Any]):
    [message] = refused(schema)
    assert message.endswith(
        '"self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema'
    )


@pytest.mark.parametrize(
    ("text", "uses_old"),
    [
        pytest.param("self == oldSelf", True, id="the variable"),
        pytest.param("self != 'oldSelf'", False, id="a quotation"),
        pytest.param("self != '' // oldSelf", False, id="a comment"),
        pytest.param("[self].all(oldSelf, oldSelf != '')", False, id="a variable of a loop"),
    ],
)
def test_a_rule_that_uses_old_self_is_a_transition_rule(text: str, uses_old: bool):
    node = compiled_rules(obj(a=with_rules(TEXT, text))).node
    assert node is not None
    assert [rule.program.uses_old for rule in node.fields["a"].rules] == [uses_old]


def test_rules_on_a_schema_without_type_are_refused():
    unknown = {"x-kubernetes-preserve-unknown-fields": True}
    assert refused(obj(x=with_rules(unknown, "true"))) == [
        "schema.properties[x].x-kubernetes-validations[0]: Internal error: rule declared on schema "
        "that does not support validation rules"
    ]


def test_a_schema_is_compiled_once():
    schema = obj("self.a > 1", a=COUNT)
    assert compiled_rules(schema) is compiled_rules(obj("self.a > 1", a=COUNT))
    assert compiled_rules(obj(a=COUNT)).node is None


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("plain", "plain"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("int", "int"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("a___b", "a__underscores___b"),
        ("_", "_"),
    ],
)
def test_property_names_are_escaped_for_cel(name: str, spelt: str):
    assert escaped(name) == spelt
