"""Objects as the API wrote them, with the fields that our structs do not read.

A reflector that is given a `WholeObjects` leaves the bytes of every object there; HTTP extenders
are sent these bytes. The bytes are kept only where an extender needs them, because they cost as
much as the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from moorage.api.codec import decode_untyped, encode
from moorage.api.meta import ApiObject
from moorage.client.objects import Key, key_of

_LISTED_MAX = 3  # a guess: the feasible nodes, and the nodes that one or two extenders left


class _ObjectBytes(msgspec.Struct, gc=False):
    uid: str
    raw: bytes
    trimmed: bool = False


class WholeObjects:
    """The newest bytes of the objects of one kind, by namespace and name.

    Parameters
    ----------
    wanted
        Selects the objects to keep; all when None.
    """

    def __init__(self, wanted: Callable[[ApiObject], bool] | None = None) -> None:
        self._wanted = wanted
        self._bytes_by_key: dict[Key, _ObjectBytes] = {}
        self._listed: list[tuple[Sequence[ApiObject], bytes]] = []

    def __len__(self) -> int:
        return len(self._bytes_by_key)

    def keep(self, obj: ApiObject, raw: bytes) -> None:
        """Take in the bytes an object was read from."""
        self._listed.clear()
        if self._wanted is None or self._wanted(obj):
            self._bytes_by_key[key_of(obj)] = _ObjectBytes(obj.metadata.uid, raw)
        else:
            self._bytes_by_key.pop(key_of(obj), None)

    def drop(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._listed.clear()
        self._bytes_by_key.pop(key, None)

    def whole(self, obj: ApiObject) -> bytes:
        """Return an object's JSON as Go's scheduler has it: whole, but without managed fields.

        The JSON is that of the newest version, perhaps newer than `obj`. When nothing is kept, or
        another object of that name, the fields read of `obj` are used.
        """
        stored = self._bytes_by_key.get(key_of(obj))
        if stored is None or stored.uid != obj.metadata.uid:
            return encode(obj)
        if not stored.trimmed:
            stored.raw, stored.trimmed = _trimmed(stored.raw), True
        return stored.raw

    def listed(self, objects: Sequence[ApiObject]) -> bytes:
        """Return the JSON of several objects, separated by commas.

        The last answers are kept. As long as no node changes, the next pod's attempt asks for the
        same nodes: all nodes, and the nodes that an extender left.
        """
        for known, text in self._listed:
            if known == objects:
                return text
        text = b",".join([self.whole(obj) for obj in objects])
        self._listed = [(list(objects), text), *self._listed[: _LISTED_MAX - 1]]
        return text


def _trimmed(raw: bytes) -> bytes:
    fields = decode_untyped(raw)
    for key in ("kind", "apiVersion"):
        fields.pop(key, None)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return encode(fields)
