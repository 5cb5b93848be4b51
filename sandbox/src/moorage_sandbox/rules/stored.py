"""A rule as a schema contains it, and the checks that need no compiler.

Place in the flow: `compiled` checks each rule here first. Mirrors kubernetes v1.36
apiextensions-apiserver pkg/apis/apiextensions/validation, and ``ValidFieldPath`` of
pkg/apiserver/schema/cel.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from moorage.kinds.kind import FieldError, invalid, not_supported, required
from moorage.kinds.schema.pruning import Schema

REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
RULE_LENGTH_MAX: Final = 5000
"""Longest expression in characters: 40 ms to compile, which cannot be interrupted."""
_LINE_BREAK: Final = re.compile(r"[\r\n]")
# A name after a dot, or a quoted name in brackets.
_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<quoted>(?:[^'\\]|\\['\\])+)'\]")


class StoredRule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule as the schema contains it."""

    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


def check_rule(each: StoredRule, schema: Schema, where: str) -> list[FieldError]:
    """Return the errors of a rule that need no compiler.

    Parameters
    ----------
    each
        The rule.
    schema
        Schema of the value with the rule.
    where
        Path of the rule.
    """
    rule, message = each.rule.strip(), each.message.strip()
    if not rule:
        return [required(f"{where}.rule", "rule is not specified")]
    texts = {"rule": each.rule, "messageExpression": each.message_expression}
    too_long = f"may not be more than {RULE_LENGTH_MAX} bytes"
    errors = [
        FieldError("FieldValueTooLong", f"{where}.{name}", "", too_long)
        for name, text in texts.items()
        if len(text) > RULE_LENGTH_MAX
    ]
    if errors:
        return errors
    if _LINE_BREAK.search(message):
        why = "message must not contain line breaks"
        errors.append(invalid(f"{where}.message", each.message, why))
    elif _LINE_BREAK.search(rule) and not each.message:
        why = "message must be specified if rule contains line breaks"
        errors.append(required(f"{where}.message", why))
    elif each.message and not message:
        why = "message must be non-empty if specified"
        errors.append(invalid(f"{where}.message", each.message, why))
    if each.message_expression and not each.message_expression.strip():
        why = "messageExpression must be non-empty if specified"
        errors.append(required(f"{where}.messageExpression", why))
    if each.reason is not None and each.reason not in REASONS:
        errors.append(not_supported(f"{where}.reason", each.reason, REASONS))
    try:
        read_field_path(each.field_path, schema)
    except ValueError as error:
        errors.append(invalid(f"{where}.fieldPath", each.field_path, str(error)))
    return errors


def read_field_path(text: str, schema: Schema) -> str:
    """Return a path as messages show it, ``limits[cpu]``.

    Parameters
    ----------
    text
        ``.limits.cpu`` or ``.limits['cpu']``; empty for the value itself.
    schema
        Schema of the value with the rule.

    Raises
    ------
    ValueError
        The path is malformed, or leads to no field.
    """
    shown, place = "", 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise ValueError("fieldPath must be a valid path")
        name = match["name"] or re.sub(r"\\(.)", r"\1", match["quoted"])
        rest, properties = schema.get("additionalProperties"), schema.get("properties")
        if properties is not None and name in properties:
            schema = properties[name]
            shown += f".{name}" if shown else name
        elif properties is None and isinstance(rest, dict):
            schema = rest
            shown += f"[{name}]"
        else:
            raise ValueError("fieldPath must be a valid path")
        place = match.end()
    return shown
