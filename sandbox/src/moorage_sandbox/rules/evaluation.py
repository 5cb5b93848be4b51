"""Evaluating the rules of a definition on a custom resource.

Place in the flow: the last step of the validation of a custom resource, after its schema. Mirrors
kubernetes v1.36 apiextensions-apiserver pkg/apiserver/schema/cel/validation.go: which old value a
rule sees, and the error for a broken rule. An update is not checked against rules about values that
it leaves unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from moorage.cel.budget import Budget
from moorage.cel.runtime import (
    HAS_OLD,
    OVER_BUDGET,
    Failure,
    activation,
    evaluate,
)
from moorage.cel.values import Size, cel_value
from moorage.kinds.kind import FieldError, duplicate, forbidden, invalid, required
from moorage_sandbox.rules.compiled import Node, Rule

_MESSAGE_BYTES_MAX: Final = 5 * 1024


class Before(NamedTuple):
    """The old value.

    Parameters
    ----------
    value
        None where there was no old value.
    comparable_pair
        The nearest enclosing value that has an old counterpart, and this counterpart. An error
        inside is let pass if the two are equal. None where no error is let pass.
    """

    value: Any = None
    comparable_pair: tuple[Any, Any] | None = None

    def inner(self, new: Any, old: Any) -> Before:
        """Return the old value of an inner value; None stands for no old value."""
        return Before(
            old, (new, old) if self.comparable_pair and old is not None else self.comparable_pair
        )

    def is_unchanged(self) -> bool:
        """Whether an update leaves a value, or the nearest comparable one around it, unchanged."""
        return self.comparable_pair is not None and bool(
            self.comparable_pair[0] == self.comparable_pair[1]
        )


class Evaluation:
    """The evaluation of one object's rules.

    Parameters
    ----------
    only_quick
        Raise `moorage.cel.budget.MayTakeLong` before a rule with which the object's rules may take
        long.
    """

    def __init__(self, *, only_quick: bool = False) -> None:
        self.errors: list[FieldError] = []
        self._budget = Budget(only_quick=only_quick)
        self._ended = False

    def visit(self, node: Node, value: Any, before: Before, path: str) -> None:
        """Evaluate the rules of a value, then the rules of the values inside it."""
        if value is None or self._ended:
            return
        if node.rules:
            self._evaluate_rules(node, value, before, path)
        for inner, each, old, at in _inside(node, value, before.value):
            self.visit(inner, each, before.inner(each, old), path + at if path else at.lstrip("."))

    def _evaluate_rules(self, node: Node, value: Any, before: Before, path: str) -> None:
        """Evaluate the rules of one value."""
        size, is_update = Size(), before.value is not None
        try:
            known = {"self": cel_value(node.schema, value, size), HAS_OLD: is_update}
            if is_update:
                known["oldSelf"] = cel_value(node.schema, before.value, size)
        except ValueError as error:
            self._fail(node, path, f"{error} evaluating rule: {node.rules[0].shown}")
            return
        variables = activation(known)
        for rule in node.rules:
            if rule.program.uses_old and not (is_update or rule.stored.optional_old_self):
                continue
            answer: Any = OVER_BUDGET
            if self._budget.allows(rule.program, known, size):
                answer = evaluate(rule.program, variables)
            if isinstance(answer, Failure) and answer.too_long:
                self._ended = True
                text = "no further validation rules will be run due to call cost exceeds limit"
                self._fail(node, path, f"'{answer.message}': {text} for rule: {rule.shown}")
                return
            if isinstance(answer, Failure):
                self._fail(node, path, f"{answer.message} evaluating rule: {rule.shown}")
            elif answer is not True and (rule.program.uses_old or not before.is_unchanged()):
                shown = self._message(rule, known, variables, size)
                self.errors.append(_broken(node, rule, shown, path))

    def _message(self, rule: Rule, known: Mapping[str, Any], variables: Any, size: Size) -> str:
        """Return the message of a broken rule, its own where that is affordable and one line."""
        message = None
        if rule.message_program is not None and self._budget.allows(
            rule.message_program, known, size
        ):
            message = evaluate(rule.message_program, variables)
        text = message.strip() if isinstance(message, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MESSAGE_BYTES_MAX:
            return text
        return rule.stored.message.strip() or f"failed rule: {rule.stored.rule.strip()}"

    def _fail(self, node: Node, path: str, text: str) -> None:
        self.errors.append(invalid(path or "<nil>", node.type_name, text))


def _inside(node: Node, value: Any, old: Any) -> Iterator[tuple[Node, Any, Any, str]]:
    """Yield the node, the value, the old value and the path of each value inside one."""
    if isinstance(value, dict):
        was = old if isinstance(old, dict) else {}
        for key, each in value.items():
            if key in node.fields:
                yield node.fields[key], each, was.get(key), f".{key}"
            elif node.element is not None:
                yield node.element, each, was.get(key), f"[{key}]"
    elif isinstance(value, list) and node.element is not None:
        keys = node.schema.get("x-kubernetes-list-map-keys") or ()
        known = {_key(each, keys): each for each in old} if keys and isinstance(old, list) else {}
        for index, each in enumerate(value):
            yield node.element, each, known.get(_key(each, keys)), f"[{index}]"


def _key(item: Any, names: Any) -> bytes:
    """Return the identity of an item of a keyed list."""
    found = item if isinstance(item, dict) else {}
    return msgspec.json.encode([found.get(name) for name in names])


def _broken(node: Node, rule: Rule, text: str, path: str) -> FieldError:
    """Return the error of a rule that does not hold."""
    at = ".".join(part for part in (path, rule.field) if part) or "<nil>"
    if rule.stored.reason == "FieldValueForbidden":
        return forbidden(at, text)
    if rule.stored.reason == "FieldValueRequired":
        return required(at, text)
    if rule.stored.reason == "FieldValueDuplicate":
        return duplicate(at, node.type_name)
    return invalid(at, node.type_name, text)
