"""Asyncio from one place: sleeping, and owning tasks so that none is lost.

Only rooms that talk to the outside may use this (import contract). Under a virtual clock the
event loop itself jumps (see ``moorage_sandbox.testing``), so nothing here knows of tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import selectors
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from moorage.base.clock import NS_PER_SECOND, Clock

if TYPE_CHECKING:
    from moorage.base.timeline import Timeline

# The highest speed of time in a sandbox.
SPEED_MAX = 1000.0
# Seconds until a loop notices that its time was stopped or started; a guess: a person notices
# nothing.
_LOOK_SECONDS = 0.02
# Work after which other tasks have a turn (a guess: an answer to a call is handled in 0.1 ms).
_STRETCH_NS = 2_000_000

T = TypeVar("T")

_log = logging.getLogger(__name__)

OnFailure = Callable[[str, BaseException], None]


async def sleep(seconds: float) -> None:
    """Suspend the caller for at least this many seconds of loop time."""
    await asyncio.sleep(seconds)


def being_cancelled() -> bool:
    """Whether the running task is asked to end; a CancelledError may be that of another task."""
    own = asyncio.current_task()
    return own is None or own.cancelling() > 0


async def in_turns(items: Iterable[T], *, most: int) -> AsyncIterator[T]:
    """Yield items, and let the other tasks of the loop have a turn between.

    Parameters
    ----------
    most
        Items between two turns.
    """
    for number, item in enumerate(items, 1):
        yield item
        if not number % most:
            await sleep(0)


class Stretch:
    """A stretch of work on the loop, after which other tasks should have a turn.

    Waiting counts like work, so a stretch begins after each wait. In virtual time no work takes
    time, so a stretch without a wait is never over.

    Parameters
    ----------
    clock
        Measures the work.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_ns = 0

    def start_stretch(self) -> None:
        """Start to measure: other tasks have had a turn just now."""
        self._ends_ns = self._clock.monotonic_ns() + _STRETCH_NS

    @property
    def is_over(self) -> bool:
        """Whether other tasks should have a turn."""
        return self._clock.monotonic_ns() >= self._ends_ns


class Hold:
    """Keeps tasks back while another works, turn by turn, on what they would change."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._over.set()

    @property
    def is_closed(self) -> bool:
        """Whether tasks are kept back now."""
        return not self._over.is_set()

    @contextlib.contextmanager
    def keeping_back(self) -> Iterator[None]:
        """Keep tasks back until the context ends."""
        self._over.clear()
        try:
            yield
        finally:
            self._over.set()

    async def over(self) -> None:
        """Wait until nobody keeps tasks back."""
        await self._over.wait()


class Arrivals:
    """Calls, answers and news of threads that arrived for the running loop while a task works.

    They arrive at the file on which the loop waits (epoll, kqueue), which costs less than a
    microsecond to look at. Timers do not arrive there.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poll: select.poll | None = None

    def are_there(self) -> bool:
        """Whether something has arrived; True where the loop does not say so."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._poll = loop, _poll_of(loop)
        return self._poll is None or bool(self._poll.poll(0))


def _poll_of(loop: asyncio.AbstractEventLoop) -> select.poll | None:
    """Return a poll of the file on which a loop waits; None where there is none.

    Neither asyncio nor uvloop publishes that file, so a loop without it is a case of its own.
    """
    try:
        if hasattr(loop, "_get_backend_id"):  # uvloop
            number = loop._get_backend_id()  # noqa: SLF001
        else:
            number = loop._selector.fileno()  # type: ignore[attr-defined]  # noqa: SLF001
        poll = select.poll()
        poll.register(number, select.POLLIN)
    except (AttributeError, OSError, ValueError, TypeError):
        return None
    return poll


def real_seconds(seconds: float) -> float:
    """Return how long the running loop has to wait for real seconds to pass.

    Under a `ScaledLoop`, only the time limits of calls to other programs are real.
    """
    loop = asyncio.get_running_loop()
    return seconds * loop.speed if isinstance(loop, ScaledLoop) else seconds


async def real_sleep(seconds: float) -> None:
    """Suspend the caller for real seconds, even where the loop's time is faster or stands still."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ScaledLoop):
        await asyncio.sleep(seconds)
        return
    # The loop's timers follow its own time, so a thread of no other use waits.
    passed = asyncio.Event()
    timer = threading.Timer(seconds, _wake, (loop, passed))
    timer.daemon = True
    timer.start()
    try:
        await passed.wait()
    finally:
        timer.cancel()


def _wake(loop: asyncio.AbstractEventLoop, passed: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(passed.set)


class _ScaledSelector(selectors.DefaultSelector):
    """Waits in real time for the length that a scaled loop asks for in its own time."""

    speed = 1.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / self.speed)


class ScaledLoop(asyncio.SelectorEventLoop):
    """An event loop with faster time: every wait in the loop is shorter.

    Parameters
    ----------
    speed
        Seconds of this loop in one second of the machine.
    """

    # asyncio's own limits concern the network, so they stay real.
    _HANDSHAKE_SECONDS = 60.0
    _SHUTDOWN_SECONDS = 30.0

    def __init__(self, speed: float, selector: selectors.BaseSelector | None = None) -> None:
        self.speed = speed
        if selector is None:
            selector = _ScaledSelector()
            selector.speed = speed
        super().__init__(selector)

    def time(self) -> float:
        """Return the scaled time, seconds."""
        return super().time() * self.speed

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Connect, with real limits for TLS."""
        return await super().create_connection(*args, **self._limits(options))

    async def create_server(self, *args: Any, **options: Any) -> Any:
        """Listen, with real limits for TLS."""
        return await super().create_server(*args, **self._limits(options))

    def _limits(self, options: dict[str, Any]) -> dict[str, Any]:
        if not options.get("ssl"):
            return options
        limits = {
            "ssl_handshake_timeout": self._HANDSHAKE_SECONDS * self.speed,
            "ssl_shutdown_timeout": self._SHUTDOWN_SECONDS * self.speed,
        }
        return options | {key: options.get(key) or value for key, value in limits.items()}


class _PacedSelector(selectors.DefaultSelector):
    """Waits for moments of a changeable time, so it checks that time repeatedly."""

    timeline: Timeline

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        return super().select(min(self.timeline.real_seconds(timeout), _LOOK_SECONDS))


class PacedLoop(ScaledLoop):
    """An event loop with a time that can be stopped and stepped.

    Parameters
    ----------
    timeline
        The time. Real limits have the length needed at the highest speed.
    """

    def __init__(self, timeline: Timeline) -> None:
        selector = _PacedSelector()
        selector.timeline = timeline
        self._timeline = timeline
        self._begin_ns = timeline.now_ns()
        super().__init__(SPEED_MAX, selector)

    def time(self) -> float:
        """Return the time since the loop began, seconds of the timeline."""
        return (self._timeline.now_ns() - self._begin_ns) / NS_PER_SECOND


def paces_by_time() -> bool:
    """Whether work in the running loop may wait between steps; False where time may stand still."""
    return not isinstance(asyncio.get_running_loop(), PacedLoop)


class TaskOwner:
    """Owns background tasks: keeps them referenced, names them, ends them all.

    Parameters
    ----------
    on_failure
        Called with (task name, exception) when a task ends with an exception other than
        cancellation. The default logs it. A task never dies silently.
    """

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        # In order of start: a set would cancel in a different order in each run.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._on_failure = on_failure or _log_failure

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, coro: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        """Start a task owned by this object."""
        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._finished)
        return task

    async def cancel_all(self) -> None:
        """Cancel every task still running, oldest first, and wait until all have ended."""
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in tasks:
                self._tasks.pop(task, None)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task.get_name(), error)


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Run coroutines that never end by themselves, until cancelled.

    Raises
    ------
    Exception
        The exception of the first coroutine that failed; the others are cancelled.
    """
    tasks = TaskOwner(on_failure=lambda _name, _error: None)
    try:
        running = [tasks.spawn(work, name="together") for work in works or [_wait_for_ever()]]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            if task.done():
                task.result()
    finally:
        await tasks.cancel_all()


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


def _log_failure(name: str, error: BaseException) -> None:
    _log.error("task %s failed", name, exc_info=error)
