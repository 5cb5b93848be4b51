"""The form of an invariant, and of what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

SubjectT = TypeVar("SubjectT")


class Invariant(msgspec.Struct, Generic[SubjectT], frozen=True):
    """One thing that must hold.

    Parameters
    ----------
    name
        The name in reports.
    holds
        What must hold, as a sentence.
    incident
        A known failure of that kind, or the reason why it matters.
    broken
        Returns a text for each way in which it does not hold.
    """

    name: str
    holds: str
    incident: str
    broken: Callable[[SubjectT], Iterable[str]]


class Breach(msgspec.Struct, frozen=True):
    """An invariant that did not hold.

    Parameters
    ----------
    invariant
        Name of the invariant.
    seconds
        Virtual time at which it was noticed.
    text
        What was seen.
    """

    invariant: str
    seconds: float
    text: str
