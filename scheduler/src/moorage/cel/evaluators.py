"""Where expressions that may take long are evaluated: here, in another process, or later.

Place in the flow: rules and policies call `evaluate_within` for each object. `running_on` says for
a whole call where its slow expressions run. The CEL runtime can neither be interrupted nor limited
in memory, so a server has a process for them. Without such a process (under a virtual clock, in
what-if) every expression is evaluated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol

from moorage.cel.budget import MayTakeLong


class TooLongHere(Exception):  # noqa: N818
    """Expressions have to be evaluated outside of the loop; nothing has been changed."""


class Evaluator(Protocol):
    """Evaluates elsewhere, with a deadline and a limit of memory."""

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a function called; None where it exceeds the deadline or the limit of memory."""
        ...


Place = Evaluator | Literal["later"] | None
LATER: Final = "later"
"""Expressions that may take long raise `TooLongHere`: the caller must not be kept waiting."""
_place: ContextVar[Place] = ContextVar("place", default=None)


@contextmanager
def running_on(place: Place) -> Iterator[None]:
    """Set where expressions that may take long run, inside the context; None is this process."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def evaluate_within(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that evaluates expressions; None where another process gives up.

    Parameters
    ----------
    function
        A function of a module, which the other process can import. It has a keyword
        ``only_quick``: to raise `MayTakeLong` instead of taking long.
    *arguments
        Values that can be pickled.

    Raises
    ------
    TooLongHere
        The expressions may take long, and the caller is in the loop.
    """
    place = _place.get()
    try:
        return function(*arguments, only_quick=place is not None)
    except MayTakeLong:
        if place is None or place == LATER:
            raise TooLongHere from None
    return place.call(function, arguments)
