"""Values as rules see them: decoded JSON, as the CEL runtime takes it.

Place in the flow: rules convert ``self`` and ``oldSelf`` here, and policies their variables.
Mirrors kubernetes v1.36 apiserver pkg/cel/common/values.go and pkg/cel/escaping.go: a null field of
an object counts as absent, and a name that is no identifier of CEL has another spelling. Times stay
text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

Schema: TypeAlias = Mapping[str, Any]
"""A schema of OpenAPI; empty where nothing is declared."""

_INT64: Final = 2**63
_RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function"}
    | {"if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_SPECIAL: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPES: Final = {spelled: special for special, spelled in _ESCAPES.items()}
_SPELLED: Final = re.compile("|".join(_UNESCAPES))


class Size(msgspec.Struct):
    """Number of values and characters of all texts in them; grows as values are converted."""

    nodes: int = 0
    characters: int = 0


def escaped(name: str) -> str:
    """Return the spelling of a property in rules."""
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)


def unescaped(name: str) -> str:
    """Return the property that has a spelling in rules."""
    if name[2:-2] in _RESERVED and name == f"__{name[2:-2]}__":
        return name[2:-2]
    return _SPELLED.sub(lambda found: _UNESCAPES[found[0]], name)


def cel_value(schema: Schema, value: Any, size: Size) -> Any:
    """Return a value converted for the CEL runtime.

    Parameters
    ----------
    schema
        Schema of the value; empty where nothing is declared.
    value
        Decoded JSON.
    size
        Counter that every value in it is added to.

    Raises
    ------
    ValueError
        The runtime cannot hold the value.
    """
    size.nodes += 1
    if isinstance(value, dict):
        return _object(schema, value, size)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [cel_value(items, each, size) for each in value]
    if isinstance(value, str):
        size.characters += len(value)
        if schema.get("format") == "byte":
            return base64.b64decode(value, validate=True)
        return _whole(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if schema.get("type") == "number":
        return float(value)
    if isinstance(value, float) and schema.get("type") == "integer":
        value = int(value)
    if not -_INT64 <= value < _INT64:
        raise ValueError("invalid data, expected int, got float64")
    return value


def _object(schema: Schema, value: dict[str, Any], size: Size) -> dict[str, Any]:
    properties, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(rest, dict):
        return {_whole(key): cel_value(rest, each, size) for key, each in value.items()}
    return {
        escaped(key) if key in properties else _whole(key): cel_value(
            properties.get(key) or {}, each, size
        )
        for key, each in value.items()
        if each is not None
    }


def _whole(text: str) -> str:
    """Return a text that the runtime does not cut."""
    if "\x00" in text:
        raise ValueError("a text with a null character, which rules cannot read here")
    return text
