"""The interface through which a reflector reports objects."""

from __future__ import annotations

from typing import Protocol, TypeVar

from moorage.api.meta import ApiObject
from moorage.base.errors import DecodeError
from moorage.client.objects import Key

HandledT_contra = TypeVar("HandledT_contra", bound=ApiObject, contravariant=True)


class Handler(Protocol[HandledT_contra]):
    """Takes in every change, in order, on the loop; must not block and must not raise."""

    def on_add(self, obj: HandledT_contra) -> None:
        """Take in an object that appeared."""
        ...

    def on_update(self, old: HandledT_contra, new: HandledT_contra) -> None:
        """Take in a change, or a second look in a relist; versions between may be missing."""
        ...

    def on_delete(self, obj: HandledT_contra, *, missed: bool) -> None:
        """Take in that an object is gone; if `missed`, `obj` is the last version known."""
        ...

    def on_synced(self) -> None:
        """Take in that every object of the first list has been reported; called once."""
        ...

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Take in that the newest version cannot be read; an older version, if any, stays known."""
        ...
