"""Scratch space of one attempt, with typed keys.

A plugin's PreFilter or PreScore writes values that its Filter or Score reads. The state is dropped
with the attempt.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.framework.meter import NOT_TIMED, Meter
from moorage.framework.status import SKIP_CODE, Code

T = TypeVar("T")


class StateKey(Generic[T]):
    """A key whose type parameter is the type of its value; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


REJECTION_FIGURES: StateKey[str] = StateKey("figures of a rejection")
"""The amounts that a rejecting PreFilter compared, for people; no decision reads them."""


class StateMissingError(KeyError):
    """A plugin read a value that no PreFilter or PreScore wrote: the pair is not enabled."""

    def __str__(self) -> str:
        return "not found"


class CycleState(msgspec.Struct, eq=False):
    """Values by typed key, the plugins skipped in this attempt, and the meter that times them.

    Parameters
    ----------
    meter
        The meter that is told of the plugins' calls in this attempt; None without measuring.
    timed
        Whether plugins are timed one by one.
    skip_filter, skip_score, skip_pre_bind
        Names of the plugins that skip these points.
    pods_to_activate
        Pods by uid that are activated when the scheduling cycle succeeds. Pods added later are
        activated when the binding succeeds. Copies of the state share the pods.
    """

    meter: Meter | None = None
    timed: bool = False
    skip_filter: frozenset[str] = NO_NAMES
    skip_score: frozenset[str] = NO_NAMES
    skip_pre_bind: frozenset[str] = NO_NAMES
    pods_to_activate: dict[str, Pod] = {}
    _values: dict[StateKey[Any], Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        """Store a value under its key."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T:
        """Return the value of a key.

        Raises
        ------
        StateMissingError
            Nothing was written under the key in this attempt.
        """
        try:
            found: T = self._values[key]
        except KeyError:
            raise StateMissingError(key.name) from None
        return found

    def find(self, key: StateKey[T]) -> T | None:
        """Return the value of a key, or None."""
        found: T | None = self._values.get(key)
        return found

    def delete(self, key: StateKey[Any]) -> None:
        """Forget a key; nothing happens when it was never written."""
        self._values.pop(key, None)

    def take(self, key: StateKey[T]) -> T | None:
        """Forget a key, and return its value, or None."""
        found: T | None = self._values.pop(key, None)
        return found

    def keys(self) -> frozenset[StateKey[Any]]:
        """Return the keys that have a value."""
        return frozenset(self._values)

    def begins(self) -> int:
        """Return when a plugin's call begins, monotonic nanoseconds; mostly `NOT_TIMED`."""
        return self.meter.meter_ns() if self.timed and self.meter is not None else NOT_TIMED

    def ended(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        """Note that a plugin's call has ended.

        Parameters
        ----------
        plugin, point, code
            The plugin that was asked, the extension point, and the answer.
        since_ns
            What `begins` returned.
        """
        meter = self.meter
        if meter is None:
            return
        if code is not SKIP_CODE:
            meter.called(plugin, point)
        if since_ns != NOT_TIMED:
            meter.took(plugin, point, code, since_ns=since_ns)

    def metered_like(self, other: CycleState) -> None:
        """Meter the calls of plugins with this state as calls of another state."""
        self.meter, self.timed = other.meter, other.timed

    def copy(self) -> CycleState:
        """Return a state with the same values; the values themselves are shared."""
        return msgspec.structs.replace(self, _values=dict(self._values))

    def absorb(self, other: CycleState) -> None:
        """Take over every value another state has."""
        self._values.update(other._values)
