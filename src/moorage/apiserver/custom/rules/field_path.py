"""``fieldPath`` of a rule: the field, below the value, that a broken rule is about.

Place in the flow: `compiled` reads paths here. Mirrors kubernetes v1.36 apiextensions-apiserver
pkg/apiserver/schema/cel ``ValidFieldPath``: names with a dot before them, or quoted in brackets.
"""

from __future__ import annotations

import re
from typing import Final

from moorage.apiserver.custom.pruning import Schema

_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<quoted>(?:[^'\\]|\\.)+)'\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


def read_field_path(text: str, schema: Schema) -> str:
    """Return a path as messages show it, ``limits[cpu]``.

    Parameters
    ----------
    text
        ``.limits.cpu`` or ``.limits['cpu']``.
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
            raise ValueError(f"unexpected {text[place:]!r}")
        name = match["name"] or _ESCAPE.sub(_unescaped, match["quoted"])
        rest = schema.get("additionalProperties")
        properties = schema.get("properties")
        if properties is not None and name in properties:
            schema = properties[name]
            shown += f".{name}" if shown else name
        elif properties is None and isinstance(rest, dict):
            schema = rest
            shown += f"[{name}]"
        else:
            raise ValueError("does not refer to a valid field")
        place = match.end()
    return shown


def _unescaped(match: re.Match[str]) -> str:
    try:
        return _ESCAPED[match[1]]
    except KeyError:
        raise ValueError(f"invalid escape char {match[0]}") from None
