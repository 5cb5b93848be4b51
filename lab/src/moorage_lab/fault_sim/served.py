"""The API server of a simulation, on a disk or in memory, through all its lives.

The other parts hold a `Served`, and so call the server of now. A server on a disk dies in the midst
of a call to the disk, or with a power cut. The next server reads what is left. Everything that was
acknowledged must be there.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence

import msgspec

from moorage.base.errors import MoorageError
from moorage.base.rng import Random
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.requests import Reply, Request
from moorage_sandbox.cluster.assembly import ClusterSettings, open_server
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.persistence import Persistence
from moorage_sandbox.storage.store import Key, Store, Write
from moorage_sandbox.testing.disk import FaultyDisk, KilledError

CALLER: contextvars.ContextVar[tuple[str, str]] = contextvars.ContextVar(
    "caller", default=("server", "")
)
"""The program and the path of the call that the server works on."""

OnDeath = Callable[[], None]

_SURVIVING = ("nothing", "all", "first half", "sectors")
_SHOWN = 3


class Pending(msgspec.Struct, frozen=True):
    """A write that no caller has been told of yet, and the program that made it."""

    write: Write
    by: str
    path: str


class Served:
    """The server of now.

    Parameters
    ----------
    form
        What the cluster is made of.
    on_disk
        Whether the server keeps its objects on a disk.
    on_death
        Called once when the server dies in a call to its disk.
    """

    def __init__(self, form: ClusterSettings, *, on_disk: bool, on_death: OnDeath) -> None:
        self._form = form
        self._on_death = on_death
        self._rng: Random = form.streams.stream("disk")
        self.disk: FaultyDisk | None = FaultyDisk() if on_disk else None
        self.lives = 0
        """Number of servers so far."""
        self.pending: dict[int, Pending] = {}
        """By version, the writes of which nobody has been told, oldest first."""
        self.revived: list[Pending] = []
        self._past: list[ApiServer] = []
        self.persistence: Persistence | None = None
        self.api = self._server()

    @property
    def store(self) -> Store:
        """The objects of the server of now."""
        return self.api.store

    async def handle(self, request: Request) -> Reply:
        """Answer a call, as the server of now does."""
        return await self.api.handle(request)

    def _server(self) -> ApiServer:
        self.lives += 1
        self.persistence = journal = None
        if self.disk is not None:
            journal = _MortalJournal(self.disk, self._form.clock, served=self.lives > 1)
            journal.on_death = self._on_death
        opened = open_server(self._form, journal)
        persistence = self.persistence = opened.persistence
        if persistence is None:
            return opened.api

        def collect(write: Write) -> None:
            self.pending[write.change.version] = Pending(write, *CALLER.get())
            persistence.collect(write)

        opened.api.store.hold_back(collect)
        return opened.api

    def author(self, version: int) -> tuple[str, str] | None:
        """Return program and path of a write that its callers have been told of; once."""
        author = self.pending.pop(version, None)
        return None if author is None else (author.by, author.path)

    def restart(self, *, power_cut: bool) -> list[str]:
        """Begin the next server with what the last one left on the disk.

        Returns
        -------
        list of str
            What was acknowledged and is not there, or is there and never was. The writes of which
            nobody had been told, and that are there, are in `revived`.
        """
        disk, before = self.disk, self.store
        assert disk is not None, "only a server on a disk begins anew"
        self._past.append(self.api)
        if power_cut:
            seed = self._rng.getrandbits(31)
            self.disk = disk.after_power_cut(self._rng.choice(_SURVIVING), seed)
        else:
            self.disk = disk.after_death()
        try:
            self.api = self._server()
        except MoorageError as problem:
            return [f"the server does not begin again: {problem}"]
        lost = _lost(before, self.store, self.pending)[:_SHOWN]
        self.revived = _revived(before, self.store, self.pending)
        self.pending.clear()
        return lost

    def close(self) -> None:
        """End every server."""
        for api in (*self._past, self.api):
            api.close()


class _MortalJournal(Journal):
    """A journal whose process dies with a call to the disk that kills."""

    on_death: OnDeath

    def commit(self, writes: Sequence[Write]) -> None:
        """Make writes durable, or die."""
        self._or_die(lambda: super(_MortalJournal, self).commit(writes))

    def compact(self) -> None:
        """Compact the logs, or die."""
        self._or_die(super().compact)

    def _or_die(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KilledError:
            self.on_death()
            raise


def _lost(before: Store, now: Store, pending: dict[int, Pending]) -> list[str]:
    """Compare what a server had acknowledged with what the next one has."""
    version_sent = before.published_version
    open_writes: dict[tuple[str, Key], set[int]] = {}
    for version, each in pending.items():
        if version > version_sent:
            change = each.write.change
            key = (each.write.resource, change.record.key)
            gone = change.type == "DELETED"
            open_writes.setdefault(key, set()).add(0 if gone else version)
    had: dict[tuple[str, Key], int] = {}
    for resource in before.shelves():
        for record in before.records_at(resource, version_sent) or ():
            had[resource, record.key] = record.version
    has = {(resource, each.key): each.version for resource, each in now.all_records()}
    wrong = []
    for key in sorted(had.keys() | has.keys()):
        possible = {had.get(key, 0), *open_writes.get(key, ())}
        if has.get(key, 0) not in possible:
            wrong.append(f"{key} is of version {has.get(key, 0)}, not one of {sorted(possible)}")
    return wrong


def _revived(before: Store, now: Store, pending: dict[int, Pending]) -> list[Pending]:
    """Return the writes that nobody was told of and that took effect, oldest first."""
    revived = []
    for version, each in sorted(pending.items()):
        change = each.write.change
        record = now.shelf(each.write.resource).get(change.record.key)
        effective = change.type == "DELETED" if record is None else version <= record.version
        if version > before.published_version and effective:
            revived.append(each)
    return revived
