"""Tells the transports which traced attempt their calls are made for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.client.traced import TRACE, CallTrace
from moorage.observe.traces.attempts import Traces


@contextmanager
def within(trace: CallTrace | None) -> Iterator[None]:
    """Count the calls within the context, and of tasks that begin there, as calls of a trace."""
    if trace is None:
        yield
        return
    before = TRACE.set(trace)
    try:
        yield
    finally:
        TRACE.reset(before)


@contextmanager
def traced(traces: Traces | None, uid: str) -> Iterator[None]:
    """Begin the trace of a pod's attempt; calls within the context belong to it."""
    if traces is None:
        yield
        return
    before = TRACE.set(traces.begun(uid))
    try:
        yield
    except BaseException:
        traces.dropped(uid)  # an attempt that breaks has no record
        raise
    finally:
        TRACE.reset(before)
