"""The Event recorder: notes are taken at once and written when there is time.

``service`` calls `EventRecorder.record_event`, which never waits; `EventRecorder.run` writes.
The buffer is bounded: when the server is too slow, Events are dropped and counted, never pods.

Notes
-----
Mirrors kubernetes v1.36 client-go tools/events/event_broadcaster.go. Events about one object are
written in order, those about different objects side by side.
"""

from __future__ import annotations

import asyncio
import logging
import zlib

from moorage.api.resources import CORE_EVENTS, EVENTS
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import ConflictError, MoorageError, NotFoundError, TransportError
from moorage.base.rng import Random
from moorage.client import requests
from moorage.client.backoff import Backoff, BackoffRule
from moorage.client.event_series import EventNote, EventWrite, SeriesBook
from moorage.client.writes import Client

_log = logging.getLogger(__name__)

_BUFFER_MAX = 1000
_WRITERS = 8  # guess: enough to keep up with a few thousand binds a second
_TRIES_MAX = 12
_TRY_PAUSE_SECONDS = 10.0
_TRY_PAUSE_JITTER = 0.25
_FINISH_SECONDS = 6 * 60
_FULL_AGAIN_NS = 60 * NS_PER_SECOND
_REFRESH_ROUNDS = 5  # of _FINISH_SECONDS: every 30 minutes


class EventRecorder:
    """Keeps notes in a buffer and writes each note as an Event.

    Parameters
    ----------
    client
        Verbs of the server that gets the Events.
    host
        Host name for the reporting instance.
    rng
        Stream for the jitter of retries.

    Attributes
    ----------
    lost
        Number of Events that were not written, by the reason: ``buffer_full``, ``refused`` by the
        server, ``no_answer`` to any try, ``error`` here.
    waiting
        Number of Events that wait to be written.
    """

    def __init__(self, client: Client, *, host: str, clock: Clock, rng: Random) -> None:
        self._client = client
        self._host = host
        self._clock = clock
        self._rng = rng
        self._book = SeriesBook(host=host)
        self._resource = EVENTS
        self.waiting = 0
        self._queues: list[asyncio.Queue[tuple[EventNote, int]]] = [
            asyncio.Queue() for _ in range(_WRITERS)
        ]
        self.lost = {"buffer_full": 0, "refused": 0, "no_answer": 0, "error": 0}
        self._told_full_ns = -_FULL_AGAIN_NS

    def record_event(self, note: EventNote) -> None:
        """Note that something happened now; never waits, never fails."""
        if self.waiting >= _BUFFER_MAX:
            self._lose_for_want_of_room()
            return
        self.waiting += 1
        # Each object has one writer, so that its Events keep their order.
        identity = note.regarding.uid or f"{note.regarding.namespace}/{note.regarding.name}"
        writer = zlib.crc32(identity.encode()) % _WRITERS
        self._queues[writer].put_nowait((note, self._clock.now_ns()))

    async def run(self) -> None:
        """Write until cancelled."""
        await self._choose_form()
        tasks = aio.TaskOwner()
        try:
            for number, queue in enumerate(self._queues):
                tasks.spawn(self._write_queue(queue), name=f"event-writer-{number}")
            await self._maintain()
        finally:
            await tasks.cancel_all()

    async def flush(self) -> None:
        """Wait until everything noted so far has been written or given up; needs `run`."""
        for queue in self._queues:
            await queue.join()

    async def _choose_form(self) -> None:
        """Ask the server whether it has events.k8s.io/v1; if not, write core/v1 Events."""
        backoff = Backoff(BackoffRule(), clock=self._clock, rng=self._rng)
        while True:
            try:
                await self._client.read_path("/apis/events.k8s.io/v1")
            except NotFoundError:
                self._book = SeriesBook(host=self._host, core=True)
                self._resource = CORE_EVENTS
                return
            except MoorageError as error:
                _log.info("events: cannot ask for events.k8s.io/v1: %s", error)
                await aio.sleep(backoff.next_seconds())
            else:
                return

    async def _write_queue(self, queue: asyncio.Queue[tuple[EventNote, int]]) -> None:
        while True:
            note, now_ns = await queue.get()
            try:
                write = self._book.observe(note, now_ns=now_ns)
                if write is not None:
                    await self._write_event(write)
            except Exception:
                # A bug, or a text that cannot be sent; it must not cost the Events that follow.
                # %a, because a log may not take such a text either.
                self.lost["error"] += 1
                _log.exception("event %a about %r was not written", note.reason, note.regarding)
            finally:
                self.waiting -= 1
                queue.task_done()

    async def _maintain(self) -> None:
        rounds = 0
        while True:
            await aio.sleep(_FINISH_SECONDS)
            rounds += 1
            try:
                writes = self._book.finish(now_ns=self._clock.now_ns())
                if rounds % _REFRESH_ROUNDS == 0:
                    writes += self._book.refresh()
                for write in writes:
                    await self._write_event(write)
            except Exception:
                self.lost["error"] += 1
                _log.exception("a series of events was not closed")

    async def _write_event(self, write: EventWrite) -> None:
        """Write one Event; repeat the write only if no answer came."""
        for _ in range(_TRIES_MAX):
            try:
                await self._send_event(write)
            except ConflictError:
                # An earlier try arrived although its answer did not.
                return
            except MoorageError as error:
                _log.warning("event %s/%s: %s", write.namespace, write.name, error)
                if not isinstance(error, TransportError):
                    self.lost["refused"] += 1
                    return
            else:
                return
            jitter = 1 + _TRY_PAUSE_JITTER * self._rng.random()
            await aio.sleep(_TRY_PAUSE_SECONDS * jitter)
        self.lost["no_answer"] += 1

    def _lose_for_want_of_room(self) -> None:
        """Count an Event that finds the buffer full; the log tells it once a minute."""
        self.lost["buffer_full"] += 1
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._told_full_ns >= _FULL_AGAIN_NS:
            self._told_full_ns = now_ns
            count = self.lost["buffer_full"]
            _log.warning("%d Events wait to be written, the most; %d are lost", _BUFFER_MAX, count)

    async def _send_event(self, write: EventWrite) -> None:
        if write.changes is not None:
            try:
                await self._client.patch(
                    self._resource,
                    write.name,
                    requests.patch_body(write.changes),
                    namespace=write.namespace,
                )
            except NotFoundError:
                pass  # the Event expired or was deleted: it is created below
            else:
                return
        await self._client.create_only(self._resource, write.body, namespace=write.namespace)
