"""Bounds of the parts of a protobuf body, counted before the runtime builds objects.

Place in the flow: `codec.decode` asks here first. An empty message has two bytes, and the runtime
makes an object of hundreds of bytes from it. No other call is answered while the runtime reads. So
a long body is walked first, as far as the bounds allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from moorage_sandbox.apiserver.protobuf import facts

PARTS_MAX: Final = 20_000
"""Most messages, list elements, map entries and unknown fields of a body.

The largest definitions of custom resources have about 15,000; reading takes 2 to 4 us for each
(2-core machine, 2026-11-22).
"""
FIELDS_MAX: Final = 200_000
"""Most fields of a body in all; Go writes fields of value zero, too."""

_PART_BYTES_MIN: Final = 2
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX: Final = 10
# The content of a field that is no message: one text or bytes; a text of a list; the numbers of a
# list, in sequence; an unknown field.
_ONE, _TEXT, _NUMBERS, _UNKNOWN = "one", "text", "numbers", "unknown"
_LEAVES: Final = (_ONE, _TEXT, _NUMBERS, _UNKNOWN)


def check_parts(message: str, data: bytes) -> None:
    """Refuse a body with too many parts.

    Parameters
    ----------
    message
        Full name of the message.
    data
        Its bytes.

    Raises
    ------
    ValueError
        The body exceeds a bound, or is no message; the text says which.
    """
    if len(data) > _PART_BYTES_MIN * PARTS_MAX:
        walk(message, data)


def walk(message: str, data: bytes) -> None:
    """Walk all of a message, as far as the bounds allow.

    Raises
    ------
    ValueError
        The body exceeds a bound, or is no message; the text says which.
    """
    parts = fields = 0
    open_messages = [(0, len(data), message)]
    while open_messages:
        place, end, name = open_messages.pop()
        content = _content_of(name)
        while place < end:
            # Most numbers have one byte; a call for each would double the time.
            tag, place = (data[place], place + 1) if data[place] < 0x80 else _varint(data, place)
            fields += 1
            if tag & 7 == _DELIMITED:
                size, place = _varint(data, place)
                what = content.get(tag >> 3, _UNKNOWN)
                parts += 0 if what is _ONE else size if what is _NUMBERS else 1
                if what not in _LEAVES:
                    open_messages.append((place, place + size, what))
                place += size
            else:
                parts += tag >> 3 not in content
                place = _behind_number(data, place, tag & 7)
            if parts > PARTS_MAX:
                raise ValueError(f"more than {PARTS_MAX} messages, elements and entries")
            if fields > FIELDS_MAX:
                raise ValueError(f"more than {FIELDS_MAX} fields")
        if place > end:
            raise ValueError("unexpected end of data")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number, and the place behind it."""
    value = shift = 0
    for at, byte in enumerate(data[place : place + _VARINT_BYTES_MAX], place):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise ValueError("unexpected end of data")


def _behind_number(data: bytes, place: int, wire_type: int) -> int:
    """Return the place behind a number."""
    if wire_type == _VARINT:
        short = place < len(data) and data[place] < 0x80
        return place + 1 if short else _varint(data, place)[1]
    if wire_type in (_FIXED64, _FIXED32):
        return place + (8 if wire_type == _FIXED64 else 4)
    raise ValueError(f"unknown wire type {wire_type}")


@cache
def _content_of(name: str) -> Mapping[int, str]:
    """Return what each field of a message holds, or of the entries of a map (MESSAGE/NUMBER)."""
    full, _, number = name.partition("/")
    package = full.rpartition(".")[0]
    if number:
        (field,) = (each for each in facts.fields(full) if each.number == int(number))
        return {1: _ONE, 2: _content_type(facts.value_type(field), package)}
    fields = {}
    for field in facts.fields(full):
        what = _content_type(field.type, package)
        if field.how == "m":
            what = f"{full}/{field.number}"
        elif field.how == "r" and what is _ONE:
            what = _TEXT if field.type in ("string", "bytes") else _NUMBERS
        fields[field.number] = what
    return fields


def _content_type(type_name: str, package: str) -> str:
    return _ONE if type_name in facts.SCALARS else facts.full_name(type_name, package)
