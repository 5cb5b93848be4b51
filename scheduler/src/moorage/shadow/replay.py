"""Puts the bindings of the real scheduler back into the order in which it decided.

A scheduler binds many pods at once, so a watch shows the bindings in any order, while each decision
knew all decisions before it. A binding therefore waits here until every pod that was popped before
has its binding, was rejected or is gone. Until then the cluster is shown without it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable
from typing import Final, Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.shadow.moments import Binding
from moorage.shadow.queue_order import QueueOrder, Turn

WAIT_SECONDS: Final = 5.0
"""Longest time that a binding waits for the bindings before it: a guess."""
_WAIT_NS: Final = round(WAIT_SECONDS * NS_PER_SECOND)
# As long as a pod that was overtaken may have a node that nobody sees: a guess. Waits at Permit and
# for volumes are rarely longer, and a pod that never had a turn is not waited for without end.
_OVERDUE_NS: Final = 60 * NS_PER_SECOND


class _Waiting(msgspec.Struct):
    """A binding that waits, and the newest version of its pod."""

    binding: Binding
    newest: Pod


class Bound(Protocol):
    """Takes bindings, in the order of their decisions."""

    def __call__(self, binding: Binding, newest: Pod, *, overtook: bool) -> None:
        """Take a binding, and the newest version of its pod.

        Parameters
        ----------
        overtook
            Whether a pod that was popped before may have a node that was not seen yet.
        """
        ...


class Replay:
    """The bindings that wait for those before them.

    Parameters
    ----------
    order
        The pods without a node.
    bound
        Takes the bindings.
    """

    def __init__(self, order: QueueOrder, bound: Bound) -> None:
        self._order = order
        self._bound = bound
        self._waiting: dict[str, _Waiting] = {}
        # Scheduler and level -> rank and uid of its waiting bindings, sorted.
        self._levels: dict[tuple[str, Hashable], list[tuple[int, str]]] = {}
        # Pods that were overtaken, with their turns, and when.
        self._overdue: dict[str, tuple[Turn, int]] = {}

    def add(self, binding: Binding, newest: Pod) -> None:
        """Take a binding that was seen."""
        turn, uid = binding.turn, binding.pod.uid
        insort(self._levels.setdefault((turn.scheduler, turn.level), []), (turn.rank, uid))
        self._waiting[uid] = _Waiting(binding, newest)

    def newest(self, uid: str) -> Pod | None:
        """Return the newest version of a pod whose binding waits; None for any other pod."""
        found = self._waiting.get(uid)
        return None if found is None else found.newest

    def change(self, new: Pod) -> None:
        """Take the newest version of a pod whose binding waits."""
        self._waiting[new.uid].newest = new

    def rejected(self, uid: str) -> None:
        """Note that a pod was rejected: it has no node, and its next turn is not known."""
        self._overdue.pop(uid, None)
        self._order.disorder(uid)

    def gone(self, uid: str) -> None:
        """Forget a pod; a binding of it that waits is handed out first."""
        self._overdue.pop(uid, None)
        if uid in self._waiting:
            self._hand_out(uid)
        self._order.forget(uid)

    def release(self, now_ns: int, *, every: bool = False) -> None:
        """Hand out the bindings that wait for nothing any more.

        Parameters
        ----------
        now_ns
            Now.
        every
            Whether all are handed out, since nothing more is watched.
        """
        while any(self._release_level(key, now_ns, every) for key in list(self._levels)):
            pass  # a level may have waited for one after it
        if self._overdue:
            self._overdue = {
                uid: (turn, at_ns)
                for uid, (turn, at_ns) in self._overdue.items()
                if now_ns - at_ns < _OVERDUE_NS
            }

    def _release_level(self, key: tuple[str, Hashable], now_ns: int, every: bool) -> bool:
        """Hand out the first bindings of a level; whether there was one."""
        level, before = self._levels[key], len(self._waiting)
        while level:
            binding = self._waiting[level[0][1]].binding
            if not self._order.is_next(binding.turn):
                if not every and now_ns - binding.at_ns < _WAIT_NS:
                    break
                self._overtake(binding.turn, now_ns)
            self._hand_out(level[0][1])
        if not level:
            del self._levels[key]
        return len(self._waiting) < before

    def _overtake(self, turn: Turn, now_ns: int) -> None:
        """Wait no longer for the pods that were popped before a turn."""
        for uid in self._order.before(turn):
            before = self._order.turn_of(uid)
            if before is not None and uid not in self._waiting:
                self._overdue[uid] = before, now_ns
                self._order.disorder(uid)

    def _hand_out(self, uid: str) -> None:
        entry = self._waiting.pop(uid)
        turn = entry.binding.turn
        self._levels[turn.scheduler, turn.level].remove((turn.rank, uid))
        self._overdue.pop(uid, None)
        overtook = not self._order.is_next(turn) or any(
            each.surely_before(turn) for each, _ in self._overdue.values()
        )
        self._order.forget(uid)
        self._bound(entry.binding, entry.newest, overtook=overtook)
