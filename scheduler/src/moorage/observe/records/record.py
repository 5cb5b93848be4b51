"""The record of one attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from moorage.engine.notes.attempt_note import AttemptNote, ShapeNote
from moorage.state.history import HistoryEntry
from moorage.state.queued_pod import PodKey

End = Literal["", "bound", "requeued", "gone"]
"""The end of an attempt: "" while its binding is under way."""

_FIXED_BYTES: Final = 1200
"""A record without the sizes below, with its place in the ring; measured with tracemalloc."""
_ENTRY_BYTES: Final = 120
_FAILURE_BYTES: Final = 80
_BYTES: Final = tuple(_FIXED_BYTES + _ENTRY_BYTES * entries for entries in range(8))
"""Both together, by the number of entries."""
USUAL_BYTES: Final = _BYTES[2]
"""The record of a pod that was bound in its first attempt, without scores of its own."""
DROPPED: Final = -1
"""The size of a record that its ring has dropped."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A step of an attempt after its decision.

    Parameters
    ----------
    name
        Reserve, Permit, ``wait at Permit``, PreBind or Bind.
    code
        The status code it ended with.
    took_ns
        How long it took, nanoseconds.
    plugin
        The plugin that gave this code; "" for all of them.
    """

    name: str
    code: str
    took_ns: int
    plugin: str = ""


class TwoEntries(msgspec.Struct, frozen=True, gc=False):
    """The history of most pods before an attempt: a fact, and that the pod was popped.

    It is half as large as a tuple, and no collection of garbage looks at it.

    Parameters
    ----------
    first, last
        The entries, oldest first.
    """

    first: HistoryEntry
    last: HistoryEntry

    def __iter__(self) -> Iterator[HistoryEntry]:
        """Iterate over both, oldest first."""
        return iter((self.first, self.last))

    def __len__(self) -> int:
        return 2


class Failure(msgspec.Struct, frozen=True, gc=False):
    """The reason why an attempt found no node, and what follows; or why its binding failed.

    Parameters
    ----------
    outcome
        bind, reject or error.
    message
        The reason for people.
    broken_by
        The plugin whose failure ended the attempt; "" for none.
    nominated
        The node that the pod was nominated for; None where the nomination was left alone.
    victims
        ``namespace/name`` of the pods to evict, most important first.
    chosen_by
        The rule that chose the nominated node and its victims; "" where nothing is to be evicted.
    """

    outcome: str = "bind"
    message: str = ""
    broken_by: str = ""
    nominated: str | None = None
    victims: tuple[str, ...] = ()
    chosen_by: str = ""

    @property
    def nbytes(self) -> int:
        """Memory, bytes; a little more than it takes."""
        return _FAILURE_BYTES + 2 * len(self.message) + _ENTRY_BYTES * len(self.victims)


NO_FAILURE: Final = Failure()
"""Of an attempt that chose a node, and of whose binding no failure is known."""


class AttemptRecord(msgspec.Struct, gc=False, eq=False):
    """The findings of one attempt, and its end.

    Parameters
    ----------
    number
        Numbers attempts of a scheduler in the order of their decisions, from 1.
    uid, key, profile
        The pod, (namespace, name), and the profile that decided.
    attempt
        The pod's own attempts, this one included.
    at_ns
        When the decision was made, wall-clock nanoseconds.
    took_ns
        How long the decision took, nanoseconds.
    before
        The pod's history since its last attempt, oldest first: what woke it.
    rejectors
        The plugins that the pod waited for before the attempt.
    node
        The chosen node; "" for none.
    total, feasible, evaluated, ties
        As of the decision.
    note
        The filter results and the best nodes; None where nothing was searched.
    failure
        Why there is no node; later, why the binding failed.
    steps
        The steps after the decision.
    end
        How the attempt ended.
    ended_ns
        When it ended, wall-clock nanoseconds; 0 before.
    size
        Memory of the record when it was added, bytes; 0 until then, and `DROPPED` once the ring has
        dropped it. Kept by the ring.
    is_last
        Whether it is the last record of its pod; kept by the ring.
    """

    number: int
    uid: str
    key: PodKey
    profile: str
    attempt: int
    at_ns: int
    took_ns: int
    before: tuple[HistoryEntry, ...] | TwoEntries
    rejectors: frozenset[str]
    node: str
    total: int | None
    feasible: int
    evaluated: int
    ties: int
    note: AttemptNote | None
    failure: Failure = NO_FAILURE
    steps: tuple[Step, ...] = ()
    end: End = ""
    ended_ns: int = 0
    size: int = 0
    is_last: bool = True

    @property
    def is_dropped(self) -> bool:
        """Whether the ring has dropped it."""
        return self.size == DROPPED

    @property
    def own_bytes(self) -> int:
        """Memory of the record without what it shares, bytes; a little more than it takes."""
        before, note = self.before, self.note
        entries = 2 if type(before) is TwoEntries else len(before)  # as a rule, without a call
        # As a rule one of a few objects: then records share it as their `size`.
        size = _BYTES[entries] if entries < len(_BYTES) else _FIXED_BYTES + _ENTRY_BYTES * entries
        if note is not None:
            if note.near is not None:
                size += note.near.nbytes
            if note.more:
                size += sum([each.nbytes for each in note.more])
            if note.extenders:
                size += sum([each.nbytes for each in note.extenders])
        if not self.node:
            size += self.failure.nbytes
        return size

    @property
    def shape(self) -> ShapeNote | None:
        """The part of the note that other records share; None where no node was looked at."""
        return None if self.note is None else self.note.shape

    @property
    def has_rejections(self) -> bool:
        """Whether the nodes that Filter rejected are still known."""
        shape = self.shape
        return shape is not None and not shape.dropped
