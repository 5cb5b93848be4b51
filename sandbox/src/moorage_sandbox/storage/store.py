"""All objects of the cluster, in memory, under one resourceVersion counter.

The verbs pass complete objects. The store gives an object the next version, keeps its bytes, and
appends the change to the resource's `watch_log`. Everything here is synchronous, and only the loop
writes. So no write falls between a read and the write that follows it. A call in a thread (the
worker thread) reads next to the loop: what it reads is noted (`reads`), and checked before its
write.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain
from threading import Lock
from typing import Protocol, TypeVar

import msgspec

from moorage.kinds.kind import Numbers, Obj
from moorage_sandbox.storage.reads import current_reads
from moorage_sandbox.storage.record import Record, make_record
from moorage_sandbox.storage.watch_log import Change, ChangeType, Limits, WatchLog

T = TypeVar("T")
Key = tuple[str, str]
"""(namespace, name); the namespace is empty for kinds without namespaces."""


# Up to so many keys are put in their places one by one, with more in one pass over all keys.
_CHANGES_FEW = 64
# With so many, reading is not awaited: sorting them takes a few milliseconds (both are guesses).
_CHANGES_MANY = 4096


class Write(msgspec.Struct, frozen=True):
    """One write, with the data that durability needs.

    Parameters
    ----------
    resource
        Name of the shelf.
    change
        The change, as the watch log holds it.
    changed_before
        The shelf's ``changed_version`` before the write.
    """

    resource: str
    change: Change
    changed_before: int


class AtHome(Protocol):
    """Runs work in the thread that owns the store, and returns its result."""

    def __call__(self, work: Callable[[], T], /) -> T:
        """Run the work."""
        ...


def _here(work: Callable[[], T], /) -> T:
    return work()


class NumberIndex:
    """The objects of a shelf by their numbers.

    Parameters
    ----------
    numbers
        The numbers of an object.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._keys: dict[int, set[Key]] = {}

    def keys(self, number: int) -> Collection[Key]:
        """Return the keys of the objects that have a number."""
        return self._keys.get(number, frozenset())

    def add(self, record: Record) -> None:
        """Take in an object."""
        for number in self._numbers(record.decode()):
            self._keys.setdefault(number, set()).add(record.key)

    def drop(self, record: Record) -> None:
        """Take out an object."""
        for number in set(self._numbers(record.decode())):
            keys = self._keys[number]
            keys.remove(record.key)
            if not keys:
                del self._keys[number]


class Shelf:
    """The objects of one resource, kept in (namespace, name) order, and their log."""

    def __init__(self, limits: Limits) -> None:
        self.log = WatchLog(limits)
        # Version of the last write to any object here, 0 before the first.
        self.changed_version = 0
        # Encoded size of all objects, bytes.
        self.size_bytes = 0
        self._records: dict[Key, Record] = {}
        # The keys of _records, sorted, without the changes since they were last read.
        self._keys: list[Key] = []
        # Keys that were added and removed since then. Putting each key in its place at once would
        # move half of the list for each object.
        self._added: set[Key] = set()
        self._removed: set[Key] = set()
        # Made at the first question. Every change goes through `place` and `remove_record`, also a
        # restart and the undoing of a write, so the indexes need no care elsewhere.
        self._indexes: dict[Numbers, NumberIndex] = {}
        # Held to change or copy the three collections of keys: a thread may read, see `reads`.
        self._sorting = Lock()

    def __len__(self) -> int:
        return len(self._records)

    @property
    def present(self) -> Mapping[Key, Record]:
        """The stored objects by key; read-only."""
        return self._records

    def get(self, key: Key) -> Record | None:
        """Return the object stored under a key, or None."""
        record = self._records.get(key)
        reads = current_reads()
        if reads is not None:
            reads.note_read(self, key, record)
        return record

    def records(self, namespace: str = "", *, after: Key | None = None) -> Iterator[Record]:
        """Yield records in key order.

        Parameters
        ----------
        namespace
            Only objects of this namespace; empty for all.
        after
            Only objects whose key sorts after this key.
        """
        # Copied before the first step: a writer may run between two steps of the iteration. Objects
        # that it removes are left out.
        for key in self._keys_after(namespace, after):
            record = self._records.get(key)
            if record is not None:
                yield record

    def listed(self, namespace: str = "", *, after: Key | None = None) -> list[Record]:
        """Return records in key order, all of one moment; the arguments are those of `records`."""
        # One step of the interpreter, so that no writer runs in between.
        found = list(map(self._records.get, self._keys_after(namespace, after)))
        return [record for record in found if record is not None]

    def _keys_after(self, namespace: str, after: Key | None) -> list[Key]:
        """Return a copy of the keys of a namespace, after a key."""
        reads = current_reads()
        if reads is not None:
            reads.note_all(self)
        with self._sorting:
            keys = self._sorted_keys()
            start = bisect_left(keys, (namespace, "")) if namespace else 0
            if after is not None:
                start = max(start, bisect_left(keys, (after[0], after[1] + "\0")))
            end = bisect_left(keys, (namespace + "\0", "")) if namespace else len(keys)
            return keys[start:end]

    def keys_with(self, numbers: Numbers, number: int) -> Collection[Key]:
        """Return the keys of the objects that have a number; asked in the loop only."""
        reads = current_reads()
        if reads is not None:
            reads.note_all(self)
        index = self._indexes.get(numbers)
        if index is None:
            index = NumberIndex(numbers)
            for record in self._records.values():
                index.add(record)
            self._indexes[numbers] = index
        return index.keys(number)

    def place(self, record: Record) -> Record | None:
        """Store a record; return the replaced record, or None."""
        key = record.key
        previous = self._records.get(key)
        if previous is None:
            self._note(key, self._added, self._removed)
        else:
            self.size_bytes -= len(previous.data)
        self.size_bytes += len(record.data)
        self._records[key] = record
        for index in self._indexes.values():
            if previous is not None:
                index.drop(previous)
            index.add(record)
        return previous

    def remove_record(self, key: Key) -> Record:
        """Remove and return the record stored under a key."""
        record = self._records.pop(key)
        self.size_bytes -= len(record.data)
        self._note(key, self._removed, self._added)
        for index in self._indexes.values():
            index.drop(record)
        return record

    def _note(self, key: Key, here: set[Key], there: set[Key]) -> None:
        """Note a key, unless that takes back what was noted before."""
        with self._sorting:
            if key in there:
                there.remove(key)
                return
            here.add(key)
            if len(here) >= _CHANGES_MANY:
                self._sorted_keys()

    def _sorted_keys(self) -> list[Key]:
        """Return the keys of all records in order; the caller holds the lock."""
        keys, added, removed = self._keys, self._added, self._removed
        if len(added) + len(removed) <= _CHANGES_FEW:
            for key in removed:
                del keys[bisect_left(keys, key)]
            for key in added:
                insort(keys, key)
        else:
            keys = self._keys = [key for key in keys if key not in removed]
            keys += sorted(added)
            keys.sort()  # two sorted parts: one pass
        added.clear()
        removed.clear()
        return keys


class Store:
    """Shelves by resource name (``pods``, ``deployments.apps``), and the version counter.

    Parameters
    ----------
    limits
        Bounds of each resource's watch log.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._shelves: dict[str, Shelf] = {}
        self._version = 1
        # Version at which the store was restored; changes before it are unknown.
        self._restored_version = 0
        # Receives every write that watchers may not learn of yet; see `hold_back`.
        self._delayed: Callable[[Write], None] | None = None
        # Writes neither published nor undone so far, oldest first.
        self._pending_writes: deque[Write] = deque()
        self._published = 1
        # Runs work in the thread that owns the store, and returns its result.
        self.at_home: AtHome = _here

    @property
    def version(self) -> int:
        """The newest resourceVersion given out."""
        return self._version

    @property
    def published_version(self) -> int:
        """The newest version visible to watchers; `version` unless writes are held back."""
        return self._version if self._delayed is None else self._published

    def shelf(self, resource: str) -> Shelf:
        """Return a resource's shelf, made on first use."""
        shelf = self._shelves.get(resource)
        if shelf is None:
            made = Shelf(self._limits)
            self._begin(made)
            # A thread may make the same shelf at the same time; the first one is used.
            shelf = self._shelves.setdefault(resource, made)
        return shelf

    def _begin(self, shelf: Shelf) -> None:
        """Forget all changes before the store was restored."""
        shelf.log.compact(self._restored_version)
        shelf.changed_version = self._restored_version

    def shelves(self) -> Mapping[str, Shelf]:
        """Return every shelf in use by resource name; read-only."""
        return self._shelves

    def all_records(self) -> Iterator[tuple[str, Record]]:
        """Yield (resource name, object) of every object."""
        for resource, shelf in self._shelves.items():
            for record in shelf.records():
                yield resource, record

    def records_at(
        self, resource: str, version: int, namespace: str = "", *, after: Key | None = None
    ) -> Iterator[Record] | None:
        """Return the objects of a resource as they were at a version, in key order.

        The state is computed from the present objects and the changes since, so a reader of long
        lists needs no copy.

        Parameters
        ----------
        resource
            Resource name.
        version
            A version that was given out.
        namespace, after
            As for `Shelf.records`.

        Returns
        -------
        Iterator[Record] or None
            None where the log has dropped changes since that version.
        """
        shelf = self.shelf(resource)
        # The objects come first: what changes from here on is among the changes that are read next.
        listed = shelf.listed(namespace, after=after)
        # Copied before the log is read: a change published in between is in both, without harm.
        waiting = [
            write.change for write in list(self._pending_writes) if write.resource == resource
        ]
        changes = shelf.log.since(version, len(shelf.log))
        if changes is None:
            return None
        held = [change for change in waiting if change.version > version]
        # Key -> the object at that version, None where there was none; the first change decides.
        before: dict[Key, Record | None] = {}
        for change in chain(changes, held):
            before.setdefault(change.record.key, change.previous)
        changed = sorted(
            (record for record in before.values() if record is not None),
            key=lambda record: record.key,
        )
        since = (
            record
            for record in changed
            if (not namespace or record.namespace == namespace)
            and (after is None or record.key > after)
        )
        unchanged = (record for record in listed if record.key not in before)
        return merge(unchanged, since, key=lambda record: record.key)

    def put(self, resource: str, obj: Obj, fields: Mapping[str, str]) -> Record:
        """Store an object under the next version, creating or replacing it.

        ``obj`` is stamped with its resourceVersion in place and may be dropped afterwards.
        """
        shelf = self.shelf(resource)
        record = make_record(obj, self._version + 1, fields)
        previous = shelf.place(record)
        change: ChangeType = "ADDED" if previous is None else "MODIFIED"
        self._written(resource, shelf, Change(change, record.version, record, previous))
        return record

    def remove(self, resource: str, key: Key, obj: Obj | None = None) -> Record:
        """Remove an object; watchers get its last state under the next version.

        Parameters
        ----------
        resource
            Resource name.
        key
            Key of the object, which must exist.
        obj
            The last state where it differs from the stored object.
        """
        shelf = self.shelf(resource)
        previous = shelf.remove_record(key)
        last = previous.decode() if obj is None else obj
        record = make_record(last, self._version + 1, previous.fields)
        self._written(resource, shelf, Change("DELETED", record.version, record, previous))
        return record

    def hold_back(self, take: Callable[[Write], None]) -> None:
        """Give every write to ``take`` instead of watchers, until `publish` or `undo` settles it.

        The receiver keeps the writes in order; a write is settled after all earlier writes.
        """
        self._published = self._version
        self._delayed = take

    def publish(self, writes: Iterable[Write]) -> None:
        """Publish held-back writes to watchers; they are durable now."""
        for write in writes:
            assert self._pending_writes.popleft() is write, "writes are published in order"
            self.shelf(write.resource).log.append(write.change)
            self._published = write.change.version

    def undo(self, writes: Sequence[Write]) -> None:
        """Take back all writes that are held back; no watcher has seen them.

        Their versions are given out again, because no client has seen them.
        """
        for write in reversed(writes):
            shelf, change = self.shelf(write.resource), write.change
            if change.previous is None:
                shelf.remove_record(change.record.key)
            else:
                shelf.place(change.previous)
            shelf.changed_version = write.changed_before
        self._pending_writes.clear()
        self._version = self._published

    def restore(self, records: Iterable[tuple[str, Record]], version: int) -> None:
        """Fill an empty store with the content of another store at a version.

        Watches that reach further back get a 410 and start over.

        Parameters
        ----------
        records
            Resource name and object.
        version
            The newest version of the other store.
        """
        self._version = self._published = self._restored_version = version
        for shelf in self._shelves.values():
            assert not len(shelf), "only an empty store is restored"
            self._begin(shelf)
        for resource, record in records:
            self.shelf(resource).place(record)

    def wake_all(self) -> None:
        """Wake every watcher, so that it notices a shutdown."""
        for shelf in self._shelves.values():
            shelf.log.wake()

    def _written(self, resource: str, shelf: Shelf, change: Change) -> None:
        before = shelf.changed_version
        self._version = shelf.changed_version = change.version
        if self._delayed is None:
            shelf.log.append(change)
        else:
            write = Write(resource, change, before)
            self._pending_writes.append(write)
            self._delayed(write)
