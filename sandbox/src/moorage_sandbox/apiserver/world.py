"""The state that all verbs work on: the store, the catalog, the clock and the random streams.

Implements `moorage.kinds.kind.Context`, through which kinds look at other objects.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Final, Protocol, TypeVar

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Random
from moorage.kinds.kind import Numbers, Obj
from moorage_sandbox.apiserver.catalog import Catalog, Served
from moorage_sandbox.apiserver.webhooks.answers import current_answers
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.storage.reads import (
    TRIES_MAX,
    GoneError,
    LongCall,
    Reads,
    StaleError,
    current_reads,
    noting,
)
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Key, Shelf, Store

_log = logging.getLogger(__name__)

# Namespaces and priority classes are read for every pod; equal bytes are decoded once.
_read_only = lru_cache(maxsize=256)(msgspec.json.Decoder(dict).decode)

GIT_VERSION: Final = "v1.36.0+moorage"
GIT_VERSION_1_37: Final = "v1.37.0+moorage"

SERVER = User("system:apiserver", ("system:masters",))
"""The user of writes that no client asked for: the server itself."""

T = TypeVar("T")
Report = Callable[[], None]
Tell = Callable[[Served, Record | None, Record | None], None]
"""Called for a write with the served resource, and the records before and after."""


class Apart(Protocol):
    """Does work that only reads next to the loop, and returns its result."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Do the work."""
        ...


async def _here(work: Callable[[], T], /) -> T:
    return work()


class World:
    """The server's state and surroundings.

    Parameters
    ----------
    catalog
        The served resources.
    store
        Holds all objects.
    clock
        Time stamps and ages.
    rng
        Uids, generated names, addresses.
    git_version
        The release of Kubernetes that the server plays, as ``/version`` says it.
    """

    def __init__(
        self, catalog: Catalog, store: Store, clock: Clock, rng: Random, *, git_version: str
    ) -> None:
        self.catalog = catalog
        self.store = store
        self._clock = clock
        self._rng = rng
        self.git_version = git_version
        # Calls are answered in the loop while a thread answers a long call: each has a user of its
        # own.
        self._caller: ContextVar[User] = ContextVar("caller", default=SERVER)
        # Shelf -> listener for its writes, (record before, record after); see `on_write`.
        self._listeners: dict[str, Tell] = {}
        # Shelf -> listener that may take long.
        self._slow_listeners: dict[str, Tell] = {}
        # Namespace -> listener for its writes.
        self._namespace_listeners: dict[str, Tell] = {}
        # Reports of the current step to listeners that may take long; None outside of a step.
        self._reports: list[Report] | None = None
        # Does long work of the server itself, at once or later.
        self.later: Callable[[Callable[[], None]], None] = _at_once
        # Does work that only reads, and may take long.
        self.apart: Apart = _here
        # While in this context, calls in the loop write nothing but leases.
        self.alone: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def clock(self) -> Clock:
        """Time stamps and ages; for a call that asks webhooks, the time of the call."""
        answers = current_answers()
        return self._clock if answers is None else answers.clock

    @property
    def rng(self) -> Random:
        """Uids, generated names, addresses; a call that asks webhooks draws the same each time."""
        answers = current_answers()
        return self._rng if answers is None else answers.rng

    @rng.setter
    def rng(self, rng: Random) -> None:
        self._rng = rng

    @property
    def caller(self) -> User:
        """The user of the current call; the server itself before the first call."""
        return self._caller.get()

    @caller.setter
    def caller(self, user: User) -> None:
        self._caller.set(user)

    def on_write(self, shelf: str, tell: Tell, *, apart: bool = False) -> None:
        """Report every write to a shelf: the served resource, and the records before and after.

        A record is None where the object does not exist, before or after the write. ``apart`` is
        for a listener that may take long: other writes may come between the write and the report.
        """
        (self._slow_listeners if apart else self._listeners)[shelf] = tell

    def on_write_in(self, namespace: str, tell: Tell | None) -> None:
        """Report every write in a namespace, as `on_write` does; None ends it."""
        if tell is None:
            self._namespace_listeners.pop(namespace, None)
        else:
            self._namespace_listeners[namespace] = tell

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        """Return a stored object, None when there is none; read-only and perhaps shared."""
        record = self.shelf(plural).get((namespace or "", name))
        return _read_only(record.data) if record else None

    def shelf(self, plural: str) -> Shelf:
        """Return where the objects of a resource are kept; it is always the same shelf."""
        return self.store.shelf(self.catalog.by_plural(plural).shelf)

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterator[Obj]:
        """Yield all stored objects of a resource in key order; read-only and perhaps shared."""
        for record in self.shelf(plural).records(namespace or ""):
            yield _read_only(record.data)

    def keys_with(self, plural: str, numbers: Numbers, number: int) -> Collection[Key]:
        """Return the keys of the stored objects of a resource that have a number."""
        shelf = self.shelf(plural)
        return self.store.at_home(lambda: shelf.keys_with(numbers, number))

    def run_in_one_step(self, work: Callable[[], T]) -> T:
        """Do work that reads and writes, without another call in between.

        Work of a call in the thread is done in the loop, if all that the call has read so far still
        stands. It has to be short: everybody waits.

        Raises
        ------
        StaleError
            Something has changed; see `moorage_sandbox.storage.reads`.
        GoneError
            The caller has gone.
        """
        reads = current_reads()
        reports: list[Report] = []

        def checked() -> T:
            if reads is None:
                return self._reporting(work, reports)
            reads.check_write()
            with noting(None):
                return self._reporting(work, reports)

        result = self.store.at_home(checked)
        if reads is not None:
            reads.forget()
        # After the step, in the thread of a long call: these listeners would hold the loop.
        for report in reports:
            report()
        return result

    def _reporting(self, work: Callable[[], T], reports: list[Report]) -> T:
        """Do the work of a step; ``reports`` gets what its writes have to report after it."""
        if self._reports is not None:
            return work()  # a step within a step
        self._reports = reports
        try:
            return work()
        finally:
            self._reports = None

    def one_by_one(self, work: Callable[[], T]) -> T:
        """Do one of the many steps of a long call, which stands on what it reads itself.

        Raises
        ------
        StaleError
            Other calls have written what the step reads each time it was tried.
        GoneError
            The caller has gone.
        """
        outer = current_reads()
        if outer is None:
            return work()
        for _ in range(TRIES_MAX - 1):
            try:
                return self._once(work, outer.call)
            except StaleError:
                continue
        return self._once(work, outer.call)

    def _once(self, work: Callable[[], T], call: LongCall) -> T:
        if call.gone:
            raise GoneError
        with noting(Reads(call)):
            return work()

    def store_form(self, served: Served, stored: Obj) -> Record:
        """Store an object in its stored form."""
        fields = served.fields(stored)
        return self.run_in_one_step(lambda: self._store_form(served, stored, fields))

    def _store_form(self, served: Served, stored: Obj, fields: Mapping[str, str]) -> Record:
        meta = stored["metadata"]
        namespace = meta.get("namespace") or ""
        before = self.store.shelf(served.shelf).get((namespace, meta["name"]))
        record = self.store.put(served.shelf, stored, fields)
        self._tell_all(served, namespace, before, record)
        return record

    def remove(self, served: Served, key: Key, stored: Obj | None = None) -> Record:
        """Remove an object; ``stored`` is its last state where that differs."""
        return self.run_in_one_step(lambda: self._remove(served, key, stored))

    def _remove(self, served: Served, key: Key, stored: Obj | None) -> Record:
        record = self.store.remove(served.shelf, key, stored)
        self._tell_all(served, record.namespace, record, None)
        return record

    def _tell_all(
        self, served: Served, namespace: str, before: Record | None, after: Record | None
    ) -> None:
        """Report a write: now, and after the step to a listener that may take long."""
        told = (self._namespace_listeners.get(namespace), self._listeners.get(served.shelf))
        _tell(told, served, before, after)
        apart = self._slow_listeners.get(served.shelf)
        if apart is not None:
            assert self._reports is not None, "objects are written in steps"
            self._reports.append(partial(_tell, (apart,), served, before, after))


def _at_once(work: Callable[[], None]) -> None:
    work()


def _tell(
    listeners: Iterable[Tell | None], served: Served, before: Record | None, after: Record | None
) -> None:
    """Report a write; it has taken effect, so an error in a listener does not make it fail."""
    for each in listeners:
        if each is None:
            continue
        try:
            each(served, before, after)
        except Exception:
            _log.exception("what follows from a write to %s was not done", served.shelf)
