"""Fields of protobuf, for messages that are written without the classes of the runtime."""

from __future__ import annotations

from typing import Final

VARINT: Final = 0
"""The wire type of whole numbers and of truth values."""
FIXED64: Final = 1
"""The wire type of doubles."""
_LENGTH_DELIMITED: Final = 2
_BITS: Final = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Encode a whole number; a negative one as 64 bits."""
    value &= _BITS
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def bytes_field(number: int, data: bytes) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(data)) + data
