"""One span of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Attributes: TypeAlias = Mapping[str, str | int]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an attempt, with its beginning and its end.

    Parameters
    ----------
    trace_id, span_id
        128 and 64 random bits, never 0.
    parent_id
        The span around this one; 0 for the span of the whole attempt.
    name
        The name; few different ones, so that they can be counted.
    start_ns, end_ns
        Wall-clock nanoseconds.
    attributes
        Further facts.
    failure
        Why the part failed; None where it did not.
    is_call
        Whether the span is a call to another program.
    """

    trace_id: int
    span_id: int
    parent_id: int
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes = {}
    failure: str | None = None
    is_call: bool = False
