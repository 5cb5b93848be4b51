"""The verb watch: what happened since a version, and then everything as it happens.

A stream reads the resource's `watch_log` from its own place. Nothing is queued for it: a client
that does not read holds its stream back (the HTTP connection pushes back), and when the log has
moved on without it the stream ends with an ERROR event of code 410, which tells it to list again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import msgspec

from moorage.apiserver.reading import Lister, check_list_options
from moorage.apiserver.record import Record, make_record
from moorage.apiserver.render import Renderer
from moorage.apiserver.requests import Query, version_number
from moorage.apiserver.routes import Target
from moorage.apiserver.selection import Selection, read_selection
from moorage.apiserver.status import expired, version_too_large
from moorage.apiserver.store import Shelf, Store
from moorage.apiserver.watch_log import Change, WatchLog
from moorage.base.aio import sleep
from moorage.base.rng import Random

# Upstream's watch cache sends bookmarks about once a minute.
BOOKMARK_SECONDS = 60.0
# Upstream ends a watch without timeoutSeconds after 30 to 60 minutes.
TIMEOUT_SECONDS_MIN = 1800.0
# Lines are sent together up to this size: one write for a burst, and a bound on what is joined.
CHUNK_BYTES = 256 * 1024
# A timer may fire early by the resolution of its clock; what is due this soon is due now.
_TIMER_SLACK_SECONDS = 0.001
# How many changes are looked at between two chances for others to run (a guess).
_BATCH_CHANGES = 256
# From so many watchers of a resource on, what was rendered for one is kept for the others.
_SHARING_MIN = 2
# How much is kept: selections of watchers who keep up (a guess).
_SHARED_MAX = 8


class _Plan(msgspec.Struct, frozen=True):
    """How one watch starts and when it ends."""

    selection: Selection
    # Objects to tell about first, None to start with changes.
    initial: Sequence[Record] | None
    # Changes after this version are told.
    since: int
    initial_events_end: bool
    bookmarks: bool
    timeout_seconds: float


class Watcher:
    """Opens watch streams and ends them all on shutdown.

    Parameters
    ----------
    store
        What is watched.
    lister
        Says which objects exist when a watch starts.
    rng
        Draws how long a watch without a timeout may last.
    """

    def __init__(self, store: Store, lister: Lister, rng: Random) -> None:
        self._store = store
        self._lister = lister
        self._rng = rng
        self._closing = False
        self._shared = _SharedChunks()

    def open(self, target: Target, query: Query, renderer: Renderer) -> AsyncIterator[bytes]:
        """Return the stream of one watch: chunks of whole lines.

        Raises
        ------
        StatusError
            As for a list; a version too old is told inside the stream, as upstream does.
        """
        check_list_options(query, watching=True)
        plan = self._plan(target, query)
        return self._stream(self._store.shelf(target.served.shelf), plan, renderer)

    def close(self) -> None:
        """End every stream, and any opened later at once."""
        self._closing = True
        self._store.wake_all()

    def _plan(self, target: Target, query: Query) -> _Plan:
        selection = read_selection(target, query)
        asked = version_number(query.text("resourceVersion"))
        if asked is not None and asked > self._store.version:
            raise version_too_large(asked, self._store.version)
        send_initial = query.flag("sendInitialEvents")
        # Without a version, and at "0", a watch begins with what there is, unless told not to.
        from_now = not asked or send_initial
        initial = None
        if from_now and (send_initial or "sendInitialEvents" not in query):
            initial = list(self._lister.matching(target, selection))
        timeout = query.whole("timeoutSeconds")
        return _Plan(
            selection=selection,
            initial=initial,
            since=self._store.version if from_now or asked is None else asked,
            initial_events_end=send_initial,
            bookmarks=query.flag("allowWatchBookmarks"),
            timeout_seconds=timeout or TIMEOUT_SECONDS_MIN * (1 + self._rng.random()),
        )

    async def _stream(self, shelf: Shelf, plan: _Plan, renderer: Renderer) -> AsyncIterator[bytes]:
        loop, log = asyncio.get_running_loop(), shelf.log
        end_at = loop.time() + plan.timeout_seconds
        for chunk in _initial(plan, renderer):
            yield chunk
            # A reader who takes all at once must not keep the loop from others.
            await sleep(0)
        seen = plan.since
        bookmark_at = loop.time() + BOOKMARK_SECONDS
        with log.reading():
            while not self._closing:
                changes = log.since(seen, _BATCH_CHANGES)
                if changes is None:
                    forgotten = log.forgotten_version
                    yield renderer.error(expired(f"too old resource version: {seen} ({forgotten})"))
                    return
                if changes:
                    for chunk in self._shared.chunks(log, changes, plan.selection, renderer):
                        yield chunk
                    seen = changes[-1].version
                    # A burst that concerns others must not keep the loop from them.
                    await sleep(0)
                    if len(changes) < _BATCH_CHANGES:
                        await log.gather()
                    continue
                now = loop.time() + _TIMER_SLACK_SECONDS
                ending = now >= end_at
                if plan.bookmarks and (ending or now >= bookmark_at):
                    # Nothing is left in the log, so every version to be told of so far has been.
                    seen = self._store.told_version
                    yield renderer.bookmark(seen, initial_events_end=False)
                    bookmark_at = now + BOOKMARK_SECONDS
                    if not ending:
                        continue
                if ending:
                    return
                wake_at = min(end_at, bookmark_at) if plan.bookmarks else end_at
                await log.wait_for_change(wake_at - loop.time())


def _initial(plan: _Plan, renderer: Renderer) -> Iterator[bytes]:
    """Yield what a watch begins with."""
    yield from _chunks(renderer.event("ADDED", r) for r in plan.initial or ())
    if plan.initial_events_end and plan.bookmarks:
        yield renderer.bookmark(plan.since, initial_events_end=True)


class _SharedChunks:
    """What was rendered last, for other watchers of the same who have seen as much."""

    def __init__(self) -> None:
        self._rendered: OrderedDict[tuple[object, ...], tuple[bytes, ...]] = OrderedDict()

    def chunks(
        self, log: WatchLog, changes: Sequence[Change], selection: Selection, renderer: Renderer
    ) -> Iterable[bytes]:
        """Return changes as the watchers of a selection see them, in chunks of whole lines."""
        if log.readers < _SHARING_MIN or not renderer.shareable:
            return _chunks(_lines(changes, selection, renderer))
        place = (changes[0].version, changes[-1].version)
        key = (renderer.api_version, renderer.form, renderer.media_type, selection, log, *place)
        found = self._rendered.get(key)
        if found is None:
            found = tuple(_chunks(_lines(changes, selection, renderer)))
            self._rendered[key] = found
            while len(self._rendered) > _SHARED_MAX:
                self._rendered.popitem(last=False)
        return found


def _lines(changes: Iterable[Change], selection: Selection, renderer: Renderer) -> Iterator[bytes]:
    for change in changes:
        seen = _as_seen(change, selection)
        if seen is not None:
            yield renderer.event(*seen)


def _as_seen(change: Change, selection: Selection) -> tuple[str, Record] | None:
    """Return the change as a watcher of this selection sees it; None when it concerns others.

    An object that begins to match is ADDED to this watcher and one that ceases to match is
    DELETED, shown as it last matched (kubernetes v1.36 apiserver storage/cacher).
    """
    matched = change.previous is not None and selection.matches(change.previous)
    if change.type == "DELETED":
        return ("DELETED", change.record) if matched else None
    if selection.matches(change.record):
        return ("MODIFIED" if matched else "ADDED", change.record)
    if matched:
        assert change.previous is not None, "only something known can have matched"
        last = make_record(change.previous.decode(), change.version, change.previous.fields)
        return ("DELETED", last)
    return None


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines to chunks of about `CHUNK_BYTES`."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
