"""The order in which the real scheduler pops pods, as far as it is known from outside.

A queue gives pods by priority and then by age, as PrioritySort does, and a watch shows pods in the
order in which the scheduler sees them. So two pods that were never rejected have a known order,
unless the younger one has a higher priority. The configuration's QueueSort plugin has to say the
same, because the real scheduler may have it too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, Final

import msgspec

from moorage.api.pod import Pod

BEFORE_THE_FIRST_LIST: Final = 0
"""The rank of pods in the first lists, whose order among each other is not known."""


SortKey = Callable[[int, int, Pod], tuple[Any, ...]]
"""The key of a QueueSort plugin, from priority, time and pod."""


class Turn(msgspec.Struct, frozen=True):
    """When a pod is popped, as far as it is known from outside.

    Parameters
    ----------
    rank
        The rank of its appearance among all watch events.
    since_ns
        When it appeared, wall-clock nanoseconds.
    priority, scheduler
        Its priority and schedulerName.
    key
        The key of the QueueSort plugin, with the rank for the time. None for a pod that is not
        popped by it: a pod that was rejected or gated is queued anew at an unknown time, and the
        members of a group are popped together.
    level
        Equal for pods that differ in their time alone.
    """

    rank: int
    since_ns: int
    priority: int
    scheduler: str
    key: tuple[Any, ...] | None = None
    level: Hashable = None

    def surely_before(self, other: Turn) -> bool:
        """Whether this pod is surely decided about before another, by the same scheduler.

        A pod that was rejected is queued anew, and later than every pod that appeared before it.
        """
        return (
            self.key is not None
            and self.scheduler == other.scheduler
            and self.priority >= other.priority
            and self.rank < other.rank
            and (other.key is None or self.key < other.key)
        )


class QueueOrder:
    """The pods without a node, in the order in which they are popped.

    Attributes
    ----------
    now
        The number of watch events so far, the rank of the last one.
    """

    def __init__(self) -> None:
        self.now = BEFORE_THE_FIRST_LIST
        self._turns: dict[str, Turn] = {}
        # Scheduler -> level -> uid and turn of the pods whose order is known, by rank.
        self._levels: dict[str, dict[Hashable, dict[str, Turn]]] = {}

    def next_rank(self) -> int:
        """Count a watch event, and return its rank."""
        self.now += 1
        return self.now

    def appear(self, pod: Pod, *, at_ns: int, sort_key: SortKey | None) -> None:
        """Note a pod without a node.

        Parameters
        ----------
        at_ns
            Now, wall-clock nanoseconds.
        sort_key
            The key of the QueueSort plugin; None where the pod is not popped by it.
        """
        uid, scheduler = pod.uid, pod.spec.scheduler_name
        if sort_key is None:
            self._turns[uid] = Turn(self.now, at_ns, pod.priority, scheduler)
            return
        key, level = (sort_key(pod.priority, time, pod) for time in (self.now, 0))
        known = level if _is_plain(level) else uid
        turn = Turn(self.now, at_ns, pod.priority, scheduler, key, known)
        self._turns[uid] = turn
        self._levels.setdefault(scheduler, {}).setdefault(turn.level, {})[uid] = turn

    def turn_of(self, uid: str) -> Turn | None:
        """Return when a pod without a node is popped; None for any other pod."""
        return self._turns.get(uid)

    def disorder(self, uid: str) -> None:
        """Note that a pod is no longer popped by its key."""
        turn = self._turns.get(uid)
        if turn is not None and turn.key is not None:
            self._leave(uid, turn)
            self._turns[uid] = msgspec.structs.replace(turn, key=None, level=None)

    def forget(self, uid: str) -> None:
        """Forget a pod that has a node now, or is gone."""
        turn = self._turns.pop(uid, None)
        if turn is not None and turn.key is not None:
            self._leave(uid, turn)

    def before(self, turn: Turn) -> list[str]:
        """Return the uids of the pods without a node that are surely popped before a turn."""
        found: list[str] = []
        for level in self._levels.get(turn.scheduler, {}).values():
            earlier = itertools.takewhile(lambda each: each[1].surely_before(turn), level.items())
            found += [uid for uid, _ in earlier]
        return found

    def is_next(self, turn: Turn) -> bool:
        """Whether no pod without a node is surely popped before a turn."""
        levels = self._levels.get(turn.scheduler, {}).values()
        return not any(next(iter(level.values())).surely_before(turn) for level in levels)

    def turns(self, *, without: Collection[str] = ()) -> Iterator[Turn]:
        """Yield the turns of the pods without a node, but for some, by uid."""
        return (turn for uid, turn in self._turns.items() if uid not in without)

    def _leave(self, uid: str, turn: Turn) -> None:
        levels = self._levels[turn.scheduler]
        del levels[turn.level][uid]
        if not levels[turn.level]:
            del levels[turn.level]


def _is_plain(key: tuple[Any, ...]) -> bool:
    """Whether a key is made of numbers and texts; one that a comparator judges has no equal."""
    return all(
        _is_plain(part) if isinstance(part, tuple) else isinstance(part, int | float | str)
        for part in key
    )
