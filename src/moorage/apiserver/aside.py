"""Answers the calls that take long in a thread, so that no call keeps the others from the loop.

Place in the flow: `server` asks here whether a call is heavy, judging by what it sends and what it
reads, and has it answered here then. One heavy call is answered at a time, and meanwhile nobody
else writes: so the thread reads a world that stands still, and the rules of a write need not know
of threads. Reads, watches and health go on. What the thread changes is changed in the loop, see
`World.at_home`.

Without `start` everything is answered in the loop; so a server under a virtual clock is replayable.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from moorage.apiserver.fairness import FairMutex
from moorage.apiserver.negotiate import Accepted, Form, accepts_yaml, negotiate
from moorage.apiserver.requests import Query, Request
from moorage.apiserver.routes import resource_target
from moorage.apiserver.status import StatusError
from moorage.apiserver.store import Store
from moorage.apiserver.views import Catalog

T = TypeVar("T")

# What is decided in the loop costs at most 20 ms (2-core machine, 2026-11-22): checking a body is
# 1 to 3 microseconds a byte in the worst case, an object that is changed about 0.5, a row of a
# table 50, and holding an object against a selector 0.1 a character of the selector.
_BODY_BYTES_MAX = 8 * 1024
_STORED_BYTES_MAX = 32 * 1024
_ROWS_MAX = 200
_SELECTED_MAX = 200_000
# What is deleted together with all that is in it, and what has rules to compile.
_FULL_OF_OTHERS = frozenset({"namespaces", "customresourcedefinitions.apiextensions.k8s.io"})
# An operation of a JSON patch that makes much of little.
_COPY = b'"copy"'
_AS_STORED = Accepted(Form.OBJECT)
# How long the thread keeps the interpreter while the loop wants it; a call needs it several times.
_SWITCH_SECONDS = 0.0005
# How long the thread waits for the loop; the loop is gone when it takes that long.
_AT_HOME_SECONDS = 60.0


def is_heavy(request: Request, catalog: Catalog, store: Store) -> bool:
    """Whether answering a call may take long.

    Parameters
    ----------
    request
        The call, its body read.
    catalog, store
        What is served, and what there is.
    """
    if len(request.body) > _BODY_BYTES_MAX or (request.method == "PATCH" and _COPY in request.body):
        return True
    try:
        target = resource_target(request.path, catalog)
    except StatusError:
        # A document about the server; the descriptions of all kinds are made when asked for.
        is_description = request.path.startswith("/openapi/")
        return is_description or accepts_yaml(request.headers.get("accept", ""))
    shelf = store.shelf(target.served.shelf)
    reading = request.method in ("GET", "HEAD")
    if target.served.shelf in _FULL_OF_OTHERS and not reading:
        return True
    if request.method == "DELETE" and not target.name:
        return True
    if target.name:
        record = shelf.get((target.namespace, target.name))
        large = record is not None and len(record.data) > _STORED_BYTES_MAX
        return large and (not reading or _is_made_anew(request))
    if not reading:
        return False
    query = Query(request.query)
    asked = len(query.text("labelSelector")) + len(query.text("fieldSelector"))
    if len(shelf) * asked > _SELECTED_MAX:
        return True
    return len(shelf) > _ROWS_MAX and not query.flag("watch") and _is_made_anew(request)


def _is_made_anew(request: Request) -> bool:
    """Whether the answer is made of decoded objects, and not of their bytes."""
    try:
        return negotiate(request.headers.get("accept", "")) != _AS_STORED
    except StatusError:
        return False


def _yielding(work: Callable[[], T]) -> T:
    """Do work that lets the loop's thread in often, and without garbage collection.

    A collection stops every thread, and 100,000 values of JSON make one last a tenth of a second;
    they refer to one another in one direction only, so counting references is enough.
    """
    collected, interval = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        return work()
    finally:
        sys.setswitchinterval(interval)
        if collected:
            gc.enable()


def _nothing() -> None:
    """Do nothing."""


class Aside:
    """One thread, for one call at a time."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._home = 0
        self._changed: Callable[[], None] = _nothing
        # Held by whoever writes, and by the heavy call that is being answered.
        self._lock = asyncio.Lock()
        # Heavy calls wait here before they wait for the lock: one of them at a time does that, so
        # that the writes that wait are done in between.
        self._turns = FairMutex()

    def start(self, changed: Callable[[], None] = _nothing) -> None:
        """Answer heavy calls in a thread from now on; called in the loop that answers the rest.

        Parameters
        ----------
        changed
            Called in the loop after each piece of work that the thread has done there.
        """
        if self._thread is None:
            self._changed = changed
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="heavy call")
            self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()

    def close(self) -> None:
        """Take no more calls; what the thread is at is finished without its answer being used."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    @property
    def started(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    @property
    def busy(self) -> bool:
        """Whether a heavy call is being answered, or a write waits behind one."""
        return self._lock.locked()

    async def heavy(self, user: str, work: Callable[[], T]) -> T:
        """Do work in the thread while nobody else writes."""
        await self._turns.acquire(user)
        try:
            await self._lock.acquire()
        except BaseException:
            self._turns.release()
            raise
        loop = asyncio.get_running_loop()
        try:
            assert self._thread is not None, "started"
            future = loop.run_in_executor(self._thread, _yielding, work)
        except BaseException:
            self._lock.release()
            self._turns.release()
            raise
        # Released by the end of the work, which a caller who hangs up does not bring about.
        future.add_done_callback(partial(self._done, loop.time()))
        return await asyncio.shield(future)

    async def writing(self, work: Callable[[], T]) -> T:
        """Do a short write in the loop, once no heavy call is being answered."""
        async with self._lock:
            return work()

    def _done(self, began: float, future: asyncio.Future[T]) -> None:
        self._lock.release()
        # The next one waits as long as this one took: at least half of the time is for others.
        loop = future.get_loop()
        loop.call_later(loop.time() - began, self._turns.release)
        if not future.cancelled():
            future.exception()  # Told to the caller, if it still waits.

    def at_home(self, work: Callable[[], T]) -> T:
        """Do work in the loop's thread, whichever this is called in."""
        loop = self._loop
        if loop is None or threading.get_ident() == self._home:
            return work()
        done: Future[T] = Future()

        def run() -> None:
            try:
                result = work()
                self._changed()
                done.set_result(result)
            except BaseException as error:
                done.set_exception(error)

        loop.call_soon_threadsafe(run)
        return done.result(timeout=_AT_HOME_SECONDS)
