"""The view of the cluster that all controllers share: one watch for each kind.

Place in the flow: reflector -> **view** -> the controllers' queues. Controllers read the view and
never the server; the view shows their writes after the watch does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from moorage.api.meta import ApiObject
from moorage.api.resources import ResourceType
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import DecodeError
from moorage.base.rng import Streams
from moorage.client.objects import Key, key_of
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)

ChangeListener = Callable[[T | None, T | None], None]
"""Called with the version before and the newest version; None for a missing version."""


class _Reflector(Reflector[T]):
    # A cluster has the kinds of scheduler-plugins only where its scheduler uses the plugins.
    unserved_level = logging.INFO


class View(Generic[T]):
    """The newest version of every object of a kind.

    Attributes
    ----------
    type
        What the objects are decoded as.
    objects
        Objects by (namespace, name); read only.
    """

    def __init__(self, resource: ResourceType, type_: type[T]) -> None:
        self.resource = resource
        self.type = type_
        self.objects: dict[Key, T] = {}
        self._listeners: list[ChangeListener[T]] = []
        # Uid of the managing owner -> its objects; objects without an owner are under their
        # namespace.
        self._owned: dict[str, dict[Key, T]] = {}
        self._free: dict[str, dict[Key, T]] = {}

    def tell(self, listener: ChangeListener[T]) -> None:
        """Call a listener with every change from now on."""
        self._listeners.append(listener)

    def owned_by(self, uid: str) -> list[T]:
        """Return the objects an owner manages, by name."""
        found = self._owned.get(uid, {})
        return [found[key] for key in sorted(found)]

    def free_in(self, namespace: str) -> list[T]:
        """Return the objects of a namespace without a managing owner, by name."""
        found = self._free.get(namespace, {})
        return [found[key] for key in sorted(found)]

    def in_namespace(self, namespace: str) -> list[T]:
        """Return the objects of a namespace, by name; scans all objects of the kind."""
        keys = sorted(key for key in self.objects if key[0] == namespace)
        return [self.objects[key] for key in keys]

    # --- told by the reflector --------------------------------------------------------------

    def on_add(self, obj: T) -> None:
        """Take in an object that appeared."""
        self._put_object(obj)
        self._pass_on(None, obj)

    def on_update(self, old: T, new: T) -> None:
        """Take in a newer version."""
        self._drop(old)
        self._put_object(new)
        self._pass_on(old, new)

    def on_delete(self, obj: T, *, missed: bool) -> None:
        """Take in that an object is gone."""
        self._drop(self.objects.get(key_of(obj), obj))
        self.objects.pop(key_of(obj), None)
        self._pass_on(obj, None)

    def on_synced(self) -> None:
        """Do nothing: `Views.synced` waits for the list."""

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Take in that an object cannot be read."""
        _log.warning("%s cannot be read and is left alone: %s", "/".join(key), error)

    def _pass_on(self, old: T | None, new: T | None) -> None:
        for told in self._listeners:
            told(old, new)

    def _group(self, obj: T) -> tuple[dict[str, dict[Key, T]], str]:
        owner = obj.metadata.controller
        return (self._free, obj.namespace) if owner is None else (self._owned, owner.uid)

    def _put_object(self, obj: T) -> None:
        key = key_of(obj)
        self.objects[key] = obj
        groups, name = self._group(obj)
        groups.setdefault(name, {})[key] = obj

    def _drop(self, obj: T) -> None:
        groups, name = self._group(obj)
        group = groups.get(name)
        if group is not None:
            group.pop(key_of(obj), None)
            if not group:
                del groups[name]


class Views:
    """The views of a set of controllers.

    Parameters
    ----------
    transport
        Carries the calls.
    clock, streams
        Time and randomness for the watches.
    """

    def __init__(self, transport: Transport, *, clock: Clock, streams: Streams) -> None:
        self._transport = transport
        self._clock = clock
        self._streams = streams
        self._views: dict[tuple[str, str], View[Any]] = {}  # by API version and plural
        self._reflectors: list[Reflector[Any]] = []

    def view_of(self, resource: ResourceType, type_: type[T]) -> View[T]:
        """Return the view of a kind, made on first use; all uses must give the same type."""
        view = self.known(resource)
        if view is None:
            view = self._views[resource.api_version, resource.plural] = View(resource, type_)
            self._reflectors.append(
                _Reflector(
                    self._transport,
                    resource,
                    type_,
                    handler=view,
                    clock=self._clock,
                    rng=self._streams.stream(f"controllers/{resource.qualified}"),
                    optional=True,
                )
            )
        assert view.type is type_, f"{resource.plural} are viewed as {view.type.__name__}"
        return view

    def known(self, resource: ResourceType) -> View[Any] | None:
        """Return the view of a kind, if some controller uses one."""
        return self._views.get((resource.api_version, resource.plural))

    async def synced(self) -> None:
        """Wait until everything has been listed."""
        for each in self._reflectors:
            await each.synced.wait()

    async def run(self) -> None:
        """Watch until cancelled."""
        await aio.together(*(each.run() for each in self._reflectors))
