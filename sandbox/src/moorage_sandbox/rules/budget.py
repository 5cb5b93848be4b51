"""The lowest possible cost of a rule, computed from the largest size of objects.

Place in the flow: `compiled` checks each rule that compiles. Mirrors kubernetes v1.36
apiextensions-apiserver pkg/apis/apiextensions/validation (the estimated cost of a rule) and
apiserver pkg/cel/common (the number of elements that fit into a request). Upstream adds up the cost
of each operation. Here only two numbers count: the evaluations, and the steps of a loop over the
value itself. So no rule is refused here that upstream accepts.
"""

from __future__ import annotations

import re
from typing import Final

from moorage.kinds.kind import FieldError, forbidden
from moorage.kinds.schema.pruning import Schema

_REQUEST_BYTES: Final = 3 * 2**20
_COST_MAX: Final = 10_000_000
"""Highest cost of one rule of a definition (StaticEstimatedCostLimit)."""
_OVER_SELF: Final = re.compile(r"\bself\.(?:all|exists|exists_one|filter|map)\(")
# Bytes around a value in a map: a key of one letter, quotation marks, colon and comma.
_ENTRY_BYTES: Final = 5


def elements_max(schema: Schema) -> int:
    """Return the highest possible number of elements of a list or map; 1 for other values."""
    rest, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(items, dict):
        return int(schema.get("maxItems") or _REQUEST_BYTES // (_bytes_min(items) + 1))
    if isinstance(rest, dict):
        most = _REQUEST_BYTES // (_bytes_min(rest) + _ENTRY_BYTES)
        return int(schema.get("maxProperties") or most)
    return 1


def _bytes_min(schema: Schema) -> int:
    """Return the length of the shortest JSON of a value."""
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return 1
    if kind != "object":
        return 4 if kind == "boolean" else 2 + int(schema.get("minLength") or 0)
    properties = schema.get("properties") or {}
    needed = [name for name in schema.get("required") or () if name in properties]
    return 2 + sum(len(name) + 4 + _bytes_min(properties[name]) for name in needed)


def over_budget(rule: str, schema: Schema, values: int, where: str) -> list[FieldError]:
    """Return the error of a rule that costs too much; nothing where the rule may be affordable.

    Parameters
    ----------
    rule
        Text of the rule.
    schema
        Schema of the value that the rule is about.
    values
        Highest number of such values in an object.
    where
        Path of the rule.
    """
    cost = values * (elements_max(schema) if _OVER_SELF.search(rule) else 1)
    if cost <= _COST_MAX:
        return []
    factor = cost / _COST_MAX
    shown = (
        "more than 100x" if factor > 100 else f"{factor:.1f}x" if factor >= 1.5 else f"{factor:f}x"
    )
    detail = (
        f"estimated rule cost exceeds budget by factor of {shown} (try simplifying the rule, or "
        "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
        "declared)"
    )
    return [forbidden(f"{where}.rule", detail)]
