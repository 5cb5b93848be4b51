"""The newest version of every object of a kind, as the watches of a controller showed it.

The handler of a `moorage.client.reflector.Reflector`; controllers read here, not from the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from moorage.api.meta import ApiObject
from moorage.base.errors import DecodeError
from moorage.client.objects import Key

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)


class Seen(Generic[T]):
    """The newest version of every object of a kind, and the keys changed since the last take.

    Parameters
    ----------
    changed
        Called with every new version, and with the last version of a deleted object. Called with
        the version before, too, when a change removed or replaced labels. Called with None once all
        objects are listed.
    """

    def __init__(self, changed: Callable[[T | None], None]) -> None:
        self.objects: dict[Key, T] = {}
        self.dirty: dict[Key, None] = {}
        self._changed = changed

    def take_dirty(self) -> dict[Key, None]:
        """Return the keys of changed objects, and forget them."""
        dirty, self.dirty = self.dirty, {}
        return dirty

    def on_add(self, obj: T) -> None:
        """Take in an object that appeared."""
        key = (obj.namespace, obj.name)
        self.objects[key] = obj
        self.dirty[key] = None
        self._changed(obj)

    def on_update(self, old: T, new: T) -> None:
        """Take in a newer version."""
        if old.metadata.labels != new.metadata.labels:
            self._changed(old)
        self.on_add(new)

    def on_delete(self, obj: T, *, missed: bool) -> None:
        """Take in that an object is gone."""
        key = (obj.namespace, obj.name)
        self.objects.pop(key, None)
        self.dirty[key] = None
        self._changed(obj)

    def on_synced(self) -> None:
        """Take in that everything was listed."""
        self._changed(None)

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Take in that an object cannot be read."""
        _log.warning("%s cannot be read and is left alone: %s", "/".join(key), error)
