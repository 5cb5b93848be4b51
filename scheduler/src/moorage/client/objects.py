"""Bytes of a list page or a watch line to typed objects, one decode each.

The reflector's reader: a line is decoded in one step into the resource's own struct; only a line
that does not fit takes a second look (ERROR and BOOKMARK objects, and objects with faults).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from moorage.api.codec import NOT_JSON, decode_untyped, decoder, from_dict
from moorage.api.meta import ApiObject, ListMeta
from moorage.base.errors import DecodeError
from moorage.client.status import Status

Key: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace is "" for cluster-scoped objects."""

ObjectT = TypeVar("ObjectT", bound=ApiObject)

_STORED = frozenset({"ADDED", "MODIFIED"})

_SHOWN_MAX = 80  # characters of a text that is not what it should be

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchItem(msgspec.Struct, Generic[ObjectT], frozen=True, gc=False):
    """A line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and its object."""

    type: str
    object: ObjectT


class Unreadable(msgspec.Struct, frozen=True):
    """A line or list item whose object does not decode.

    Parameters
    ----------
    type
        ADDED, MODIFIED or DELETED.
    key
        (namespace, name) as far as they can be read; ("", "") if not at all.
    resource_version
        The object's version, "" if it cannot be read.
    error
        The fault of the object.
    """

    type: str
    key: Key
    resource_version: str
    error: DecodeError


class ListedItems(msgspec.Struct, frozen=True):
    """A page of a list, its items not decoded yet."""

    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = ListMeta()


class _RawItem(msgspec.Struct, frozen=True):
    object: msgspec.Raw


Keep = Callable[[ApiObject, bytes], None]
"""Takes an object and the bytes it was read from."""


class ObjectReader(Generic[ObjectT]):
    """Decodes lists and watches of one type.

    Parameters
    ----------
    type_
        The struct to decode into.
    kind
        Objects that say they are of another kind are unreadable.
    keep
        Given the bytes of every object; None where the bytes are not needed.
    trim
        Makes each object smaller in place before anybody sees it; None where nothing does.
    """

    def __init__(
        self,
        type_: type[ObjectT],
        *,
        kind: str,
        keep: Keep | None = None,
        trim: Callable[[ObjectT], None] | None = None,
    ) -> None:
        self._type = type_
        self._kind = kind
        self._keep = keep
        self._trim = trim
        self._raw_item = decoder(_RawItem)
        line: type[WatchItem[ObjectT]] = WatchItem[type_]  # type: ignore[valid-type]
        self._line = decoder(line)
        self._item = decoder(type_)
        self._listed = decoder(ListedItems)

    def read_line(self, line: bytes) -> WatchItem[ObjectT] | Unreadable | Status:
        """Decode one line of a watch; a `Status` is an ERROR line's.

        Raises
        ------
        DecodeError
            The line is no watch event at all: the stream is broken.
        """
        try:
            item = self._line.decode(line)
        except NOT_JSON:
            return self._second_look(line)
        if item.type == "ERROR" or (item.object.kind and item.object.kind != self._kind):
            return self._second_look(line)
        if self._keep is not None and item.type in _STORED:
            self._keep(item.object, bytes(self._raw_item.decode(line).object))
        if self._trim is not None and item.type != "BOOKMARK":
            self._trim(item.object)
        return item

    def split_list(self, body: bytes) -> ListedItems:
        """Cut one page of a list into its items.

        Raises
        ------
        DecodeError
            The body is no list.
        """
        try:
            return self._listed.decode(body)
        except NOT_JSON as error:
            raise DecodeError(f"not a list of {self._kind}: {error}") from error

    def read_listed(self, raw: msgspec.Raw) -> ObjectT | Unreadable:
        """Decode one item of a list."""
        try:
            obj = self._item.decode(raw)
        except NOT_JSON:
            return self._object("ADDED", *_untyped(bytes(raw)))
        if self._keep is not None:
            self._keep(obj, bytes(raw))
        if self._trim is not None:
            self._trim(obj)
        return obj

    def _second_look(self, line: bytes) -> WatchItem[ObjectT] | Unreadable | Status:
        raw, fault = _untyped(line)
        kind = raw.get("type") if isinstance(raw, dict) else None
        if not isinstance(kind, str) or "object" not in raw:
            raise DecodeError(f"not a watch event: {line[:80]!r}")
        if kind == "ERROR":
            return self._status(raw["object"])
        found = self._object(kind, raw["object"], fault)
        return found if isinstance(found, Unreadable) else WatchItem(kind, found)

    def _object(
        self, event: str, raw: object, fault: DecodeError | None = None
    ) -> ObjectT | Unreadable:
        """Return an object, or why it cannot be read; a fault of its bytes comes first."""
        mapping = raw if isinstance(raw, Mapping) else {}
        kind = mapping.get("kind") or self._kind
        if fault is not None:
            error = fault
        elif mapping and kind == self._kind:
            try:
                obj = from_dict(self._type, mapping)
            except DecodeError as caught:
                error = caught
            else:
                if self._trim is not None:
                    self._trim(obj)
                return obj
        else:
            seen = f"kind {kind!r}"[:_SHOWN_MAX] if mapping else "nothing"
            error = DecodeError(f"{seen} where a {self._kind} should be")
        metadata = mapping.get("metadata")
        names = metadata if isinstance(metadata, Mapping) else {}
        key = (_text(names, "namespace"), _text(names, "name"))
        return Unreadable(event, key, _text(names, "resourceVersion"), error)

    @staticmethod
    def _status(raw: object) -> Status:
        try:
            return msgspec.convert(raw, Status)
        except msgspec.ValidationError:
            return Status(code=500, message=f"an unreadable error: {raw!r}"[:200])


def key_of(obj: ApiObject) -> Key:
    """Return the (namespace, name) of an object."""
    return obj.metadata.namespace, obj.metadata.name


def ends_initial_events(bookmark: ApiObject) -> bool:
    """Whether a bookmark says that the list part of a streaming list is complete."""
    return bookmark.metadata.annotations.get(INITIAL_EVENTS_END) == "true"


def _untyped(data: bytes) -> tuple[Any, DecodeError | None]:
    """Return JSON as plain values, and its fault if some text in it is not UTF-8.

    Such a text is shown with U+FFFD in it, so that the object can be named.

    Raises
    ------
    DecodeError
        Not JSON.
    """
    try:
        return decode_untyped(data), None
    except DecodeError as fault:
        text = data.decode("utf-8", "replace")
        if "\ufffd" not in text:
            raise
        return decode_untyped(text), fault


def _text(mapping: Mapping[str, object], name: str) -> str:
    value = mapping.get(name)
    return value if isinstance(value, str) else ""
