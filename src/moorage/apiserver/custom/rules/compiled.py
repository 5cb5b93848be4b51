"""The rules of a schema, compiled once.

Place in the flow: `CompiledRules.refusals` are the errors of a definition, `CompiledRules.left_out`
its warnings. `evaluation` walks `CompiledRules.node`. Compiled rules are kept for each schema and
shared by all callers. Mirrors kubernetes v1.36 apiextensions-apiserver
pkg/apiserver/schema/cel/compilation.go and the checks of rules in
pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from moorage.apiserver.custom.pruning import Schema
from moorage.apiserver.custom.rules.budget import elements_max, over_budget
from moorage.apiserver.custom.rules.field_path import read_field_path
from moorage.apiserver.custom.rules.forms import Form, form_of
from moorage.apiserver.custom.rules.runtime import Program, Refusal, compile_text, is_installed
from moorage.apiserver.kind import FieldError, invalid, not_supported, required

RULES: Final = "x-kubernetes-validations"
REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
RULE_LENGTH_MAX: Final = 5000
"""Longest expression in characters: 40 ms to compile, which cannot be interrupted."""
_TOO_LONG: Final = f"may not be more than {RULE_LENGTH_MAX} bytes"
_SCHEMAS_MAX: Final = 512
"""Number of schemas whose rules are kept; a guess: a cluster with a large platform has 300."""

_encode = msgspec.json.Encoder(order="sorted").encode


class StoredRule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule as the schema contains it."""

    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Parameters
    ----------
    shown
        Name of the rule in messages: its message, or its text.
    detail
        Message for a broken rule, unless ``told`` yields a message.
    program
        The rule; None where it does not compile.
    compile_error
        Error of the compiler.
    told
        The rule's ``messageExpression``.
    reason
        One of `REASONS`; empty for the default reason.
    field
        The field, below the value, that the rule is about; in the form of messages.
    optional_old
        The rule is evaluated without an old value, too.
    """

    shown: str
    detail: str
    program: Program | None
    compile_error: str = ""
    told: Program | None = None
    reason: str = ""
    field: str = ""
    optional_old: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """The rules of one node of a schema, and the rules below the node.

    Parameters
    ----------
    form
        Form of a value as rules see it.
    type_name
        The ``type`` of its schema.
    rules
        Rules of the value itself.
    restrictions
        Rules of the members of its ``allOf``.
    fields
        Of an object: name in JSON -> node, for nodes with rules only.
    element
        Of a map or list: the node of its elements.
    """

    form: Form
    type_name: str
    rules: tuple[Rule, ...] = ()
    restrictions: tuple[Node, ...] = ()
    fields: Mapping[str, Node] = field(default_factory=dict)
    element: Node | None = None


class CompiledRules(msgspec.Struct, frozen=True):
    """The result of compiling the rules of a schema.

    Parameters
    ----------
    node
        Rules that can be evaluated; None when there are none.
    refused
        Errors of the other rules; their fields are below the schema's own field.
    left_out
        (path, what is missing) of each rule that cannot be evaluated here.
    programs
        All programs that may be evaluated.
    """

    node: Node | None = None
    refused: tuple[FieldError, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    programs: tuple[Program, ...] = ()

    def refusals(self, where: str) -> list[FieldError]:
        """Return the errors in the rules of a schema at a path."""
        return [
            msgspec.structs.replace(
                each, field=where + each.field, detail=each.detail.replace(_HERE, where)
            )
            for each in self.refused
        ]


# Placeholder for the path of the schema in a message.
_HERE: Final = "\x00"


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
    schema: Schema = msgspec.json.decode(encoded)
    compiler = _Compiler()
    node = compiler.node(schema, form_of(schema, whole=whole), "")
    refused, left_out = tuple(compiler.refused), tuple(compiler.left_out)
    return CompiledRules(node, refused, left_out, tuple(compiler.programs))


class _Compiler:
    """Walks a schema and collects rules and errors."""

    def __init__(self) -> None:
        self.refused: list[FieldError] = []
        self.left_out: list[tuple[str, str]] = []
        self.programs: list[Program] = []
        # Highest possible number of values at the current node.
        self._values = 1

    def node(self, schema: Schema, form: Form | None, path: str, apart: str = "") -> Node | None:
        """Return the rules of a schema and below; None when there are none.

        ``apart`` is the path of the nearest enclosing value from which old and new values cannot
        be matched; empty where they can.
        """
        rules = self._rules(schema, form, schema, path, apart)
        if form is None:
            return None
        found = Node(form, schema.get("type") or "", rules)
        restrictions = []
        for index, sub in enumerate(schema.get("allOf") or ()):
            inner = self._restriction(sub, schema, form, f"{path}.allOf[{index}]", apart)
            if inner is not None:
                restrictions.append(inner)
        self._leave_out_logic(schema, path)
        found = replace(
            found,
            restrictions=tuple(restrictions),
            fields=self._fields(schema, form, path, apart),
            element=self._element(schema, form, path, apart),
        )
        empty = not (found.rules or found.restrictions or found.fields or found.element)
        return None if empty else found

    def _fields(self, schema: Schema, form: Form, path: str, apart: str) -> dict[str, Node]:
        fields = {}
        for name, sub in (schema.get("properties") or {}).items():
            # A field with a name that rules cannot spell may have rules of its own.
            known = form.fields.get(name)
            inner = known[1] if known is not None else form_of(sub)
            node = self.node(sub, inner, f"{path}.properties[{name}]", apart)
            if node is not None:
                fields[name] = node
        return fields

    def _element(self, schema: Schema, form: Form, path: str, apart: str) -> Node | None:
        inside = self._values
        self._values *= elements_max(schema)
        rest, items = schema.get("additionalProperties"), schema.get("items")
        found = None
        if isinstance(rest, dict):
            found = self.node(rest, form.element, f"{path}.additionalProperties", apart)
        elif isinstance(items, dict):
            if form.kind != "keyed":
                apart = apart or _HERE + path
            found = self.node(items, form.element, f"{path}.items", apart)
        self._values = inside
        return found

    def _leave_out_logic(self, schema: Schema, path: str) -> None:
        """Note rules that would hold for some values only: these are not evaluated."""
        choices = [
            (f"{path}.{key}[{index}]", sub)
            for key in ("anyOf", "oneOf")
            for index, sub in enumerate(schema.get(key) or ())
        ]
        choices += [(f"{path}.not", schema["not"])] if "not" in schema else []
        self.left_out += [
            (place, "rules in anyOf, oneOf and not") for place, sub in choices if has_rules(sub)
        ]

    def _restriction(
        self, sub: Schema, schema: Schema, form: Form, path: str, apart: str
    ) -> Node | None:
        """Return the rules of a member of ``allOf``; its values have the forms of the skeleton."""
        rules = self._rules(sub, form, schema, path, apart)
        self._leave_out_logic(sub, path)
        fields = {}
        known = schema.get("properties") or {}
        for name, inner in (sub.get("properties") or {}).items():
            field_form = form.fields.get(name)
            if field_form is not None and isinstance(inner, dict):
                at = f"{path}.properties[{name}]"
                node = self._restriction(inner, known.get(name) or {}, field_form[1], at, apart)
                if node is not None:
                    fields[name] = node
        element = None
        items, rest = sub.get("items"), sub.get("additionalProperties")
        if isinstance(items, dict) and form.element is not None and form.kind != "map":
            inside = apart if form.kind == "keyed" else apart or _HERE + path
            element = self._restriction(
                items, schema["items"], form.element, f"{path}.items", inside
            )
        elif isinstance(rest, dict) and form.element is not None and form.kind == "map":
            at = f"{path}.additionalProperties"
            element = self._restriction(
                rest, schema["additionalProperties"], form.element, at, apart
            )
        if not (rules or fields or element):
            return None
        return Node(form, schema.get("type") or "", rules, fields=fields, element=element)

    def _rules(
        self, holder: Schema, form: Form | None, schema: Schema, path: str, apart: str
    ) -> tuple[Rule, ...]:
        rules = []
        for where, each in self._written(holder, path):
            faults = _check_rule(each, schema, where)
            self.refused += faults
            if form is None and not faults:
                text = "rule declared on schema that does not support validation rules"
                self.refused.append(FieldError("InternalError", where, None, text))
            elif form is not None and not faults and is_installed():
                rule = self._rule(each, form, schema, where, apart)
                rules += [rule] if rule is not None else []
        return tuple(rules)

    def _written(self, holder: Schema, path: str) -> Iterator[tuple[str, StoredRule]]:
        """Yield path and content of the rules of a schema; refuse malformed entries."""
        found = holder.get(RULES) or []
        if not isinstance(found, list):
            self.refused.append(invalid(f"{path}.{RULES}", found, "must be a list of rules"))
            return
        for index, each in enumerate(found):
            where = f"{path}.{RULES}[{index}]"
            try:
                yield where, msgspec.convert(each, StoredRule)
            except msgspec.ValidationError as error:
                self.refused.append(invalid(where, each, str(error)))

    def _rule(
        self, each: StoredRule, form: Form, schema: Schema, where: str, apart: str
    ) -> Rule | None:
        text, message = each.rule.strip(), each.message.strip()
        optional = each.optional_old_self is True
        program = compile_text(each.rule, form, "bool", optional_old=optional)
        rule = Rule(
            shown=message or text,
            detail=message or f"failed rule: {text}",
            program=None,
            reason=each.reason or "",
            field=read_field_path(each.field_path, schema),
            optional_old=optional,
        )
        if isinstance(program, Refusal):
            if program.missing:
                self.left_out.append((f"{where}.rule", program.missing))
                return None
            detail = program.message
            if not detail.startswith("compilation"):
                detail = "cel expression must evaluate to a bool"
            self.refused.append(invalid(f"{where}.rule", _value(each), detail))
            return replace(rule, compile_error=detail)
        self.refused += _check_old(each, program, where, apart)
        self.refused += over_budget(text, schema, self._values, where)
        told = self._told(each, form, where)
        self.programs += [program] if told is None else [program, told]
        return replace(rule, program=program, told=told)

    def _told(self, each: StoredRule, form: Form, where: str) -> Program | None:
        if not each.message_expression:
            return None
        optional = each.optional_old_self is True
        program = compile_text(each.message_expression, form, "string", optional_old=optional)
        if isinstance(program, Program):
            return program
        if program.missing:
            self.left_out.append((f"{where}.messageExpression", program.missing))
        else:
            detail = f"messageExpression {program.message}"
            self.refused.append(invalid(f"{where}.messageExpression", _value(each), detail))
        return None


def _check_rule(each: StoredRule, schema: Schema, where: str) -> list[FieldError]:
    """Check the parts of a rule that need no compiler."""
    rule, message = each.rule.strip(), each.message
    if not rule:
        return [required(f"{where}.rule", "rule is not specified")]
    texts = {"rule": each.rule, "messageExpression": each.message_expression}
    errors = [
        FieldError("FieldValueTooLong", f"{where}.{name}", "", _TOO_LONG)
        for name, text in texts.items()
        if len(text) > RULE_LENGTH_MAX
    ]
    if errors:
        return errors
    if message and not message.strip():
        errors.append(
            invalid(f"{where}.message", message, "message must be non-empty if specified")
        )
    elif _has_line_break(message.strip()):
        errors.append(invalid(f"{where}.message", message, "message must not contain line breaks"))
    elif _has_line_break(rule) and not message:
        text = "message must be specified if rule contains line breaks"
        errors.append(required(f"{where}.message", text))
    if each.message_expression and not each.message_expression.strip():
        text = "messageExpression must be non-empty if specified"
        errors.append(required(f"{where}.messageExpression", text))
    if each.reason is not None and each.reason not in REASONS:
        errors.append(not_supported(f"{where}.reason", each.reason, REASONS))
    return errors + _check_field_path(each.field_path, schema, f"{where}.fieldPath")


def _check_field_path(path: str, schema: Schema, where: str) -> list[FieldError]:
    if not path:
        return []
    errors = []
    if not path.strip():
        errors.append(invalid(where, path, "fieldPath must be non-empty if specified"))
    if _has_line_break(path):
        errors.append(invalid(where, path, "fieldPath must not contain line breaks"))
    try:
        read_field_path(path, schema)
    except ValueError:
        errors.append(invalid(where, path, "fieldPath must be a valid path"))
    return errors


def _check_old(each: StoredRule, program: Program, where: str, apart: str) -> list[FieldError]:
    """Check that a rule that uses an old value can have one."""
    if program.uses_old and apart:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
        return [invalid(f"{where}.rule", each.rule, text)]
    if not program.uses_old and each.optional_old_self is not None:
        text = "may not be set if oldSelf is not used in rule"
        return [invalid(f"{where}.optionalOldSelf", each.optional_old_self, text)]
    return []


def _has_line_break(text: str) -> bool:
    return "\n" in text or "\r" in text


def _value(each: StoredRule) -> dict[str, Any]:
    """Return a rule as messages show it: upstream's internal type."""
    return {
        "Rule": each.rule,
        "Message": each.message,
        "MessageExpression": each.message_expression,
        "Reason": each.reason,
        "FieldPath": each.field_path,
        "OptionalOldSelf": each.optional_old_self,
    }
