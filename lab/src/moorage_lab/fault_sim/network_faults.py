"""The faults of a connection: which of them are at work, and how often each strikes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

import msgspec

from moorage.base.clock import NS_PER_SECOND
from moorage.base.rng import Random

WireFault = Literal[
    "refused",
    "lost",
    "answer-lost",
    "answer-slow",
    "slow",
    "error-500",
    "busy-429",
    "conflict-409",
    "timeout",
    "answer-timeout",
    "watch-slow",
    "watch-batched",
    "watch-cut",
    "watch-gone",
    "watch-silent",
    "list-stale",
    "feigned",
]
"""A fault of the connection between a program and the API server.

- ``refused``: no connection is made; the server does not see the call.
- ``lost``: the call is lost on its way; the server does not see it, the caller cannot know.
- ``answer-lost``: the server acts, its answer is lost.
- ``answer-slow``: the server acts at once, its answer takes up to five seconds.
- ``slow``: the call takes up to two seconds each way.
- ``error-500``, ``busy-429``: the server answers so and does nothing.
- ``conflict-409``: the same for changes and bindings: somebody else was faster.
- ``timeout``, ``answer-timeout``: no answer comes until the caller gives up; the server has not
  acted, or it has.
- ``watch-slow``: a watch tells each change up to five seconds late.
- ``watch-batched``: a watch tells all changes of two seconds in one moment.
- ``watch-cut``: a watch ends in the middle.
- ``watch-gone``: a watch ends with 410, so that everything is listed again.
- ``watch-silent``: a half-open connection; nothing more comes, and nothing says so.
- ``list-stale``: a server streams no lists, and answers a list that may be old with an old one.
- ``feigned``: a binding is answered with success, and the server does not see it.
"""

WIRE_FAULTS: tuple[WireFault, ...] = tuple(
    each for each in get_args(WireFault) if each != "feigned"
)
"""The faults of connections and servers that work; a server that feigns is looked at by itself."""

_SLOW_SECONDS = 2.0
_LATE_SECONDS = 5.0
_BATCH_SECONDS = 2.0
_VERSIONS_OLD = 200

# How long a fault may keep a watch from telling something: with the waits between new tries, or
# until a silent connection is given up.
_BLIND_SECONDS: Mapping[WireFault, float] = MappingProxyType(
    {
        "answer-slow": 10.0,
        "watch-slow": 10.0,
        "watch-batched": 10.0,
        "timeout": 200.0,
        "answer-timeout": 200.0,
        "conflict-409": 60.0,
        "list-stale": 10.0,
        "watch-cut": 60.0,
        "watch-gone": 60.0,
        "watch-silent": 700.0,
        "refused": 60.0,
        "lost": 60.0,
        "answer-lost": 60.0,
        "error-500": 60.0,
        "busy-429": 60.0,
    }
)


class Spell(msgspec.Struct, frozen=True):
    """One fault that strikes for a while.

    Parameters
    ----------
    fault
        Kind of the fault.
    rate
        Share of calls, or of lines of a watch, that it strikes, 0 to 1.
    until_ns
        Monotonic time of its end, nanoseconds.
    """

    fault: WireFault
    rate: float
    until_ns: int


class NetworkFaults:
    """The faults at work on one connection.

    Parameters
    ----------
    rng
        Decides which calls are struck, and how long messages take.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._spells: list[Spell] = []
        self.cleared = asyncio.Event()
        self.fault_counts: dict[WireFault, int] = {}
        """How often each fault struck."""
        # One blind time may begin before the last one is over: then both are one.
        self._blind_from_ns = self._blind_to_ns = -(10**18)

    def add(self, spell: Spell) -> None:
        """Let a fault strike until its end."""
        self._spells.append(spell)

    def clear(self, now_ns: int) -> None:
        """End every fault now, half-open connections included."""
        self._spells = [
            msgspec.structs.replace(each, until_ns=min(each.until_ns, now_ns))
            for each in self._spells
        ]
        self.cleared.set()

    def spells(self, since_ns: int) -> bool:
        """Return whether any fault is at work since a moment, which may be now."""
        return any(since_ns < spell.until_ns for spell in self._spells)

    def strikes(self, fault: WireFault, now_ns: int) -> bool:
        """Return whether a fault strikes this call or line."""
        for spell in self._spells:
            if spell.fault == fault and now_ns < spell.until_ns and self._rng.random() < spell.rate:
                self.fault_counts[fault] = self.fault_counts.get(fault, 0) + 1
                self.blind(now_ns, _BLIND_SECONDS.get(fault, 0.0))
                return True
        return False

    def blind(self, now_ns: int, seconds: float) -> None:
        """Note that the program may hear of nothing for so many seconds from now."""
        if now_ns > self._blind_to_ns:
            self._blind_from_ns = now_ns
        self._blind_to_ns = max(self._blind_to_ns, now_ns + round(seconds * NS_PER_SECOND))

    def blind_ns(self, now_ns: int) -> int:
        """Return for how long the program may have heard of nothing, nanoseconds; 0 for none."""
        return now_ns - self._blind_from_ns if now_ns <= self._blind_to_ns else 0

    def batched(self, now_ns: int) -> float:
        """Return when a line of a watch is told where lines are batched, seconds; 0 for at once."""
        if not self.strikes("watch-batched", now_ns):
            return 0.0
        return math.ceil(now_ns / NS_PER_SECOND / _BATCH_SECONDS) * _BATCH_SECONDS

    def versions_old(self) -> int:
        """Return by how many versions an old list is behind."""
        return 1 + self._rng.randrange(_VERSIONS_OLD)

    def answer_seconds(self, now_ns: int) -> float:
        """Return the time that an answer takes."""
        late = self.strikes("answer-slow", now_ns)
        return self.seconds(now_ns) + (_LATE_SECONDS * self._rng.random() if late else 0.0)

    def seconds(self, now_ns: int, *, slow: WireFault = "slow") -> float:
        """Return the time that a message takes one way."""
        usual = 0.0005 + 0.002 * self._rng.random()
        if not self.strikes(slow, now_ns):
            return usual
        longest = _SLOW_SECONDS if slow == "slow" else _LATE_SECONDS
        return usual + longest * self._rng.random()
