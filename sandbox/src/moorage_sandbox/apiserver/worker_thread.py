"""Answers long calls in a thread, so that no call keeps the others waiting.

Place in the flow: `lanes` asks here whether a call may take long, by the sizes of what it sends and
reads. A long call is answered here, one at a time. All other calls go on in the loop, writes
included. So the thread reads a store that others change: it notes what it reads (`reads`), and its
write is one short step in the loop, if all of that still stands (`World.run_in_one_step`). Else the
call starts again.

Without `start` every call is answered in the loop, so a server under a virtual clock is replayable.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from moorage.base.aio import TaskOwner
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.loading import SNAPSHOT_PATH
from moorage_sandbox.apiserver.protobuf.calls import is_first
from moorage_sandbox.apiserver.wire.fairness import FairMutex
from moorage_sandbox.apiserver.wire.negotiate import Accepted, Form, accepts_yaml, negotiate
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.storage.reads import LongCall, Reads, noting
from moorage_sandbox.storage.store import Store

T = TypeVar("T")

# A call answered in the loop costs at most 20 ms (2-core machine, 2026-11-22). In the worst case,
# checking a body costs 1 to 3 microseconds a byte, and changing an object about 0.5. A row of a
# table costs 50, and matching an object with a selector 0.1 a character of the selector.
BODY_BYTES_MAX = 8 * 1024
"""Length of the longest body that is read on the loop."""
_STORED_BYTES_MAX = 32 * 1024
_ROWS_MAX = 200
_LIST_BYTES_MAX = 256 * 1024
# Joining the stored objects of a list costs half a microsecond a row, and one a kilobyte.
_STORED_ROWS_MAX = 10_000
_STORED_LIST_BYTES_MAX = 4 * 1024 * 1024
_SELECTED_MAX = 200_000
# Kinds whose writes take long. Some look at many other objects: kinds that are deleted together
# with their contents, and quotas, for which a namespace is counted. Others have rules to compile.
_LONG_WRITES = frozenset(
    {
        "namespaces",
        "customresourcedefinitions.apiextensions.k8s.io",
        "resourcequotas",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
    }
)
# An operation of a JSON patch that makes a large object out of a small patch.
_COPY = b'"copy"'
_AS_STORED = Accepted(Form.OBJECT)
# How long the thread keeps the interpreter while the loop waits; a call waits several times.
_SWITCH_SECONDS = 0.0005
# Longest wait of the thread for the loop; after it the loop counts as gone.
_AT_HOME_SECONDS = 60.0


def takes_long(request: Request, target: Target | None, store: Store) -> bool:
    """Whether answering a call may take long.

    Parameters
    ----------
    request
        The call, with its body.
    target
        Target of its path; None where it addresses no resource.
    store
        Stored objects.
    """
    if len(request.body) > BODY_BYTES_MAX or (request.method == "PATCH" and _COPY in request.body):
        return True
    if target is None:
        # A document about the server; the descriptions of all kinds are made on demand. A piece of
        # a snapshot may store all pieces before it.
        is_long = request.path.startswith("/openapi/") or request.path == SNAPSHOT_PATH
        return is_long or accepts_yaml(request.headers.get("accept", ""))
    shelf = store.shelf(target.served.shelf)
    reading = request.method in ("GET", "HEAD")
    if target.served.shelf in _LONG_WRITES and not reading:
        return True
    if request.method == "DELETE" and not target.name:
        return True
    resource = target.served.kind.resource
    if is_first(request, (resource.api_version, resource.kind)):
        return True
    if target.name:
        record = shelf.get((target.namespace, target.name))
        large = record is not None and len(record.data) > _STORED_BYTES_MAX
        return large and (not reading or _is_made_anew(request, target))
    if not reading:
        return False
    query = Query(request.query)
    asked = len(query.text("labelSelector")) + len(query.text("fieldSelector"))
    if len(shelf) * asked > _SELECTED_MAX:
        return True
    # The answer to a watch comes later, and what takes long in it is done apart; see `watching`.
    if query.flag("watch"):
        return False
    if not _is_made_anew(request, target):
        return len(shelf) > _STORED_ROWS_MAX or shelf.size_bytes > _STORED_LIST_BYTES_MAX
    return len(shelf) > _ROWS_MAX or shelf.size_bytes > _LIST_BYTES_MAX


def _is_made_anew(request: Request, target: Target) -> bool:
    """Whether the answer needs decoded objects, and not only their bytes."""
    if not target.served.as_stored:
        return True
    try:
        return negotiate(request.headers.get("accept", "")) != _AS_STORED
    except StatusError:
        return False


class _Turns:
    """Gives the loop's thread many turns while other threads work, without garbage collection.

    A collection stops every thread, and 100,000 values of JSON make it last a tenth of a second.
    These values refer to one another in one direction only, so counting references is enough.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working = 0
        # Settings of the interpreter without such threads.
        self._collected, self._interval = True, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._working += 1
            if self._working == 1:
                self._collected, self._interval = gc.isenabled(), sys.getswitchinterval()
                gc.disable()
                sys.setswitchinterval(_SWITCH_SECONDS)

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._working -= 1
            if not self._working:
                sys.setswitchinterval(self._interval)
                if self._collected:
                    gc.enable()


_turns = _Turns()


def _yielding(work: Callable[[], T]) -> T:
    """Do work in a thread, during which the loop's thread gets many turns."""
    with _turns:
        return work()


def _nothing() -> None:
    """Do nothing."""


class WorkerThread:
    """One thread, for one call at a time; and one for long pieces of streams.

    Attributes
    ----------
    executor
        The running thread; None without one.
    open
        Set while calls in the loop are answered; see `alone`.
    """

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor | None = None
        self._rendering: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._home = 0
        self._changed: Callable[[], None] = _nothing
        # Long calls wait here, each user in turn.
        self._turns = FairMutex()
        self.open = asyncio.Event()
        self.open.set()
        self._chores = TaskOwner()

    def start(self, changed: Callable[[], None] = _nothing) -> None:
        """Answer long calls in a thread from now on; called in the loop of all other calls.

        Parameters
        ----------
        changed
            Called in the loop after each step that the thread has made there.
        """
        if self.executor is None:
            self._changed = changed
            self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long call")
            self._rendering = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rendering")
            self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()

    def close(self) -> None:
        """Take no more calls; the current call is finished, but its answer is not used."""
        if self.executor is not None:
            self.executor.shutdown(wait=False)
            self.executor = None
        if self._rendering is not None:
            self._rendering.shutdown(wait=False)
            self._rendering = None

    async def until_open(self) -> None:
        """Wait until calls in the loop are answered."""
        while not self.open.is_set():
            await self.open.wait()

    async def run(self, user: str, work: Callable[[LongCall], T]) -> T:
        """Do work in the thread; it learns from its argument when nobody waits for it any more."""
        await self._turns.acquire(user)
        loop, call = asyncio.get_running_loop(), LongCall()
        try:
            assert self.executor is not None, "started"
            future = loop.run_in_executor(self.executor, _yielding, partial(work, call))
        except BaseException:
            self._turns.release()
            raise
        # Released at the end of the work; a client that disconnects does not release it.
        future.add_done_callback(partial(self._done, loop.time()))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            call.gone = True
            raise

    def _done(self, began: float, future: asyncio.Future[T]) -> None:
        # The next call waits as long as this one took: at least half of the time is for others.
        loop = future.get_loop()
        loop.call_later(loop.time() - began, self._turns.release)
        if not future.cancelled():
            future.exception()  # The caller gets the exception, if the caller still waits.

    def later(self, work: Callable[[], None]) -> None:
        """Do long work of the server itself in the thread: at once if called there."""
        if threading.get_ident() != self._home:
            work()
            return

        def chore(call: LongCall) -> None:
            with noting(Reads(call)):
                work()

        self._chores.spawn(self.run("", chore), name="long work of the server")

    async def apart(self, work: Callable[[], T]) -> T:
        """Do work that only reads, next to the calls of both threads; a part of a stream."""
        if self._rendering is None:
            return work()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._rendering, _yielding, work)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let calls in the loop wait, but for leases, while the thread writes many objects.

        Reads wait, too: nobody may see a part of the objects.
        """
        self.at_home(self.open.clear)
        try:
            yield
        finally:
            self.at_home(self.open.set)

    def at_home(self, work: Callable[[], T]) -> T:
        """Do work in the loop's thread, called from either thread."""
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
