"""Processor time of a scheduler by part, measured while the scheduler runs on this thread's loop.

Each step of a task counts for the part that the task's name tells. Two calls inside these steps
count for parts of their own: decoding a line of a watch, and deciding about a pod. The event loop,
TLS, sockets and the parsing of answers are what is left of the thread's processor time.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar
from unittest import mock

from moorage.client.objects import ObjectReader
from moorage.engine.cycle import Cycle

DECODE: Final = "decode"
QUEUE: Final = "queue and cache"
DECIDE: Final = "decide"
CARRY_OUT: Final = "carry out"
BIND: Final = "bind call"
EVENT: Final = "Event"
STATUS: Final = "status patch"
OTHER: Final = "other coroutines"
LOOP: Final = "loop, TLS, HTTP"
"""The parts, in the order of a pod's way."""

PARTS: Final = (DECODE, QUEUE, DECIDE, CARRY_OUT, BIND, EVENT, STATUS, OTHER, LOOP)
_BY_NAME: Final = (
    ("reflector", QUEUE),
    ("pump", CARRY_OUT),
    ("bind ", BIND),
    ("prebind ", BIND),
    ("event-writer", EVENT),
    ("status ", STATUS),
)

P = ParamSpec("P")
R = TypeVar("R")


class PartTimes:
    """Sums of processor time.

    Attributes
    ----------
    spent_ns
        By part, nanoseconds; `LOOP` is missing.
    """

    def __init__(self) -> None:
        self.spent_ns = dict.fromkeys(PARTS, 0)
        self._open: list[str] = []
        self._since_ns = 0

    def enter(self, part: str) -> None:
        """Count time for a part from now on, until `leave`; parts nest."""
        now_ns = time.thread_time_ns()
        if self._open:
            self.spent_ns[self._open[-1]] += now_ns - self._since_ns
        self._open.append(part)
        self._since_ns = now_ns

    def leave(self) -> None:
        """Count time for the part outside again."""
        now_ns = time.thread_time_ns()
        self.spent_ns[self._open.pop()] += now_ns - self._since_ns
        self._since_ns = now_ns

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure tasks of the running loop that start in this context, and the calls inside."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        loop.set_task_factory(self._task)  # type: ignore[arg-type]  # any task, whatever it returns
        with (
            mock.patch.object(
                ObjectReader, "read_line", self._timed(ObjectReader.read_line, DECODE)
            ),
            mock.patch.object(Cycle, "decide", self._timed(Cycle.decide, DECIDE)),
        ):
            try:
                yield
            finally:
                loop.set_task_factory(before)

    def _task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, R], **options: Any
    ) -> asyncio.Task[R]:
        return asyncio.Task(_Stepped(work, self), loop=loop, **options)

    def _timed(self, function: Callable[P, R], part: str) -> Callable[P, R]:
        @functools.wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            self.enter(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.leave()

        return timed


class _Stepped(Coroutine[Any, Any, R]):
    """A coroutine, each step of which is measured."""

    def __init__(self, work: Coroutine[Any, Any, R], times: PartTimes) -> None:
        self._work = work
        self._times = times
        self._part = ""

    def send(self, value: Any) -> Any:
        """Go on to the next wait."""
        self._times.enter(self._part or self._part_of_task())
        try:
            return self._work.send(value)
        finally:
            self._times.leave()

    def throw(self, *error: Any) -> Any:
        """Go on to the next wait with an exception."""
        self._times.enter(self._part or self._part_of_task())
        try:
            return self._work.throw(*error)
        finally:
            self._times.leave()

    def close(self) -> None:
        """End the coroutine."""
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()

    def _part_of_task(self) -> str:
        """Return the part, which the task's name tells; a loop may name a task after its start."""
        task = asyncio.current_task()
        name = "" if task is None else task.get_name()
        self._part = next((part for begin, part in _BY_NAME if name.startswith(begin)), OTHER)
        return self._part
