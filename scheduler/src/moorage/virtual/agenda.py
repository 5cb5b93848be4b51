"""The calls that are due at later moments of a model, their order at one moment, and held pods."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeVar

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.rng import Streams
from moorage.framework.status import Status
from moorage.service.binding.waiting import Outcome, Timer, WaitingPods

Act = Callable[[], None]
Item = TypeVar("Item")

DRAWN_MOST: Final = 6
"""Orders that are drawn at most, besides the first and its reverse."""
# Attempts of all drawn orders together: a guess, about two seconds of a question.
_ATTEMPTS_MOST: Final = 3_000
# So many pods cost as much as one attempt, where a cluster in memory is made anew.
_PODS_PER_ATTEMPT: Final = 20
# How much later a call of a kubelet or controller may come: a few calls of others.
_DELAY_SECONDS_MOST: Final = 0.006


class _Entry:
    """A call; it is not made if it was cancelled."""

    __slots__ = ("act", "due_ns")

    def __init__(self, act: Act, due_ns: int) -> None:
        self.act: Act | None = act
        self.due_ns = due_ns

    def cancel(self) -> None:
        self.act = None

    def when(self) -> float:
        return self.due_ns / NS_PER_SECOND


class Agenda:
    """Calls by the moment when they are due, calls of one moment in the order they were noted.

    Parameters
    ----------
    clock
        The time of the model.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._entries: list[tuple[int, int, _Entry]] = []

    def after(self, seconds: float, act: Act) -> Timer:
        """Note a call to make after some time."""
        return self.call_at(self._clock.now_ns() + round(seconds * NS_PER_SECOND), act)

    def call_at(self, due_ns: int, act: Act) -> Timer:
        """Note a call to make at a moment, wall-clock nanoseconds."""
        entry = _Entry(act, due_ns)
        heapq.heappush(self._entries, (due_ns, next(self._order), entry))
        return entry

    @property
    def seconds_now(self) -> float:
        """The time of the model, seconds since the Unix epoch."""
        return self._clock.now_ns() / NS_PER_SECOND

    @property
    def next_ns(self) -> int | None:
        """The due time of the next call, wall-clock nanoseconds; None without a call."""
        while self._entries and self._entries[0][2].act is None:
            heapq.heappop(self._entries)
        return self._entries[0][0] if self._entries else None

    def make_next(self) -> None:
        """Let time pass until the next call is due, and make it."""
        due_ns = self.next_ns
        assert due_ns is not None, "nothing is due"
        entry = heapq.heappop(self._entries)[2]
        self._clock.advance_ns(max(0, due_ns - self._clock.now_ns()))
        act = entry.act
        assert act is not None, "next_ns drops cancelled calls"
        entry.cancel()
        act()


class Order:
    """One order of what happens at one moment of a model.

    Kubelets end pods side by side, and controllers make pods side by side. Nobody knows ahead which
    of them is first. So a change is played in several orders, and the answer says whether they come
    out differently: as listed, and some drawn orders, in which each call of a kubelet or controller
    also takes a time of its own. Each has its reverse, so of two calls of one moment each comes
    first once.

    Parameters
    ----------
    number
        0 for the order as listed; from 2 on orders are drawn. Each odd one is the reverse of the
        one before.
    streams
        Drawn orders draw from them.

    Attributes
    ----------
    uids
        The random stream of uids: uids decide which pods a smaller owner keeps.
    """

    def __init__(self, number: int, streams: Streams) -> None:
        self.number = number
        self.is_drawn = number > 1
        self._is_reverse = number % 2 == 1
        self._draws = streams.stream(f"what-if/order/{number // 2}")
        self.uids = streams.stream(f"what-if/uids/{number}" if self.is_drawn else "what-if/uids")

    def arrange(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return what happens at one moment in this order."""
        order = self._draws.sample(items, len(items)) if self.is_drawn else items
        return order[::-1] if self._is_reverse else order

    def delay_seconds(self) -> float:
        """Return how much longer than usual a call takes; 0 in an order that is not drawn."""
        if not self.is_drawn:
            return 0.0
        delay = self._draws.uniform(0.0, _DELAY_SECONDS_MOST)
        return _DELAY_SECONDS_MOST - delay if self._is_reverse else delay


def orders_to_try(attempts: int, pods: int) -> range:
    """Return the numbers of the orders to try after the first one; fewer where one takes long.

    Parameters
    ----------
    attempts, pods
        Numbers of attempts and of pods in the first order.
    """
    work = attempts + pods // _PODS_PER_ATTEMPT
    return range(1, 2 + min(DRAWN_MOST, _ATTEMPTS_MOST // max(1, work)))


class _Decision:
    """The decision about a held pod, told to the list of decided pods."""

    __slots__ = ("_decided", "_status", "_uid")

    def __init__(self, uid: str, decided: list[tuple[str, Status]]) -> None:
        self._uid = uid
        self._decided = decided
        self._status: Status | None = None

    def done(self) -> bool:
        return self._status is not None

    def set_result(self, result: Status, /) -> None:
        self._status = result
        self._decided.append((self._uid, result))

    def __await__(self) -> Generator[None, None, Status]:
        raise AssertionError("no task waits for a decision in a model")


class HeldPods(WaitingPods):
    """The pods held at Permit in a model, whose time is an agenda.

    Parameters
    ----------
    agenda
        Has the ends of the waits.
    """

    def __init__(self, agenda: Agenda) -> None:
        super().__init__()
        self._agenda = agenda
        self._decided: list[tuple[str, Status]] = []

    def take_decided(self) -> list[tuple[str, Status]]:
        """Return the pods decided about since the last call, by uid, and let go of them."""
        decided = list(self._decided)
        self._decided.clear()  # the same list: pods that are held still tell it
        for uid, _status in decided:
            self.release(uid)
        return decided

    def _undecided(self, uid: str) -> Outcome:
        return _Decision(uid, self._decided)

    def _seconds_now(self) -> float:
        return self._agenda.seconds_now

    def _later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._agenda.after(seconds, call)
