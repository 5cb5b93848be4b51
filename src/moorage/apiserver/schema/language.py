"""The small language the field tables are written in, and its parser.

Place in the flow: the tables (`pod_table`, `core_table`, `group_table`) are parsed here once;
`catalog` resolves the references between them.

A definition is ``Name = field field ...``; a line that begins with a blank continues the one
before. A field is ``name[!][:type][strategy]``:

- ``!`` marks a field a client has to send,
- the type is one of the scalars below (a string when left out), a definition's name,
  ``[type]`` for a list or ``{type}`` for a map with string keys; ``[]`` and ``{}`` hold strings,
- ``*key`` merges a list of objects by that key under a strategic merge patch, ``*`` alone merges
  a list of scalars as a set, ``~`` obeys ``$retainKeys``, ``=`` replaces the whole value,
- ``@`` stands for apiVersion, kind and metadata.

Scalars: ``s`` string, ``i`` int32, ``l`` int64, ``b`` boolean, ``t`` Time, ``mt`` MicroTime,
``q`` quantity, ``io`` integer or string, ``bytes`` base64 text, ``any`` whatever JSON.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

SCALARS = frozenset({"s", "i", "l", "b", "t", "mt", "q", "io", "bytes", "any"})

Shape = Literal["scalar", "object", "list", "map"]


class TypeRef(msgspec.Struct, frozen=True):
    """The type of a field: a scalar's letter, a definition's name, or a list or map of another.

    Parameters
    ----------
    shape
        What the JSON value looks like.
    name
        Scalar letter or definition name; empty for lists and maps.
    of
        Element type of a list or map.
    """

    shape: Shape
    name: str = ""
    of: TypeRef | None = None

    @property
    def element(self) -> TypeRef:
        """Type of the elements; only lists and maps have one."""
        assert self.of is not None, f"{self.shape} {self.name} has no elements"
        return self.of


class Field(msgspec.Struct, frozen=True):
    """One field of a definition, with how a strategic merge patch treats it.

    Parameters
    ----------
    merge_key
        Key that identifies the objects of a merging list; empty for a merging list of scalars
        and for everything that does not merge as a list.
    merges
        A list whose elements are merged rather than replaced.
    retain_keys
        The value obeys ``$retainKeys``.
    replaces
        The value is replaced whole, though it is an object.
    """

    name: str
    type: TypeRef
    required: bool = False
    merge_key: str = ""
    merges: bool = False
    retain_keys: bool = False
    replaces: bool = False


class Definition(msgspec.Struct, frozen=True):
    """A named object type: its fields by JSON name, and whether it is a kind of its own."""

    name: str
    fields: dict[str, Field]
    is_kind: bool = False


_FIELD = re.compile(
    r"(?P<name>\w+)(?P<required>!?)(?::(?P<type>\[\w*\]|\{\w*\}|\w+))?"
    r"(?P<merges>\*(?P<key>\w*))?(?P<retain>~?)(?P<replace>=?)"
)

_META_FIELDS = (
    Field("apiVersion", TypeRef("scalar", "s")),
    Field("kind", TypeRef("scalar", "s")),
    Field("metadata", TypeRef("object", "ObjectMeta")),
)


def parse_table(text: str) -> dict[str, Definition]:
    """Parse one table to its definitions by name.

    Raises
    ------
    ValueError
        A line or a field is not in the language, or a name is defined twice.
    """
    joined = re.sub(r"\n\s+", " ", text.strip())
    found: dict[str, Definition] = {}
    for line in joined.splitlines():
        name, equals, rest = line.partition(" = ")
        if not equals or name in found:
            raise ValueError(f"not a definition, or defined twice: {line!r}")
        words = rest.split()
        is_kind = words[:1] == ["@"]
        fields = list(_META_FIELDS) if is_kind else []
        fields += [_parse_field(word) for word in words[is_kind:]]
        found[name] = Definition(name, {field.name: field for field in fields}, is_kind)
    return found


def _parse_field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    if match is None:
        raise ValueError(f"not a field: {word!r}")
    return Field(
        name=match["name"],
        type=_parse_type(match["type"] or "s"),
        required=bool(match["required"]),
        merge_key=match["key"] or "",
        merges=match["merges"] is not None,
        retain_keys=bool(match["retain"]),
        replaces=bool(match["replace"]),
    )


def _parse_type(text: str) -> TypeRef:
    if text.startswith("["):
        return TypeRef("list", of=_parse_type(text[1:-1] or "s"))
    if text.startswith("{"):
        return TypeRef("map", of=_parse_type(text[1:-1] or "s"))
    return TypeRef("scalar" if text in SCALARS else "object", text)
