"""The keys of a kind's objects that have changed, for controllers that work in rounds.

Place in the flow: view -> **changes** -> the next round of a controller, which takes the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from moorage.api.meta import ApiObject
from moorage.client.objects import Key, key_of
from moorage.controllers.views import View

T = TypeVar("T", bound=ApiObject)


class ChangedObjects(Generic[T]):
    """The newest version of every object of a kind, and the keys changed since the last take.

    Parameters
    ----------
    view
        Shows the objects.
    changed
        Called with every new version, and with the last version of a deleted object. Called with
        the version before, too, when a change removed or replaced labels.

    Attributes
    ----------
    objects
        Objects by (namespace, name); read only.
    dirty
        Keys of the changed objects.
    """

    def __init__(self, view: View[T], changed: Callable[[T], None]) -> None:
        self.objects = view.objects
        self.dirty: dict[Key, None] = {}
        self._changed = changed
        view.tell(self._object_changed)

    def take_dirty(self) -> dict[Key, None]:
        """Return the keys of changed objects, and forget them."""
        dirty, self.dirty = self.dirty, {}
        return dirty

    def _object_changed(self, old: T | None, new: T | None) -> None:
        if old is not None and (new is None or old.metadata.labels != new.metadata.labels):
            self._note(old)
        if new is not None:
            self._note(new)

    def _note(self, obj: T) -> None:
        self.dirty[key_of(obj)] = None
        self._changed(obj)
