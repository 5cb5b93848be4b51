"""Schemas with rules, and what becomes of objects under them, as short texts."""

from __future__ import annotations

from typing import Any

from moorage_sandbox.rules.compiled import compiled_rules
from moorage_sandbox.rules.validation import rules_broken_by

TEXT = {"type": "string"}
COUNT = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}


def rule(text: str, **more: Any) -> dict[str, Any]:
    """Return one rule."""
    return {"rule": text, **more}


def obj(*rules: dict[str, Any] | str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    return with_rules({"type": "object", "properties": properties}, *rules)


def with_rules(schema: dict[str, Any], *rules: dict[str, Any] | str) -> dict[str, Any]:
    """Return a schema with rules."""
    if not rules:
        return schema
    spelt = [{"rule": each} if isinstance(each, str) else each for each in rules]
    return schema | {"x-kubernetes-validations": spelt}


def listed(kind: str, item: dict[str, Any], *rules: dict[str, Any] | str) -> dict[str, Any]:
    """Return the schema of a list; one of kind ``map`` goes by ``name``."""
    schema = {"type": "array", "items": item, "x-kubernetes-list-type": kind}
    if kind == "map":
        schema["x-kubernetes-list-map-keys"] = ["name"]
    return with_rules(schema, *rules)


def refused(schema: dict[str, Any]) -> list[str]:
    """Return why a definition with a schema is refused."""
    return [each.message for each in compiled_rules(schema).refusals("schema")]


def left_out(schema: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rules of a schema that are not evaluated."""
    return list(compiled_rules(schema).left_out)


def broken(schema: dict[str, Any], new: Any, old: Any = None, *, path: str = "spec") -> list[str]:
    """Return what rules say of a value."""
    assert refused(schema) == []
    assert left_out(schema) == []
    return [each.message for each in rules_broken_by(schema, new, old, path)]
