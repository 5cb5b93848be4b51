"""The rules of a schema, compiled once.

Place in the flow: `CompiledRules.refusals` are the errors of a definition, `CompiledRules.left_out`
its warnings. `evaluation` walks `CompiledRules.node`. Compiled rules are kept for each schema and
shared by all callers. Mirrors kubernetes v1.36 apiextensions-apiserver
pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from moorage.cel.rule_text import Reading
from moorage.cel.runtime import Program, Refusal, compile_text, is_installed
from moorage.cel.values import escaped
from moorage.kinds.custom.validation import INT_OR_STRING
from moorage.kinds.kind import FieldError, invalid
from moorage.kinds.schema.pruning import EMBEDDED, Schema
from moorage_sandbox.rules.budget import elements_max, over_budget
from moorage_sandbox.rules.stored import StoredRule, check_rule, read_field_path

RULES: Final = "x-kubernetes-validations"
_SCHEMAS_MAX: Final = 512
"""Number of schemas whose rules are kept; a guess: a cluster with a large platform has 300."""
_TIMES: Final = frozenset({"date", "date-time", "duration"})
_OF_LISTS: Final = frozenset({"indexOf", "lastIndexOf", "reverse"})
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: as written, compiled, its ``messageExpression``, its ``fieldPath`` in messages."""

    stored: StoredRule
    program: Program
    message_program: Program | None
    field: str

    @property
    def shown(self) -> str:
        """Name of the rule in messages: its message, or its text."""
        return self.stored.message.strip() or self.stored.rule.strip()


@dataclass(frozen=True, slots=True)
class Node:
    """The rules of one node of a schema, and the rules below the node.

    Parameters
    ----------
    schema
        The node of the schema.
    rules
        Rules of the value itself.
    fields
        Of an object: name in JSON -> node, for nodes with rules only.
    element
        Of a map or list: the node of its elements.
    """

    schema: Schema
    rules: tuple[Rule, ...]
    fields: Mapping[str, Node]
    element: Node | None

    @property
    def type_name(self) -> str:
        """The ``type`` of the schema; empty where it has none."""
        return self.schema.get("type") or ""


class CompiledRules(msgspec.Struct, frozen=True):
    """The result of compiling the rules of a schema.

    Parameters
    ----------
    node
        Rules that can be evaluated; None when there are none.
    refused
        Errors of the other rules; their fields are below the schema's own field.
    left_out
        (path, missing function) of each rule that cannot be evaluated here.
    """

    node: Node | None = None
    refused: tuple[FieldError, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    def refusals(self, where: str) -> list[FieldError]:
        """Return the errors in the rules of a schema at a path."""
        return [msgspec.structs.replace(each, field=where + each.field) for each in self.refused]


def has_rules(schema: Any) -> bool:
    """Whether a schema contains any rules, valid or not."""
    return RULES.encode() in _encode(schema)


def compiled_rules(schema: Schema, *, whole: bool = True) -> CompiledRules:
    """Return the rules of a schema; the same object for the same schema.

    Parameters
    ----------
    schema
        A structural schema.
    whole
        The schema is of an object with ``apiVersion``, ``kind`` and ``metadata``.
    """
    encoded = _encode(schema)
    return _compiled(encoded, whole) if RULES.encode() in encoded else _NO_RULES


_NO_RULES: Final = CompiledRules()


@lru_cache(maxsize=_SCHEMAS_MAX)
def _compiled(encoded: bytes, whole: bool) -> CompiledRules:
    compiler = _Compiler()
    node = compiler.schema_rules(msgspec.json.decode(encoded), "", whole=whole)
    return CompiledRules(node, tuple(compiler.refused), tuple(compiler.left_out))


class _Compiler:
    """Walks a schema and collects rules and errors."""

    def __init__(self) -> None:
        self.refused: list[FieldError] = []
        self.left_out: list[tuple[str, str]] = []
        # Highest possible number of values at the current node.
        self._values = 1
        # Whether the current node is inside a list whose items have no old value.
        self._apart = False

    def schema_rules(self, schema: Schema, path: str, *, whole: bool = False) -> Node | None:
        """Return the rules of a schema and below; None when there are none."""
        if whole or schema.get(EMBEDDED):
            schema = {**schema, "properties": {**(schema.get("properties") or {}), **_WHOLE}}
        rules = tuple(self._rules(schema, path))
        self._leave_out_logic(schema, path)
        fields = {
            name: self.schema_rules(sub, f"{path}.properties[{name}]")
            for name, sub in (schema.get("properties") or {}).items()
        }
        found = {name: node for name, node in fields.items() if node is not None}
        element = self._element(schema, path)
        return Node(schema, rules, found, element) if rules or found or element else None

    def _element(self, schema: Schema, path: str) -> Node | None:
        values, apart = self._values, self._apart
        self._values *= elements_max(schema)
        node = None
        if isinstance(schema.get("additionalProperties"), dict):
            node = self.schema_rules(schema["additionalProperties"], f"{path}.additionalProperties")
        elif isinstance(schema.get("items"), dict):
            self._apart |= schema.get("x-kubernetes-list-type") != "map"
            node = self.schema_rules(schema["items"], f"{path}.items")
        self._values, self._apart = values, apart
        return node

    def _leave_out_logic(self, schema: Schema, path: str) -> None:
        """Note the rules inside logical operators: these are not evaluated."""
        inner = [(f"{path}.not", schema.get("not"))]
        for key in ("allOf", "anyOf", "oneOf"):
            inner += [(f"{path}.{key}[{i}]", sub) for i, sub in enumerate(schema.get(key) or ())]
        missing = "rules in allOf, anyOf, oneOf and not"
        self.left_out += [(place, missing) for place, sub in inner if has_rules(sub)]

    def _rules(self, schema: Schema, path: str) -> Iterator[Rule]:
        stored = schema.get(RULES) or []
        if not isinstance(stored, list):
            self.refused.append(invalid(f"{path}.{RULES}", stored, "must be a list of rules"))
            return
        for index, value in enumerate(stored):
            where = f"{path}.{RULES}[{index}]"
            try:
                each = msgspec.convert(value, StoredRule)
            except msgspec.ValidationError as error:
                self.refused.append(invalid(where, value, str(error)))
                continue
            faults = check_rule(each, schema, where)
            if not schema.get("type") and not schema.get(INT_OR_STRING):
                text = "rule declared on schema that does not support validation rules"
                faults.append(FieldError("InternalError", where, None, text))
            self.refused += faults
            if not faults and is_installed():
                yield from self._rule(each, schema, where)

    def _rule(self, each: StoredRule, schema: Schema, where: str) -> Iterator[Rule]:
        """Yield the compiled rule unless it is refused or left out."""
        program = self._program(each, "rule", schema, where)
        message_program = each.message_expression and self._program(
            each, "messageExpression", schema, where
        )
        if program is None:
            return
        if program.uses_old and self._apart:
            text = "oldSelf cannot be used on the uncorrelatable portion of the schema"
            self.refused.append(invalid(f"{where}.rule", each.rule, text))
        if each.optional_old_self is not None and not program.uses_old:
            text = "may not be set if oldSelf is not used in rule"
            self.refused.append(invalid(f"{where}.optionalOldSelf", each.optional_old_self, text))
        self.refused += over_budget(each.rule.strip(), schema, self._values, where)
        yield Rule(each, program, message_program or None, read_field_path(each.field_path, schema))

    def _program(self, each: StoredRule, part: str, schema: Schema, where: str) -> Program | None:
        """Compile one expression of a rule; None where it is refused or left out."""
        is_rule = part == "rule"
        text = each.rule if is_rule else each.message_expression
        optional = each.optional_old_self is True
        program = compile_text(text, "bool" if is_rule else "string", optional_old=optional)
        if isinstance(program, Refusal):
            missing, fault = program.missing, program.message
        else:
            missing = _not_direct(program.reading, schema)
            fault = "" if optional else _undefined_field(text, program.reading, schema)
        if missing:
            self.left_out.append((f"{where}.{part}", missing))
        elif fault:
            self.refused.append(invalid(f"{where}.{part}", text, fault))
        else:
            assert isinstance(program, Program)
            return program
        return None


def _undefined_field(text: str, reading: Reading, schema: Schema) -> str:
    """Return the error of a rule that names a field which no schema declares; empty for none."""
    for place, names in reading.fields:
        at, inner = place, schema
        for name in names:
            member = _member(inner, name)
            if member is None:
                line = text.count("\n", 0, at) + 1
                column = at - text.rfind("\n", 0, at)
                shown = text.split("\n")[line - 1]
                return (
                    f"compilation failed: ERROR: <input>:{line}:{column}: undefined field '{name}'"
                    f"\n | {shown}\n | {'.' * (column - 1)}^"
                )
            at, inner = at + len(name) + 1, member
    return ""


def _member(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a member by its name in rules; empty where nothing is declared."""
    rest = schema.get("additionalProperties")
    if schema.get("type") != "object" or isinstance(rest, dict):
        return rest if isinstance(rest, dict) else {}
    properties = schema.get("properties") or {}
    if schema.get(EMBEDDED):
        properties = {**properties, **_WHOLE}
    return next((sub for known, sub in properties.items() if escaped(known) == name), None)


def _not_direct(reading: Reading, schema: Schema) -> str:
    """Return the part of a rule that the runtime would misread; "" without one."""
    for name, inner in _inside("self", schema):
        if name in reading.names and inner.get("format") in _TIMES:
            return f"dates and durations of objects, such as '{name}'"
        of_lists = sorted(reading.names & _OF_LISTS)
        if name in reading.names and inner.get("type") == "array" and of_lists:
            return f"function {of_lists[0]} of lists, such as '{name}'"
    return ""


def _inside(name: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield each node of a schema, with the name in rules that leads there."""
    yield name, schema
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _inside(name, schema[key])
    for known, sub in (schema.get("properties") or {}).items():
        yield from _inside(escaped(known), sub)
