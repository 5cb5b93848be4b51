"""Compiled expressions as trees, parsed from the runtime's serialized form and written back.

Place in the flow: `runtime` reads a tree of each compiled rule for `checking`. The changed tree
goes back to the runtime.

A message is a dictionary from field number to the list of its values. Messages inside messages are
parsed where `_INNER` names them and kept as bytes elsewhere. Field numbers are those of cel-spec
``cel/expr/{checked,syntax}.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Message = dict[int, list[Any]]
"""Field number -> values: numbers, bytes, messages."""

_CONSTANT: Final = 3
_TEXT: Final = b"\x32"  # field 6 of a constant
ID: Final = 2
IDENT: Final = 4
SELECT: Final = 5
CALL: Final = 6
LIST: Final = 7
STRUCT: Final = 8
COMPREHENSION: Final = 9
"""Fields of an expression: its number, and one field for each sort of expression."""

_INNER: Final[Mapping[str, Mapping[int, str]]] = {
    "any": {2: "checked"},
    "checked": {4: "expr", 5: "source"},
    "source": {4: "position"},
    "position": {},
    "expr": {
        IDENT: "ident",
        SELECT: "select",
        CALL: "call",
        LIST: "list",
        STRUCT: "struct",
        COMPREHENSION: "comprehension",
    },
    "ident": {},
    "select": {1: "expr"},
    "call": {1: "expr", 3: "expr"},
    "list": {1: "expr"},
    "struct": {2: "entry"},
    "entry": {3: "expr", 4: "expr"},
    "comprehension": {2: "expr", 4: "expr", 5: "expr", 6: "expr", 7: "expr"},
}
_FIXED64: Final = 1
_FIXED32: Final = 5


def read_tree(serialized: bytes) -> Message:
    """Parse the runtime's serialized form, the envelope included."""
    return _read(serialized, "any")


def write_tree(tree: Message) -> bytes:
    """Serialize a tree of `read_tree`."""
    return _write(tree)


def root(tree: Message) -> Message:
    """Return the expression itself."""
    expression: Message = tree[2][0][4][0]
    return expression


def positions(tree: Message) -> dict[int, int]:
    """Return number of an expression -> offset in the text, in characters."""
    source = tree[2][0][5][0]
    return {each[1][0]: each.get(2, [0])[0] for each in source.get(4, ())}


def text_field(message: Message, number: int) -> str:
    """Return a text in a message; empty when the field is absent."""
    values = message.get(number)
    return values[0].decode() if values else ""


def text_constant(expression: Message) -> str | None:
    """Return the text of a text constant; None for every other expression."""
    constant: bytes = expression.get(_CONSTANT, [b""])[0]
    if not constant.startswith(_TEXT):
        return None
    return constant[_read_number(constant, 1)[1] :].decode()


def children(expression: Message) -> Iterator[Message]:
    """Yield the expressions directly inside one."""
    for name, number in (("select", SELECT), ("call", CALL), ("list", LIST), ("struct", STRUCT)):
        for inner in expression.get(number, ()):
            yield from _expressions(inner, name)
    for inner in expression.get(COMPREHENSION, ()):
        yield from _expressions(inner, "comprehension")


def _expressions(message: Message, name: str) -> Iterator[Message]:
    for number, inner in _INNER[name].items():
        for each in message.get(number, ()):
            if inner == "expr":
                yield each
            else:
                yield from _expressions(each, inner)


def _read(data: bytes, name: str) -> Message:
    inner = _INNER[name]
    message: Message = {}
    place = 0
    while place < len(data):
        tag, place = _read_number(data, place)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, place = _read_number(data, place)
        else:
            assert wire not in (_FIXED64, _FIXED32), "only constants have them, which stay bytes"
            size, place = _read_number(data, place)
            value = data[place : place + size]
            place += size
            if number in inner:
                value = _read(value, inner[number])
        message.setdefault(number, []).append(value)
    return message


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7


def _write(message: Message) -> bytes:
    parts = bytearray()
    for number, values in message.items():
        for value in values:
            if isinstance(value, int):
                parts += _number(number << 3) + _number(value)
                continue
            body = value if isinstance(value, bytes) else _write(value)
            parts += _number(number << 3 | 2) + _number(len(body)) + body
    return bytes(parts)


def _number(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
