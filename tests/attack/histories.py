"""Histories of calls to one object, and whether some order of them explains every answer.

An object is a register that is created, replaced under its resourceVersion, read and deleted. A
history is linearizable where each call can be given one moment between its beginning and its end so
that, done in that order, the calls answer what they did answer. A call without an answer (the
server was killed) may have taken effect at any moment after it began, or never.

The search is that of Wing and Gong, with the pairs (calls done, state) that led nowhere remembered
(Lowe, 2017): short, and quick enough for the few calls that overlap on one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

Kind = Literal["create", "replace", "get", "delete"]
NEVER = float("inf")
"""End of a call without an answer, as long as it may still take effect."""


class Made(msgspec.Struct, frozen=True):
    """One call to an object.

    Parameters
    ----------
    kind
        What was asked.
    began, ended
        When, by one clock. Without an answer: when its server was surely dead, or `NEVER`.
    value
        What was written; what was read.
    expected
        The version that a replacement was to replace.
    code
        HTTP status; 0 without an answer.
    version
        The version that was told; 0 where none was.
    """

    kind: Kind
    began: float
    ended: float
    value: int = 0
    expected: int = 0
    code: int = 0
    version: int = 0


class State(msgspec.Struct, frozen=True):
    """What is stored: a value under a version; a version of 0 for nothing.

    ``version`` is -1 where the writer was not told it: whatever is told next is right then.
    """

    value: int = 0
    version: int = 0

    @property
    def there(self) -> bool:
        """Whether there is an object."""
        return self.version != 0

    def shows(self, version: int) -> bool:
        """Whether the object may have a version."""
        return self.there and (self.version in (-1, version))


def is_linearizable(calls: Sequence[Made]) -> bool:
    """Whether some order of the calls explains every answer."""
    # A read without an answer says nothing.
    telling = [call for call in calls if call.kind != "get" or call.code]
    ordered = sorted(telling, key=lambda call: (call.began, call.ended))
    settled = sum(1 << index for index, call in enumerate(ordered) if call.ended != NEVER)
    dead: set[tuple[int, State]] = set()
    stack: list[tuple[int, State]] = [(0, State())]
    while stack:
        done, state = stack.pop()
        if done & settled == settled:
            return True
        if (done, state) in dead:
            continue
        dead.add((done, state))
        for index in _next(ordered, done):
            stack.extend((done | 1 << index, after) for after in _outcomes(ordered[index], state))
    return False


def _next(ordered: Sequence[Made], done: int) -> list[int]:
    """Return the calls that may come next: none that is left had ended before they began."""
    end = NEVER
    left = []
    first = (~done & (done + 1)).bit_length() - 1
    for index in range(first, len(ordered)):
        call = ordered[index]
        # Those that began later end later still.
        if call.began > end:
            break
        if not done >> index & 1:
            left.append(index)
            end = min(end, call.ended)
    return [index for index in left if ordered[index].began <= end]


def _outcomes(call: Made, state: State) -> Iterator[State]:
    """Yield what a call leaves behind, where its answer is right in a state."""
    if not call.code:
        yield state
        yield from _unanswered(call, state)
    elif call.code == 404:
        if not state.there:
            yield state
    elif call.code == 409:
        # Of a create there is an object already, of a replacement there is another version.
        if state.there and (call.kind == "create" or state.version != call.expected):
            yield state
    elif _succeeds(call, state):
        yield State() if call.kind == "delete" else State(call.value, call.version)


def _succeeds(call: Made, state: State) -> bool:
    """Whether a call that succeeded could do so in a state."""
    match call.kind:
        case "create":
            return not state.there
        case "replace":
            return state.shows(call.expected)
        case "get":
            return state.shows(call.version) and state.value == call.value
        case "delete":
            return state.there


def _unanswered(call: Made, state: State) -> Iterator[State]:
    """Yield what a call may leave behind of which nobody knows whether it took effect."""
    if call.kind == "delete":
        if state.there:
            yield State()
    elif state.shows(call.expected) if call.kind == "replace" else not state.there:
        yield State(call.value, -1)
