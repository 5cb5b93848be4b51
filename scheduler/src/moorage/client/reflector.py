"""List and watch one resource type, and tell a handler what changed: no gap, no reorder for a key.

The first room of the flow: API server -> **reflector** -> ingest -> state. One reflector for each
resource type; `Reflector.run` goes on until cancelled. The layers are: ``run`` (for ever,
with backoff) around ``_list_and_watch`` (one life of a resourceVersion) around ``_follow`` (one
open stream) around ``_handle`` (one object).

Notes
-----
Mirrors kubernetes v1.36 client-go tools/cache/reflector.go. Differences: an object whose uid
changed between two looks is reported as a missed deletion and an addition, never as an update;
an object that cannot be decoded is reported and the stream goes on; a kind that an older server
does not serve is taken for empty and asked for again, where it would hold up the start for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Generic, TypeVar

from moorage.api.meta import ApiObject
from moorage.api.resources import ResourceType
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import (
    AnswerTooLargeError,
    ApiError,
    DecodeError,
    GoneError,
    MoorageError,
    NotFoundError,
    RefusedError,
    TooManyRequestsError,
    TransportError,
)
from moorage.base.rng import Random
from moorage.client import requests
from moorage.client.backoff import Backoff, BackoffRule
from moorage.client.handler import Handler
from moorage.client.objects import (
    Key,
    ObjectReader,
    Unreadable,
    WatchItem,
    ends_initial_events,
    key_of,
)
from moorage.client.status import (
    Status,
    error_from_answer,
    error_from_status,
    refuse_failed,
    too_large_resource_version,
)
from moorage.client.transport import Answer, Transport
from moorage.client.whole import WholeObjects

_log = logging.getLogger(__name__)

_WATCH_SECONDS_MIN = 300  # the server closes a watch after 5 to 10 minutes (client-go)
_SHORT_WATCH_SECONDS = 1.0
_BATCH = 64  # objects decoded or handled before the loop gets a turn; 64 pods take 1 to 6 ms

_UNSERVED_SECONDS = 60.0  # a guess: servers are upgraded far less often

ObjectT = TypeVar("ObjectT", bound=ApiObject)
T = TypeVar("T")


class Reflector(Generic[ObjectT]):
    """Keeps the last known objects of one resource type in step with the server.

    Parameters
    ----------
    transport
        Carries the calls.
    resource
        The resource type to watch.
    type_
        The struct to decode its objects into.
    handler
        Takes in every change.
    namespace
        The only namespace to watch; "" for all.
    field_selector
        Restricts list and watch alike.
    whole
        Keeps the bytes of the objects; None where the bytes are not needed.
    trim
        Makes each object smaller in place before anybody sees it; None where nothing does.
    optional
        Whether the server may lack this resource type.
    hold
        Keeps changes from the handler for a while; None where nobody does.

    Attributes
    ----------
    synced
        Set once the first list has been handled.
    last_resource_version
        Where the next watch continues.
    last_error
        The failure that broke the last list or watch, None since a success.
    """

    unserved_level = logging.WARNING
    """Level of the log line that says that the server has no such resource type."""

    def __init__(  # noqa: PLR0913 - one keyword for each thing handed in
        self,
        transport: Transport,
        resource: ResourceType,
        type_: type[ObjectT],
        *,
        handler: Handler[ObjectT],
        clock: Clock,
        rng: Random,
        namespace: str = "",
        field_selector: str = "",
        whole: WholeObjects | None = None,
        trim: Callable[[ObjectT], None] | None = None,
        optional: bool = False,
        hold: aio.Hold | None = None,
    ) -> None:
        self._transport = transport
        self._resource = resource
        self._whole = WholeObjects() if whole is None else whole
        keep = None if whole is None else whole.keep
        self._reader = ObjectReader(type_, kind=resource.kind, keep=keep, trim=trim)
        self._handler = handler
        self._clock = clock
        self._rng = rng
        self._selection = requests.Selection(namespace, field_selector=field_selector)
        self._backoff = Backoff(BackoffRule(), clock=clock, rng=rng)
        self._objects: dict[Key, ObjectT] = {}
        self._handled = 0
        self._unavailable = False
        self._optional = optional
        self._hold = aio.Hold() if hold is None else hold
        self.last_resource_version = ""
        self.last_error: MoorageError | None = None
        self.synced = asyncio.Event()

    @property
    def known_objects(self) -> dict[Key, ObjectT]:
        """The last known objects by (namespace, name); read only."""
        return self._objects

    @property
    def plural(self) -> str:
        """The plural of the kind, as paths name it."""
        return self._resource.plural

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except NotFoundError as error:
                if self._optional:
                    await self._unserved(error)
                    await aio.sleep(_UNSERVED_SECONDS)
                    continue
                self._failed("list", error)
            except MoorageError as error:
                self._failed("list", error)
            await aio.sleep(self._backoff.next_seconds())

    # --- one life of a resourceVersion ------------------------------------------------------

    async def _list_and_watch(self) -> None:
        """List (as a stream if the server can), then watch until a relist is due."""
        async with AsyncExitStack() as stack:
            lines = await self._watch_list(stack)
            if lines is None:
                await stack.aclose()
                await self._list()
            while True:
                opened_ns, handled = self._clock.monotonic_ns(), self._handled
                try:
                    if lines is None:
                        lines = await self._open_watch(stack)
                    await self._follow(lines)
                except (TooManyRequestsError, TransportError) as error:
                    # Nothing is lost: the next watch continues where this one stopped.
                    self._failed("watch", error)
                    if lines is None or isinstance(error, TooManyRequestsError):
                        await stack.aclose()
                        lines = None
                        await aio.sleep(self._backoff.next_seconds())
                        continue
                except (ApiError, DecodeError, _RestoredError) as error:
                    self._failed("watch", error)
                    return
                await stack.aclose()
                lines = None
                lasted_ns = self._clock.monotonic_ns() - opened_ns
                if lasted_ns < _SHORT_WATCH_SECONDS * NS_PER_SECOND and handled == self._handled:
                    _log.info("%s: watch ended at once without events; listing", self._name)
                    return

    async def _watch_list(self, stack: AsyncExitStack) -> AsyncIterator[bytes] | None:
        """List in the form of a watch.

        Returns
        -------
        AsyncIterator or None
            The rest of the stream, which goes on as a watch; None if the server cannot do this.
        """
        while True:
            try:
                lines = await self._open_watch(stack, initial_events=True)
                await self._collect(lines)
            except (RefusedError, TooManyRequestsError) as error:
                self._failed("list", error)
                await stack.aclose()
                await aio.sleep(self._backoff.next_seconds())
            except ApiError as error:
                await stack.aclose()
                if self._unavailable or not _version_unavailable(error):
                    _log.info("%s: no streaming list (%s); listing plainly", self._name, error)
                    return None
                self._unavailable = True
            except (TransportError, DecodeError) as error:
                self._failed("list", error)
                return None
            else:
                return lines

    async def _list(self) -> None:
        """List page by page and replace the known objects."""
        while True:
            version = "" if self._unavailable else self.last_resource_version or "0"
            # A server refuses to page a list at an exact version it answers from memory.
            limit = requests.PAGE_SIZE if version in {"", "0"} else 0
            try:
                new_list = await self._pages(version, limit)
                break
            except AnswerTooLargeError as error:
                # Some servers send a list from memory whole. Without a version it comes in pages.
                if self._unavailable:
                    raise
                self._failed("list", error)
                self._unavailable = True
            except ApiError as error:
                if self._unavailable or not _version_unavailable(error):
                    raise
                self._unavailable = True
        await self._replace(new_list)

    async def _pages(self, version: str, limit: int) -> _NewList[ObjectT]:
        """Read all pages; after an expired continue token the list is read in one piece."""
        asked = aio.TaskOwner(on_failure=lambda _name, _error: None)  # told where it is awaited
        try:
            return await self._pages_asked(asked, version, limit)
        finally:
            await asked.cancel_all()

    async def _pages_asked(
        self, owner: aio.TaskOwner, version: str, limit: int
    ) -> _NewList[ObjectT]:
        """Read all pages; each is on its way while the one before it is decoded."""

        def ask(page: requests.ListPage) -> asyncio.Task[Answer]:
            call = requests.list_objects(self._resource, self._selection, page=page)
            return owner.spawn(self._transport.request(call), name="page")

        new_list: _NewList[ObjectT] = _NewList()
        page = requests.ListPage(resource_version=version, limit=limit)
        coming = ask(page)
        while True:
            answer = await coming
            if answer.status >= 400:
                error = error_from_answer(answer)
                if isinstance(error, GoneError) and page.continue_token:
                    new_list, page = _NewList(), requests.ListPage()
                    coming = ask(page)
                    continue
                raise error
            listed = self._reader.split_list(answer.body)
            token = listed.metadata.continue_
            if token:
                page = requests.ListPage(limit=limit, continue_token=token)
                coming = ask(page)
            async for raw in aio.in_turns(listed.items or (), most=_BATCH):
                item = self._reader.read_listed(raw)
                if isinstance(item, Unreadable):
                    new_list.unreadable[item.key] = item.error
                else:
                    new_list.objects[key_of(item)] = item
            new_list.resource_version = listed.metadata.resource_version
            if not token:
                return new_list

    # --- one stream -------------------------------------------------------------------------

    async def _open_watch(
        self, stack: AsyncExitStack, *, initial_events: bool = False
    ) -> AsyncIterator[bytes]:
        version = self.last_resource_version
        call = requests.watch(
            self._resource,
            self._selection,
            resource_version="" if initial_events and self._unavailable else version,
            timeout_seconds=self._rng.randrange(_WATCH_SECONDS_MIN, 2 * _WATCH_SECONDS_MIN),
            initial_events=initial_events,
        )
        stream = await stack.enter_async_context(self._transport.stream(call))
        await refuse_failed(stream)
        return aiter(stream)

    async def _collect(self, lines: AsyncIterator[bytes]) -> None:
        """Gather the list part of a streaming list, then replace the known objects."""
        new_list: _NewList[ObjectT] = _NewList()
        count = 0
        async for line in lines:
            item = self._decode_line(line)
            if isinstance(item, Unreadable):
                new_list.unreadable[item.key] = item.error
                new_list.objects.pop(item.key, None)
            elif item.type == "BOOKMARK":
                if ends_initial_events(item.object):
                    new_list.resource_version = item.object.metadata.resource_version
                    await self._replace(new_list)
                    return
            elif item.type == "DELETED":
                new_list.objects.pop(key_of(item.object), None)
                new_list.unreadable.pop(key_of(item.object), None)
            else:
                new_list.objects[key_of(item.object)] = item.object
                new_list.unreadable.pop(key_of(item.object), None)
            count += 1
            if count % _BATCH == 0:
                await aio.sleep(0)
        raise TransportError(f"{self._name}: the stream ended before the list was complete")

    async def _follow(self, lines: AsyncIterator[bytes]) -> None:
        """Handle the lines of a watch until it ends."""
        async for line in lines:
            item = self._decode_line(line)
            if self._hold.is_closed:
                await self._hold.over()
            self._handled += 1
            if isinstance(item, Unreadable):
                self._handle_unreadable(item)
            else:
                version = item.object.metadata.resource_version
                if item.type != "BOOKMARK":
                    self._handle(key_of(item.object), item.type, item.object)
                elif _is_older(version, self.last_resource_version):
                    self._unavailable = True
                    raise _RestoredError(
                        f"resourceVersion went back from {self.last_resource_version} to "
                        f"{version}: the server has been restored"
                    )
                self.last_resource_version = version
            self.last_error = None
            if self._handled % _BATCH == 0:
                await aio.sleep(0)

    def _decode_line(self, line: bytes) -> WatchItem[ObjectT] | Unreadable:
        item = self._reader.read_line(line)
        if isinstance(item, Status):
            raise error_from_status(item)
        return item

    # --- one object -------------------------------------------------------------------------

    def _handle(self, key: Key, event: str, obj: ObjectT) -> None:
        if event == "DELETED":
            self._deleted(key, obj)
            return
        old = self._objects.get(key)
        self._objects[key] = obj
        if old is None:
            self._handler.on_add(obj)
        elif old.metadata.uid != obj.metadata.uid:
            self._handler.on_delete(old, missed=True)
            self._handler.on_add(obj)
        else:
            self._handler.on_update(old, obj)

    def _deleted(self, key: Key, obj: ObjectT) -> None:
        """Tell the deletion of a known object; a deletion told twice is ignored."""
        old = self._objects.pop(key, None)
        self._whole.drop(key)
        if old is None:
            return
        if old.metadata.uid == obj.metadata.uid:
            self._handler.on_delete(obj, missed=False)
        else:
            # The known object was deleted unseen; the object deleted now was added unseen.
            self._handler.on_delete(old, missed=True)

    def _handle_unreadable(self, item: Unreadable) -> None:
        if item.resource_version:
            self.last_resource_version = item.resource_version
        if item.type == "DELETED":
            old = self._objects.pop(item.key, None)
            self._whole.drop(item.key)
            if old is not None:
                self._handler.on_delete(old, missed=False)
            return
        _log.warning("%s: %s", self._name, item.error)
        self._handler.on_undecodable(item.key, item.error)

    async def _replace(self, new_list: _NewList[ObjectT]) -> None:
        """Take a complete list for the truth: known objects that it lacks were deleted unseen.

        The loop gets turns between, so a long list holds up nobody. Until the end the handler has
        heard of one part of the list only, as it would of changes that a watch tells one by one.
        """
        gone = [
            key
            for key in self._objects
            if key not in new_list.objects and key not in new_list.unreadable
        ]
        async for key in self._in_turns(gone):
            self._whole.drop(key)
            self._handler.on_delete(self._objects.pop(key), missed=True)
        async for key, obj in self._in_turns(new_list.objects.items()):
            self._handle(key, "MODIFIED", obj)
        for key, error in new_list.unreadable.items():
            _log.warning("%s: %s", self._name, error)
            self._handler.on_undecodable(key, error)
        self.last_resource_version = new_list.resource_version
        self._unavailable = False
        self.last_error = None
        if not self.synced.is_set():
            self.synced.set()
            self._handler.on_synced()

    async def _in_turns(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Yield what the handler may be told now."""
        async for item in aio.in_turns(items, most=_BATCH):
            if self._hold.is_closed:
                await self._hold.over()
            yield item

    async def _unserved(self, error: NotFoundError) -> None:
        """Go on without a resource type; objects known from an earlier time stay."""
        if not self.synced.is_set():
            _log.log(
                self.unserved_level,
                "the API server does not serve %s of %s: going on without, and asking again every "
                "%d seconds",
                self._name,
                self._resource.api_version,
                _UNSERVED_SECONDS,
            )
            await self._replace(_NewList())
        self._failed("list", error)

    def _failed(self, what: str, error: MoorageError) -> None:
        self.last_error = error
        _log.info("%s: %s: %s", self._name, what, error)

    @property
    def _name(self) -> str:
        return self._resource.plural


class _RestoredError(MoorageError):
    """The server's data is older than data which it has told before."""


class _NewList(Generic[ObjectT]):
    """A list under construction."""

    __slots__ = ("objects", "resource_version", "unreadable")

    def __init__(self) -> None:
        self.objects: dict[Key, ObjectT] = {}
        self.unreadable: dict[Key, DecodeError] = {}
        self.resource_version = ""


def _is_older(version: str, known: str) -> bool:
    """Whether a server's version is older than one it has told before: its data was restored.

    Such a server leaves out every change up to the version that it was asked for. Versions are
    numbers that grow (kubernetes v1.35, KEP-5504); any other text is not compared.
    """
    numbers = version.isdigit() and known.isdigit()
    return numbers and (len(version), version) < (len(known), known)


def _version_unavailable(error: ApiError) -> bool:
    return isinstance(error, GoneError) or too_large_resource_version(error)
