"""Watches the objects of groups that are not scheduled, as no pod may name them yet.

Nothing depends on these watches: the server need not have the kinds, and need not let them be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, CoschedulingGroup
from moorage.api.meta import ApiObject
from moorage.api.pod_group import PodGroup
from moorage.api.resources import POD_GROUPS, ResourceType
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import DecodeError, MoorageError
from moorage.base.rng import Streams
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.snapshot.group_labels import CUSTOM_SOURCE
from moorage.snapshot.group_sources import API_SOURCE
from moorage.snapshot.pod_groups import GroupKey

_AGAIN_SECONDS: Final = 60.0

_KINDS: Final[tuple[tuple[str, ResourceType, type[Any]], ...]] = (
    (API_SOURCE, POD_GROUPS, PodGroup),
    (CUSTOM_SOURCE, COSCHEDULING_POD_GROUPS, CoschedulingGroup),
)


class GroupObjects:
    """A watch of each kind of group that is not scheduled.

    Parameters
    ----------
    transport, clock, streams
        As for the scheduler's other watches.
    is_scheduled
        Whether groups of a source are scheduled, so that others watch them.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        streams: Streams,
        is_scheduled: Callable[[str], bool],
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._streams = streams
        self._is_scheduled = is_scheduled

    async def run(self, on_object: Callable[[GroupKey, bool], None]) -> None:
        """Watch until cancelled.

        Parameters
        ----------
        on_object
            Called with a group whose object exists, and whether it still does.
        """
        reflectors = [
            _QuietReflector(
                self._transport,
                resource,
                type_,
                handler=_Handler(source, on_object),
                clock=self._clock,
                rng=self._streams.stream(f"group objects/{resource.group}"),
            )
            for source, resource, type_ in _KINDS
            if not self._is_scheduled(source)
        ]
        if reflectors:
            await aio.together(*(each.run() for each in reflectors))


class _QuietReflector(Reflector[Any]):
    """A reflector whose failures concern nobody."""

    async def run(self) -> None:
        while True:
            try:
                await self._list_and_watch()
            except MoorageError as error:
                self.last_error = error
            await aio.sleep(_AGAIN_SECONDS)


class _Handler:
    def __init__(self, source: str, on_object: Callable[[GroupKey, bool], None]) -> None:
        self._source = source
        self._on_object = on_object

    def on_synced(self) -> None:
        pass

    def on_undecodable(self, key: tuple[str, str], problem: DecodeError) -> None:
        del problem
        self._on_object(GroupKey(*key, self._source), True)

    def on_add(self, obj: ApiObject) -> None:
        self._on_object(GroupKey(obj.namespace, obj.name, self._source), True)

    def on_update(self, old: ApiObject, new: ApiObject) -> None:
        pass

    def on_delete(self, obj: ApiObject, *, missed: bool) -> None:
        del missed
        self._on_object(GroupKey(obj.namespace, obj.name, self._source), False)
