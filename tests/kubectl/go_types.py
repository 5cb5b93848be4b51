"""Struct types of a Go program, read from the type information that every Go binary carries.

Place in the flow: test support only. kubectl and helm are built from Kubernetes' own Go types, so
their binaries tell which field is a pointer, and its names in JSON and protobuf. By these the
tests check `moorage_sandbox.apiserver.protobuf.facts`.

The layout is that of Go 1.2x on linux/amd64 (internal/abi type.go): a type is 48 bytes, then what
its kind adds; names are length-prefixed; ``.typelink`` lists pointer types by offset.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, NamedTuple

_POINTER: Final = 22
_STRUCT: Final = 25
_KINDS: Final = {
    1: "bool",
    _POINTER: "pointer",
    21: "map",
    23: "slice",
    24: "string",
    _STRUCT: "struct",
}
_TYPE_BYTES: Final = 48
_NO_CONTENT: Final = 8  # a section of this type is not in the file
_UNCOMMON, _EXTRA_STAR = 1, 2  # flags of a type
_HAS_TAG: Final = 2  # flag of a name


class GoField(NamedTuple):
    """One field of a struct: its name, its tag, and what kind of type it has."""

    name: str
    tag: str
    kind: str

    def tagged(self, key: str) -> list[str] | None:
        """Return the comma-separated parts of one key of the tag, None without that key."""
        _, found, rest = self.tag.partition(f'{key}:"')
        return rest.partition('"')[0].split(",") if found else None


def struct_types(program: Path) -> dict[str, list[GoField]]:
    """Return the fields of every named struct, by ``import/path.Name``."""
    binary = _Binary(program.read_bytes())
    found = {}
    for address in binary.linked_types():
        if binary.kind(address) != _POINTER:
            continue
        element = binary.word(address + _TYPE_BYTES)
        if binary.kind(element) == _STRUCT and binary.flags(element) & _UNCOMMON:
            path, name = binary.path(element), binary.type_name(element).partition(".")[2]
            found[f"{path}.{name}"] = binary.fields(element)
    return found


class _Binary:
    """An ELF file, addressed as when it runs."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        table, size, count, names = (
            *struct.unpack_from("<Q", data, 0x28),
            *struct.unpack_from("<HHH", data, 0x3A),
        )
        headers = [struct.unpack_from("<IIQQQQ", data, table + size * i) for i in range(count)]
        start = headers[names][4]
        self._sections: dict[str, tuple[int, int, int]] = {
            data[start + name : data.index(b"\0", start + name)].decode(): (address, offset, length)
            for name, kind, _, address, offset, length in headers
            if kind != _NO_CONTENT
        }
        self._types = self._sections[".rodata"][0]

    def linked_types(self) -> list[int]:
        """Return the addresses of the types that ``.typelink`` lists."""
        _, offset, length = self._sections[".typelink"]
        offsets = struct.unpack_from(f"<{length // 4}i", self._data, offset)
        return [self._types + each for each in offsets]

    def kind(self, address: int) -> int:
        """Return the kind of a type."""
        return self._data[self._place(address) + 23] & 31

    def flags(self, address: int) -> int:
        """Return the flags of a type."""
        return self._data[self._place(address) + 20]

    def word(self, address: int) -> int:
        """Return an unsigned word of eight bytes."""
        found: tuple[int] = struct.unpack_from("<Q", self._data, self._place(address))
        return found[0]

    def type_name(self, address: int) -> str:
        """Return the name of a type as Go prints it."""
        name = self._name(self._types + self._offset(address + 40))[0]
        return name[1:] if self.flags(address) & _EXTRA_STAR else name

    def path(self, address: int) -> str:
        """Return the import path of a named struct type."""
        return self._name(self._types + self._offset(address + _TYPE_BYTES + 32))[0]

    def fields(self, address: int) -> list[GoField]:
        """Return the fields of a struct type in their order."""
        place = address + _TYPE_BYTES
        first, count = self.word(place + 8), self.word(place + 16)
        found = []
        for field in range(first, first + 24 * count, 24):
            name, tag = self._name(self.word(field))
            found.append(GoField(name, tag, _KINDS.get(self.kind(self.word(field + 8)), "number")))
        return found

    def _offset(self, address: int) -> int:
        found: tuple[int] = struct.unpack_from("<i", self._data, self._place(address))
        return found[0]

    def _name(self, address: int) -> tuple[str, str]:
        place = self._place(address)
        tagged = self._data[place] & _HAS_TAG
        name, place = self._text(place + 1)
        return name, self._text(place)[0] if tagged else ""

    def _text(self, place: int) -> tuple[str, int]:
        length = shift = 0
        while True:
            byte = self._data[place]
            place, length, shift = place + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                return self._data[place : place + length].decode(), place + length

    def _place(self, address: int) -> int:
        for start, offset, length in self._sections.values():
            if start and start <= address < start + length:
                return address - start + offset
        raise ValueError(f"address {address:#x} is in no section")
