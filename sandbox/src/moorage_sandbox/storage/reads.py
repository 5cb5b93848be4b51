"""What a call next to the loop has read, so that it writes only where all of that still stands.

Place in the flow: the worker thread of the API server runs a long call in a thread while the loop
goes on to read and write. `store` notes here which objects the call reads. Before the call's write
takes effect, in one step of the loop, `World.run_in_one_step` asks whether another call has written
one of them meanwhile. Then the long call starts again. This is the optimistic concurrency that
clients have with resourceVersions (apiserver v1.36 pkg/registry/generic/registry/store.go,
GuaranteedUpdate), for all that one call reads.

A call in the loop is not interrupted, so nothing is noted there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

TRIES_MAX: Final = 5
"""Most times that a long call is tried: upstream's number for patches (MaxRetryWhenPatchConflicts
of apiserver v1.36 pkg/endpoints/handlers)."""


class StaleError(Exception):
    """Another call has written what this call has read; nothing has been changed."""


class GoneError(Exception):
    """The caller has gone, or its time is over; nothing has been changed."""


class Versioned(Protocol):
    """The part of `moorage_sandbox.storage.store.Shelf` that is needed here."""

    @property
    def changed_version(self) -> int:
        """Version of the last write to any object."""
        ...

    @property
    def present(self) -> Mapping[Any, Any]:
        """The stored objects by key."""
        ...


class LongCall:
    """A call in the thread, as long as its caller waits for it."""

    __slots__ = ("gone",)

    def __init__(self) -> None:
        self.gone = False


class Reads:
    """What one try of a call has read.

    Parameters
    ----------
    call
        The call.
    """

    def __init__(self, call: LongCall) -> None:
        self.call = call
        # Whether a write of this try has taken effect: then the call is not tried again.
        self.written = False
        # (shelf, key) -> the object found first, None for none.
        self._objects: dict[tuple[Versioned, Any], Any] = {}
        # Shelf that was read as a whole -> version of its last write then.
        self._shelves: dict[Versioned, int] = {}

    def note_read(self, shelf: Versioned, key: Any, obj: Any) -> None:
        """Note that one object was read."""
        self._objects.setdefault((shelf, key), obj)

    def note_all(self, shelf: Versioned) -> None:
        """Note that many objects of a shelf are about to be read."""
        self._shelves.setdefault(shelf, shelf.changed_version)

    def stand(self) -> bool:
        """Whether everything is still as it was read."""
        return all(
            shelf.present.get(key) is found for (shelf, key), found in self._objects.items()
        ) and all(shelf.changed_version == seen for shelf, seen in self._shelves.items())

    def check_write(self) -> None:
        """Pass if a write may take effect now; called in the loop.

        Raises
        ------
        StaleError
            Something has changed since it was read.
        GoneError
            Nobody waits for the write any more.
        """
        if self.call.gone:
            raise GoneError
        if not self.stand():
            raise StaleError

    def forget(self) -> None:
        """Forget everything, after a write has taken effect."""
        self.written = True
        self._objects.clear()
        self._shelves.clear()


_reads: ContextVar[Reads | None] = ContextVar("reads", default=None)
current_reads = _reads.get
"""Return what the current call has read; None where nothing is noted."""


@contextmanager
def noting(reads: Reads | None) -> Iterator[None]:
    """Note in ``reads`` what is read in the context; None notes nothing."""
    token = _reads.set(reads)
    try:
        yield
    finally:
        _reads.reset(token)
