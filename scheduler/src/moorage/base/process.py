"""Common parts of every long-running moorage process: event loop, signals, parent process.

A process ends at SIGINT or SIGTERM. A child also ends when its standard input ends. Standard input
ends however the parent dies, so no orphan stays behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.base.aio import PacedLoop, ScaledLoop, TaskOwner
from moorage.base.clock import Clock, ScaledClock, SystemClock
from moorage.base.timeline import Timeline

T = TypeVar("T")

_TLS_FAULT = "Fatal error on SSL protocol"
_log = logging.getLogger(__name__)

EXIT_KILLED = 130
"""Exit code after a second signal: 128 + SIGINT."""


class Pace(msgspec.Struct, frozen=True):
    """The speed of time in a process of the sandbox, and its start.

    Parameters
    ----------
    speed
        Seconds of the sandbox that pass in a real second.
    start_ns
        Start of the speed, nanoseconds since the Unix epoch; the same in all processes.
    timeline
        File of a `Timeline` that sets the time instead; empty if time cannot be changed.
    ahead_ns
        Lead over the machine's time at the start, nanoseconds, after an earlier, faster run.
    """

    speed: float = 1.0
    start_ns: int = 0
    timeline: str = ""
    ahead_ns: int = 0

    def clock(self) -> Clock:
        """Return the clock of a process with this pace."""
        if self.timeline:
            return Timeline(Path(self.timeline))
        if self.speed == 1 and not self.ahead_ns:
            return SystemClock()
        return ScaledClock(self.speed, self.start_ns, self.ahead_ns)


def run_loop(
    main: Coroutine[Any, Any, T], pace: Pace | None = None, clock: Clock | None = None
) -> T:
    """Run a coroutine on the fastest available event loop, uvloop where it is installed.

    Parameters
    ----------
    pace
        A speed other than 1 needs a scalable loop.
    clock
        Clock of that pace, in the same process; a `Timeline` needs a special loop.
    """
    if isinstance(clock, Timeline):
        timeline = clock
        with asyncio.Runner(loop_factory=lambda: PacedLoop(timeline)) as runner:
            return runner.run(_handled(main))
    if pace is not None and pace.speed != 1:
        speed = pace.speed
        with asyncio.Runner(loop_factory=lambda: ScaledLoop(speed)) as runner:
            return runner.run(_handled(main))
    try:
        import uvloop
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_handled(main))


async def _handled(main: Coroutine[Any, Any, T]) -> T:
    asyncio.get_running_loop().set_exception_handler(_without_closed_connections)
    return await main


def _without_closed_connections(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle what no task takes; TLS that finds its connection closed is no fault.

    uvloop reports that when a process ends, or its peer, while a connection is being made. Whoever
    uses the connection is told by an exception of its own.
    """
    if context.get("message") == _TLS_FAULT and isinstance(context.get("exception"), RuntimeError):
        _log.debug("%s: %s", _TLS_FAULT, context["exception"])
        return
    loop.default_exception_handler(context)


class Ending:
    """A flag that is set when the process should end.

    Parameters
    ----------
    on_second
        Called at a second signal, before the process is ended at once.
    clock
        Clock of the process. A stopped clock starts again, so that everything can end in order.
    """

    def __init__(
        self, on_second: Callable[[], None] | None = None, clock: Clock | None = None
    ) -> None:
        self._event = asyncio.Event()
        self._on_second = on_second
        self._clock = clock
        self.signalled = False

    def listen(self) -> None:
        """Take SIGINT and SIGTERM."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signal)

    def set(self) -> None:
        """End the process in good order."""
        if isinstance(self._clock, Timeline):
            self._clock.let_go()
        self._event.set()

    async def wait_end(self) -> None:
        """Wait until the process should end."""
        await self._event.wait()

    async def when_input_ends(self) -> None:
        """End when standard input does."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.read(4096):
            pass
        self.set()

    def _signal(self) -> None:
        if not self.signalled:
            self.signalled = True
            self.set()
            return
        if self._on_second is not None:
            self._on_second()
        # A user who asks twice does not want to wait for anything.
        os._exit(EXIT_KILLED)


async def until_ended(
    work: Coroutine[Any, Any, None], ending: Ending, *, name: str, child: bool = False
) -> None:
    """Run work until it fails or the process should end; the work is cancelled then.

    Parameters
    ----------
    work
        The work; normally it runs for ever.
    ending
        Set when the process should end.
    name
        Name of the task.
    child
        Whether the end of standard input is an end too.

    Raises
    ------
    Exception
        Any exception of the work.
    """
    tasks = TaskOwner(on_failure=lambda _name, _error: None)
    try:
        working = tasks.spawn(work, name=name)
        ended = tasks.spawn(ending.wait_end(), name="wait for the end")
        if child:
            tasks.spawn(ending.when_input_ends(), name="wait for the parent")
        await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        await tasks.cancel_all()
