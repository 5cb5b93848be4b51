"""Evaluating the rules of a definition on a custom resource.

Place in the flow: the last step of the validation of a custom resource, after its schema. Mirrors
kubernetes v1.36 apiextensions-apiserver pkg/apiserver/schema/cel/validation.go: which old value a
rule sees, and the error for a broken rule. An update is not checked against rules about values that
it leaves unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moorage.apiserver.custom.rules.compiled import Node, Rule
from moorage.apiserver.custom.rules.forms import Form
from moorage.apiserver.custom.rules.runtime import (
    HAS_OLD,
    ITERATIONS_MAX,
    Failure,
    activation,
    evaluate,
)
from moorage.apiserver.custom.rules.values import Size, cel_value, in_order_of, item_key
from moorage.apiserver.kind import FieldError, duplicate, forbidden, invalid, required

COST_MAX: Final = 5_000_000
"""Highest cost of one object's rules, in steps of loops; a step takes half a microsecond."""

# Measured costs in steps, in this order: evaluating a rule; converting a value to CEL or back;
# matching a regular expression, which the runtime compiles every time; characters for one step.
_QUESTION: Final = 50
_VALUE: Final = 4
_SLOW_CALL: Final = 60
_CHARACTERS: Final = 16

_MESSAGE_BYTES_MAX: Final = 5 * 1024
USED_UP: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
"""Message for an object whose rules cost too much."""


class Before(NamedTuple):
    """The old value.

    Parameters
    ----------
    value
        None where there was no old value.
    kept
        The nearest enclosing value that has an old counterpart, and this counterpart. An error
        inside is let pass if the two are equal. None where no error is let pass.
    """

    value: Any = None
    kept: tuple[Any, Any] | None = None


def broken_rules(
    node: Node, new: Any, old: Any, path: str = "", *, forgiving: bool = True
) -> list[FieldError]:
    """Return an error for every rule a value breaks.

    Parameters
    ----------
    node
        Rules of the value's schema.
    new
        The value, which has passed its schema.
    old
        The old value; None when the value is new.
    path
        Path of the value; empty for the object itself.
    forgiving
        Whether an unchanged value may break rules that do not compare it with its old value.
    """
    evaluation = _Evaluation()
    kept = (new, old) if forgiving and old is not None else None
    evaluation.visit(node, new, Before(old, kept), path)
    return evaluation.errors


class _Evaluation:
    """The evaluation of one object's rules; the cost is counted over all rules."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self._cost_left = COST_MAX

    def visit(self, node: Node, value: Any, before: Before, path: str) -> None:
        """Evaluate the rules of a value, then the rules of the values inside it."""
        if value is None or self._cost_left < 0:
            return
        if node.rules:
            self._ask(node, value, before, path)
        for restriction in node.restrictions:
            self.visit(restriction, value, before, path)
        if isinstance(value, list) and node.element is not None:
            self._visit_items(node, node.element, value, before, path)
        elif isinstance(value, dict):
            self._visit_members(node, value, before, path)

    def _visit_members(
        self, node: Node, value: Mapping[str, Any], before: Before, path: str
    ) -> None:
        was = before.value if isinstance(before.value, dict) else {}
        for key, each in value.items():
            inner = node.fields.get(key)
            if inner is not None:
                at = f"{path}.{key}" if path else key
            elif node.element is not None:
                inner, at = node.element, f"{path}[{key}]"
            else:
                continue
            kept = (each, was[key]) if before.kept and key in was else before.kept
            self.visit(inner, each, Before(was.get(key), kept), at)

    def _visit_items(
        self, node: Node, inner: Node, value: list[Any], before: Before, path: str
    ) -> None:
        was: dict[bytes, Any] = {}
        if node.form.kind == "keyed" and isinstance(before.value, list):
            was = {item_key(node.form, each): each for each in before.value}
        for index, each in enumerate(value):
            old = was.get(item_key(node.form, each)) if was else None
            kept = (each, old) if before.kept and old is not None else before.kept
            self.visit(inner, each, Before(old, kept), f"{path}[{index}]")

    def _ask(self, node: Node, value: Any, before: Before, path: str) -> None:
        """Evaluate the rules of one value."""
        size = Size()
        try:
            variables = _variables(node, value, before.value, size)
        except ValueError as error:
            for rule in node.rules:
                text = f"{error} evaluating rule: {rule.shown}"
                self.errors.append(invalid(path or "<nil>", node.type_name, text))
            return
        self._cost_left -= size.nodes * _VALUE
        for rule in node.rules:
            if rule.program is None:
                text = f"rule compile error: {rule.compile_error}"
                self.errors.append(invalid(path or "<nil>", node.type_name, text))
                continue
            if rule.program.uses_old and before.value is None and not rule.optional_old:
                continue
            self._cost_left -= _cost(rule, size)
            if self._cost_left < 0:
                self.errors.append(invalid(path or "<nil>", node.type_name, USED_UP))
                return
            answer = evaluate(rule.program, variables)
            if isinstance(answer, Failure):
                self.errors.append(_failed(node, rule, answer, path))
                if answer.too_long:
                    self._cost_left = -1
                    return
            elif answer is not True and (rule.program.uses_old or not _unchanged(before)):
                self.errors.append(_broken(node, rule, variables, path))


def _variables(node: Node, value: Any, old: Any, size: Size) -> Any:
    """Return the variables of a value's rules, and their size."""
    known = {"self": cel_value(node.form, value, size), HAS_OLD: old is not None}
    if old is not None and any(rule.program and rule.program.uses_old for rule in node.rules):
        known["oldSelf"] = cel_value(node.form, _aligned(node.form, old, value), size)
    return activation(known)


def _aligned(form: Form, old: Any, value: Any) -> Any:
    return old if old == value else in_order_of(form, old, value)


def _unchanged(before: Before) -> bool:
    """Whether an update leaves a value, or the nearest comparable value around it, unchanged."""
    return before.kept is not None and bool(before.kept[0] == before.kept[1])


def _cost(rule: Rule, size: Size) -> int:
    """Return the highest cost of evaluating a rule, in steps of loops.

    The estimate is an upper bound: every loop goes over the whole value. Each step calls all
    functions, with a text of average length or with a list of all values.
    """
    cost = _QUESTION
    length = size.characters // max(size.nodes, 1)
    for program in (rule.program, rule.told):
        if program is not None:
            steps = min(size.nodes**program.depth, ITERATIONS_MAX)
            calls = _SLOW_CALL * program.slow_calls + _VALUE * size.nodes * program.list_calls
            cost += steps * (1 + length // _CHARACTERS + calls)
    return cost


def _failed(node: Node, rule: Rule, failure: Failure, path: str) -> FieldError:
    """Return the error of a rule that has no result."""
    why = failure.message
    if failure.too_long:
        text = (
            f"'{why}': no further validation rules will be run due to call cost exceeds limit "
            f"for rule: {rule.shown}"
        )
    elif why.startswith("no such overload"):
        text = (
            f"'{why}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.shown}"
        )
    else:
        text = f"{why} evaluating rule: {rule.shown}"
    return invalid(path or "<nil>", node.type_name, text)


def _broken(node: Node, rule: Rule, variables: Any, path: str) -> FieldError:
    """Return the error of a rule that does not hold, with the message of the rule."""
    detail = _told(rule, variables) or rule.detail
    at = ".".join(part for part in (path, rule.field) if part) or "<nil>"
    if rule.reason == "FieldValueForbidden":
        return forbidden(at, detail)
    if rule.reason == "FieldValueRequired":
        return required(at, detail)
    if rule.reason == "FieldValueDuplicate":
        return duplicate(at, node.type_name)
    return invalid(at, node.type_name, detail)


def _told(rule: Rule, variables: Any) -> str:
    """Return the result of the rule's ``messageExpression``; empty where it cannot be shown."""
    if rule.told is None:
        return ""
    answer = evaluate(rule.told, variables)
    if not isinstance(answer, str):
        return ""
    text = answer.strip()
    too_long = len(text.encode()) > _MESSAGE_BYTES_MAX
    return "" if too_long or "\n" in text else text
