"""What is wrong with a custom resource by the rules of its schema.

Place in the flow: the validation of custom resources, and of defaults in definitions, asks here
after the schema itself. `moorage.cel.evaluators` decides where `evaluation` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from moorage.cel.budget import USED_UP
from moorage.cel.evaluators import evaluate_within
from moorage.kinds.kind import FieldError, invalid
from moorage.kinds.schema.pruning import Schema
from moorage_sandbox.rules.compiled import compiled_rules
from moorage_sandbox.rules.evaluation import Before, Evaluation


def rules_of(schema: Schema) -> Callable[[Any, Any], list[FieldError]] | None:
    """Return what judges a new and an old object by the rules of a schema; None without rules."""
    return partial(rules_broken_by, schema) if compiled_rules(schema).node is not None else None


def rules_broken_by(
    schema: Schema,
    new: Any,
    old: Any,
    path: str = "",
    *,
    whole: bool = True,
    forgiving: bool = True,
) -> list[FieldError]:
    """Return an error for every rule of a schema that a value breaks.

    Parameters
    ----------
    schema
        A structural schema.
    new, old
        The value, and its old value; None when the value is new.
    path
        Path of the value; empty for the object itself.
    whole
        The value is an object with ``apiVersion``, ``kind`` and ``metadata``.
    forgiving
        Whether an unchanged value may break rules that do not compare it with its old value.

    Raises
    ------
    moorage.cel.evaluators.TooLongHere
        The rules may take long, and the caller is in the loop.
    """
    node = compiled_rules(schema, whole=whole).node
    if node is None:
        return []
    question = _Question(schema, whole, new, old, path, forgiving)
    errors: list[FieldError] | None = evaluate_within(_broken, question)
    return [invalid(path or "<nil>", node.type_name, USED_UP)] if errors is None else errors


class _Question(NamedTuple):
    """The arguments of `rules_broken_by`."""

    schema: Schema
    whole: bool
    new: Any
    old: Any
    path: str
    forgiving: bool


def _broken(question: _Question, *, only_quick: bool = False) -> list[FieldError]:
    schema, whole, new, old, path, forgiving = question
    node = compiled_rules(schema, whole=whole).node
    assert node is not None, "the caller has compiled the rules"
    evaluation = Evaluation(only_quick=only_quick)
    before = Before(old, (new, old) if forgiving and old is not None else None)
    evaluation.visit(node, new, before, path)
    return evaluation.errors
