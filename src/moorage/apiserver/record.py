"""One stored object: its bytes, and the few fields that selectors need.

The store keeps bytes, not dictionaries: lists and watches send these bytes, and bytes take a tenth
of the memory. Decoding an object again for a write costs twenty microseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from moorage.apiserver.kind import Obj

_decoder = msgspec.json.Decoder(dict)
_encode = msgspec.json.Encoder().encode
# Most objects have no labels: they share one empty mapping, which cannot be changed.
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_BETWEEN: Final = "\0"


class PackedFields(Mapping[str, str]):
    """Values for field selectors in one text: a third of the memory of a dictionary.

    A reader pays half a microsecond for a value. So this is for objects of which there are many and
    which are rarely selected by a field: Events.

    Parameters
    ----------
    names
        The paths, the same tuple for all objects of a kind.
    values
        Their values, joined.
    """

    __slots__ = ("_names", "_values")

    def __init__(self, names: tuple[str, ...], values: str) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, path: str) -> str:
        try:
            place = self._names.index(path)
        except ValueError:
            raise KeyError(path) from None
        return self._values.split(_BETWEEN)[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


# Equal tuples of paths -> the one that is kept. Bounded by the number of kinds.
_names: dict[tuple[str, ...], tuple[str, ...]] = {}


def packed(names: tuple[str, ...], values: Sequence[str]) -> Mapping[str, str]:
    """Return fields packed, or in a dictionary where a value contains the separator.

    Parameters
    ----------
    names
        The paths.
    values
        The value of each path.
    """
    joined = _BETWEEN.join(values)
    if joined.count(_BETWEEN) != len(names) - 1:
        return dict(zip(names, values, strict=True))
    return PackedFields(_names.setdefault(names, names), joined)


class Record(msgspec.Struct, frozen=True, gc=False):
    """An object as stored at one version.

    Parameters
    ----------
    namespace
        Empty for kinds without namespaces.
    name, uid
        As in ``metadata``.
    version
        ``metadata.resourceVersion`` as a number.
    data
        The object, JSON.
    labels
        ``metadata.labels``.
    fields
        Values for field selectors.
    """

    namespace: str
    name: str
    uid: str
    version: int
    data: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name): lists are in this order."""
        return (self.namespace, self.name)

    def decode(self) -> Obj:
        """Return the object as a new dictionary."""
        obj: Obj = _decoder.decode(self.data)
        return obj


def make_record(obj: Obj, version: int, fields: Mapping[str, str]) -> Record:
    """Stamp an object with its version (in place) and encode it."""
    meta = obj["metadata"]
    meta["resourceVersion"] = str(version)
    return Record(
        namespace=sys.intern(meta.get("namespace") or ""),
        name=meta["name"],
        uid=meta.get("uid") or "",
        version=version,
        data=_encode(obj),
        labels=meta.get("labels") or _NO_LABELS,
        fields=fields,
    )


def unsaved_record(obj: Obj) -> Record:
    """Encode an object that is shown but not stored (a dry run), without a version of its own."""
    meta = obj["metadata"]
    return Record(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta.get("uid") or "",
        version=0,
        data=_encode(obj),
        labels={},
        fields={},
    )
