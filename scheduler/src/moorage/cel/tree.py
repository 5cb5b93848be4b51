"""The tree of a compiled CEL expression, read from its serialized form.

Place in the flow: `moorage.cel.cost` bounds the cost of an expression by its tree. The CEL
runtime has no other way to show what it compiled. Macros are expanded there: a loop over a list is
a `Loop`, and so is ``cel.bind``.

Message read: ``cel.expr.CheckedExpr`` of cel-spec ``proto/cel/expr/{checked,syntax}.proto``, inside
a ``google.protobuf.Any``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_VALUE: Final = 2
_EXPR: Final = 4
_CONSTANT, _NAME, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = 3, 4, 5, 6, 7, 8, 9
_STRING, _BYTES = 6, 7

_Fields = dict[int, list[bytes]]


class Constant(NamedTuple):
    """A literal; ``value`` is empty for numbers and other values of one size."""

    value: bytes


class Name(NamedTuple):
    """A variable."""

    name: str


class Select(NamedTuple):
    """A field of a value, or the question whether the value has the field."""

    operand: Tree
    field: str
    is_test: bool


class Call(NamedTuple):
    """A call of a function or operator; the value before a dot is the first argument."""

    function: str
    arguments: tuple[Tree, ...]


class ListOf(NamedTuple):
    """A list in brackets."""

    elements: tuple[Tree, ...]


class MapOf(NamedTuple):
    """A map or an object in braces; the names of an object's fields are no trees."""

    keys: tuple[Tree, ...]
    values: tuple[Tree, ...]


class Loop(NamedTuple):
    """A loop: names for an element and for what has been collected, and the parts of the loop."""

    elements: tuple[str, ...]
    collected: str
    range: Tree
    start: Tree
    condition: Tree
    step: Tree
    result: Tree


Tree = Constant | Name | Select | Call | ListOf | MapOf | Loop


def read_tree(serialized: bytes) -> Tree:
    """Return the tree of an expression that the runtime serialized."""
    checked = _fields(_fields(serialized)[_VALUE][0])
    return _tree(checked[_EXPR][0])


def _tree(encoded: bytes) -> Tree:
    fields = _fields(encoded)
    for number, read in _READERS.items():
        if number in fields:
            return read(_fields(fields[number][-1]))
    return Constant(b"")


def _constant(fields: _Fields) -> Tree:
    return Constant(next((fields[kind][-1] for kind in (_STRING, _BYTES) if kind in fields), b""))


def _name(fields: _Fields) -> Tree:
    return Name(_text(fields, 1))


def _select(fields: _Fields) -> Tree:
    return Select(_part(fields, 1), _text(fields, 2), is_test=3 in fields)


def _call(fields: _Fields) -> Tree:
    arguments = [_tree(each) for number in (1, 3) for each in fields.get(number, ())]
    return Call(_text(fields, 2), tuple(arguments))


def _list(fields: _Fields) -> Tree:
    return ListOf(tuple(_tree(each) for each in fields.get(1, ())))


def _struct(fields: _Fields) -> Tree:
    entries = [_fields(each) for each in fields.get(2, ())]
    keys = tuple(_part(entry, 3) for entry in entries if 3 in entry)
    return MapOf(keys, tuple(_part(entry, 4) for entry in entries))


def _loop(fields: _Fields) -> Tree:
    names = (_text(fields, 1), *([_text(fields, 8)] if 8 in fields else []))
    parts = (_part(fields, number) for number in (2, 4, 5, 6, 7))
    return Loop(names, _text(fields, 3), *parts)


_READERS: Final = {
    _CONSTANT: _constant,
    _NAME: _name,
    _SELECT: _select,
    _CALL: _call,
    _LIST: _list,
    _STRUCT: _struct,
    _LOOP: _loop,
}


def _part(fields: Mapping[int, list[bytes]], number: int) -> Tree:
    return _tree(fields[number][-1]) if number in fields else Constant(b"")


def _text(fields: _Fields, number: int) -> str:
    return fields[number][-1].decode() if number in fields else ""


def _fields(encoded: bytes) -> _Fields:
    """Return the fields of a message by number; a field that is no bytes is empty."""
    found: _Fields = {}
    for number, value in _walk(encoded):
        found.setdefault(number, []).append(value)
    return found


def _walk(encoded: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(encoded):
        tag, place = _varint(encoded, place)
        number, wire = tag >> 3, tag & 7
        length = {1: 8, 5: 4}.get(wire, 0)
        if wire == 0:
            _, place = _varint(encoded, place)
            yield number, b""
            continue
        if wire == 2:
            length, place = _varint(encoded, place)
        yield number, encoded[place : place + length]
        place += length


def _varint(encoded: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = encoded[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
