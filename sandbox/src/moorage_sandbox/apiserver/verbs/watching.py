"""The verb watch: the changes since a version, and then every change at once.

A stream reads the resource's `watch_log` from its own position. Changes are not queued for a
stream. A client that does not read blocks its stream through the HTTP connection. When the log has
dropped the stream's position, the stream ends with an ERROR event of code 410, so the client lists
again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from moorage.base.aio import sleep
from moorage.base.rng import Random
from moorage.kinds.status import expired, version_too_large
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.verbs.reading import Lister, check_list_options
from moorage_sandbox.apiserver.verbs.selection import Selection, read_selection
from moorage_sandbox.apiserver.webhooks.conversions import Conversions
from moorage_sandbox.apiserver.wire.render import Renderer
from moorage_sandbox.apiserver.wire.requests import Query, version_number
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record, make_record
from moorage_sandbox.storage.store import Shelf
from moorage_sandbox.storage.watch_log import Change, WatchLog

T = TypeVar("T")

# Upstream's watch cache sends bookmarks about once a minute.
BOOKMARK_SECONDS = 60.0
# Upstream ends a watch without timeoutSeconds after 30 to 60 minutes.
TIMEOUT_SECONDS_MIN = 1800.0
# Lines are sent together up to this size: one write for a burst, and a bound on the joined bytes.
CHUNK_BYTES = 256 * 1024
# A timer may fire early by the resolution of its clock; a deadline this near counts as reached.
_TIMER_SLACK_SECONDS = 0.001
# Changes that are looked at between two chances for other calls to run (a guess).
_BATCH_CHANGES = 256
# From this number of watchers of a resource on, rendered lines are kept for other watchers.
_SHARING_MIN = 2
# Number of selections whose lines are kept: selections of watchers that keep up (a guess).
_SHARED_MAX = 8


class _Plan(msgspec.Struct, frozen=True):
    """The start and the end of one watch."""

    selection: Selection
    # Objects to send first, None to start with changes.
    initial: Sequence[Record] | None
    # Changes after this version are sent.
    since: int
    initial_events_end: bool
    bookmarks: bool
    timeout_seconds: float


class Watcher:
    """Opens watch streams and ends them all on shutdown.

    Parameters
    ----------
    world
        Holds the watched objects.
    lister
        Selects the objects that exist when a watch starts.
    rng
        Draws the duration of a watch without a timeout.
    """

    def __init__(self, world: World, lister: Lister, rng: Random) -> None:
        self._world = world
        self._store = world.store
        self._lister = lister
        self._rng = rng
        self._closing = False
        self._shared = _SharedChunks()

    def open_stream(self, target: Target, query: Query, renderer: Renderer) -> AsyncIterator[bytes]:
        """Return the stream of one watch: chunks of whole lines.

        Raises
        ------
        StatusError
            As for a list; a version too old is reported inside the stream, as upstream does.
        """
        check_list_options(query, watching=True)
        plan = self._plan(target, query)
        conversions = Conversions(target.served)
        return self._stream(self._store.shelf(target.served.shelf), plan, renderer, conversions)

    def close(self) -> None:
        """End every stream; streams opened later end at once."""
        self._closing = True
        self._store.wake_all()

    def _plan(self, target: Target, query: Query) -> _Plan:
        selection = read_selection(target, query)
        version_asked = version_number(query.text("resourceVersion"))
        if version_asked is not None and version_asked > self._store.version:
            raise version_too_large(version_asked, self._store.version)
        send_initial = query.flag("sendInitialEvents")
        # Without a version, and at "0", a watch begins with the present objects, unless told not
        # to.
        from_now = not version_asked or send_initial
        initial, version = None, self._store.version
        if from_now and (send_initial or "sendInitialEvents" not in query):
            found, version = self._lister.present(target, selection)
            initial = list(found)
        timeout = query.whole("timeoutSeconds")
        return _Plan(
            selection=selection,
            initial=initial,
            since=version if from_now or version_asked is None else version_asked,
            initial_events_end=send_initial,
            bookmarks=query.flag("allowWatchBookmarks"),
            timeout_seconds=timeout or TIMEOUT_SECONDS_MIN * (1 + self._rng.random()),
        )

    async def _stream(
        self, shelf: Shelf, plan: _Plan, renderer: Renderer, conversions: Conversions
    ) -> AsyncIterator[bytes]:
        loop, log = asyncio.get_running_loop(), shelf.log
        end_at = loop.time() + plan.timeout_seconds
        long = renderer.takes_long(plan.initial or ())
        if (error := await conversions.prepare(plan.initial or ())) is not None:
            yield renderer.error(error)
            return
        first_lines = conversions.known_to(partial(next, _initial(plan, renderer), b""))
        while chunk := await self._done(first_lines, long=long):
            yield chunk
            # A reader that takes everything at once must not keep other calls from the loop.
            await sleep(0)
        reached_version = plan.since
        bookmark_at = loop.time() + BOOKMARK_SECONDS
        with log.reading():
            while not self._closing:
                changes = log.since(reached_version, _BATCH_CHANGES)
                if changes is None:
                    forgotten = log.forgotten_version
                    yield renderer.error(
                        expired(f"too old resource version: {reached_version} ({forgotten})")
                    )
                    return
                if changes:
                    if (error := await conversions.prepare(_records_of(changes))) is not None:
                        yield renderer.error(error)
                        return
                    render = conversions.known_to(
                        partial(self._shared.chunks, log, changes, plan.selection, renderer)
                    )
                    long = renderer.takes_long(change.record for change in changes)
                    for chunk in await self._done(render, long=long):
                        yield chunk
                    reached_version = changes[-1].version
                    # A burst of changes outside the selection must not keep other calls from the
                    # loop.
                    await sleep(0)
                    if len(changes) < _BATCH_CHANGES:
                        await log.gather()
                    continue
                now = loop.time() + _TIMER_SLACK_SECONDS
                ending = now >= end_at
                if plan.bookmarks and (ending or now >= bookmark_at):
                    # The log has no further changes, so every relevant version so far has been
                    # sent.
                    reached_version = self._store.published_version
                    yield renderer.bookmark(reached_version, initial_events_end=False)
                    bookmark_at = now + BOOKMARK_SECONDS
                    if not ending:
                        continue
                if ending:
                    return
                wake_at = min(end_at, bookmark_at) if plan.bookmarks else end_at
                await log.wait_for_change(wake_at - loop.time())

    async def _done(self, work: Callable[[], T], *, long: bool) -> T:
        """Do work here, or apart if it may take long."""
        return await self._world.apart(work) if long else work()


def _initial(plan: _Plan, renderer: Renderer) -> Iterator[bytes]:
    """Yield the first lines of a watch."""
    yield from _chunks(renderer.event("ADDED", r) for r in plan.initial or ())
    if plan.initial_events_end and plan.bookmarks:
        yield renderer.bookmark(plan.since, initial_events_end=True)


class _SharedChunks:
    """The latest rendered lines, for other watchers of the same selection and position."""

    def __init__(self) -> None:
        self._rendered: OrderedDict[tuple[object, ...], tuple[bytes, ...]] = OrderedDict()

    def chunks(
        self, log: WatchLog, changes: Sequence[Change], selection: Selection, renderer: Renderer
    ) -> Iterable[bytes]:
        """Return changes as the watchers of a selection see them, in chunks of whole lines."""
        if log.readers < _SHARING_MIN or not renderer.shareable:
            return list(_chunks(_lines(changes, selection, renderer)))
        place = (changes[0].version, changes[-1].version)
        key = (renderer.api_version, renderer.form, renderer.media_type, selection, log, *place)
        chunks = self._rendered.get(key)
        if chunks is None:
            chunks = tuple(_chunks(_lines(changes, selection, renderer)))
            self._rendered[key] = chunks
            while len(self._rendered) > _SHARED_MAX:
                self._rendered.popitem(last=False)
        return chunks


def _records_of(changes: Iterable[Change]) -> Iterator[Record]:
    """Yield what a watcher may see of changes."""
    for change in changes:
        yield change.record
        if change.previous is not None:
            yield change.previous


def _lines(changes: Iterable[Change], selection: Selection, renderer: Renderer) -> Iterator[bytes]:
    for change in changes:
        seen = _as_seen(change, selection)
        if seen is not None:
            yield renderer.event(*seen)


def _as_seen(change: Change, selection: Selection) -> tuple[str, Record] | None:
    """Return the change as a watcher of this selection sees it; None for an unselected object.

    An object that begins to match is ADDED to this watcher. An object that ceases to match is
    DELETED, in its last matching state (kubernetes v1.36 apiserver storage/cacher).
    """
    matched = change.previous is not None and selection.selects_record(change.previous)
    if change.type == "DELETED":
        return ("DELETED", change.record) if matched else None
    if selection.selects_record(change.record):
        return ("MODIFIED" if matched else "ADDED", change.record)
    if matched:
        assert change.previous is not None, "only something known can have matched"
        last = make_record(change.previous.decode(), change.version, change.previous.fields)
        return ("DELETED", last)
    return None


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines to chunks of about `CHUNK_BYTES`."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)
