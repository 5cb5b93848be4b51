"""The event loop of a simulation: virtual time, and processes that can be stopped and killed.

A task belongs to the process in whose context it was started. The callbacks of a stopped process
wait until it goes on, as after SIGSTOP and SIGCONT. The callbacks of a killed process never run
again, not even ``finally`` blocks, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, Unpack

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage_sandbox.testing.virtual_loop import VirtualLoop

T = TypeVar("T")
ArgsT = TypeVarTuple("ArgsT")


class Process:
    """One program of the cluster.

    Parameters
    ----------
    name
        The name in the trace.

    Attributes
    ----------
    running, dead
        False while the process is stopped; True once it was killed.
    steps
        Number of its callbacks that have run. A task runs in one callback from one await to the
        next, so between two steps is every place where a process can be interrupted.
    slept
        Time for which its timers have stood still in sum, seconds.
    on_step
        Told of the callback that a step ran, before `steps` counts it; None for nobody.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = True
        self.dead = False
        self.steps = 0
        self.slept = 0.0
        self._asleep_since: float | None = None
        self.on_step: Callable[[Callable[..., object]], None] | None = None
        self._waiting: list[_Callback] = []
        self._due: list[tuple[int, Callable[[], object]]] = []
        self._context = contextvars.copy_context()
        self._context.run(_CURRENT.set, self)

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function in this process: the tasks that it starts belong to the process."""
        return self._context.run(function, *args)

    def after_steps(self, steps: int, act: Callable[[], object]) -> None:
        """Call a function, of no process, once so many more steps have run."""
        if steps:
            self._due.append((self.steps + steps, act))
        else:
            contextvars.Context().run(act)

    def forget_due(self) -> None:
        """Do nothing of what is still due after some steps, and tell nobody of further ones."""
        self._due.clear()
        self.on_step = None

    def step(self) -> None:
        """Count a step that has run, and do what is due after it."""
        self.steps += 1
        if self._due:
            due = [act for at, act in self._due if at <= self.steps]
            self._due = [each for each in self._due if each[0] > self.steps]
            for act in due:
                contextvars.Context().run(act)

    def stop(self, *, asleep: bool = False) -> None:
        """Hold every callback back from now on; the timers of a process asleep stand still."""
        self.running = False
        if asleep:
            self._asleep_since = asyncio.get_running_loop().time()

    def go_on(self) -> None:
        """Run what was held back, in its order, then everything else."""
        self.running = True
        waiting, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        if self._asleep_since is not None:
            self.slept += loop.time() - self._asleep_since
            self._asleep_since = None
        for each in waiting:
            loop.call_soon(each.again, context=each.context)

    def kill(self) -> None:
        """Run nothing of this process again."""
        self.dead = True
        self.forget_due()

    def revive(self) -> None:
        """Let a killed process run to its end, so that nothing is left when a simulation ends."""
        self.dead = False
        self.go_on()

    def hold(self, callback: _Callback) -> None:
        """Keep a callback that came due while the process did not run."""
        self._waiting.append(callback)


# How long a function in a thread takes: a write to a disk, a guess.
_THREAD_SECONDS = 0.0005

# Longer than a lease lasts: both clocks were read anew since.
_LATELY_NS = 30 * NS_PER_SECOND

_CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class _Callback:
    """A callback that runs when its process does.

    A timer whose process was asleep since it was set comes due as much later.
    """

    __slots__ = ("args", "context", "due", "function", "handle", "process", "set_again", "slept")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context,
        process: Process,
    ) -> None:
        self.function = function
        self.args = args
        self.context = context
        self.process = process
        self.handle: asyncio.Handle | None = None
        self.due = 0.0
        self.slept = process.slept
        self.set_again: Callable[[float], object] | None = None

    def __call__(self) -> None:
        if self.process.dead or not self.process.running:
            self.process.hold(self)
        elif self.set_again is not None and self.process.slept > self.slept:
            self.due += self.process.slept - self.slept
            self.slept = self.process.slept
            self.set_again(self.due)
        else:
            self.function(*self.args)
            if self.process.on_step is not None:
                self.process.on_step(self.function)
            self.process.step()

    def again(self) -> None:
        """Run after having been held back, unless it was cancelled meanwhile."""
        if self.handle is None or not self.handle.cancelled():
            self()


class SimLoop(VirtualLoop):
    """A virtual loop whose callbacks belong to processes."""

    def call_soon(
        self,
        callback: Callable[[Unpack[ArgsT]], object],
        *args: *ArgsT,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Run a callback in the next round, if its process runs then."""
        of = _process(context)
        if of is None or isinstance(callback, _Callback):
            return super().call_soon(callback, *args, context=context)
        context = context or contextvars.copy_context()
        process_callback = _Callback(callback, args, context, of)
        process_callback.handle = super().call_soon(process_callback, context=context)
        return process_callback.handle

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[ArgsT]], T],
        *args: *ArgsT,
    ) -> asyncio.Future[T]:
        """Run the function of a thread in one step, a moment later: so its order is of the seed."""
        del executor
        outcome: asyncio.Future[T] = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except BaseException as problem:
                if not outcome.cancelled():
                    outcome.set_exception(problem)
            else:
                if not outcome.cancelled():
                    outcome.set_result(result)

        self.call_later(_THREAD_SECONDS, run)
        return outcome

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[ArgsT]], object],
        *args: *ArgsT,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback at a moment, or when its process runs again."""
        of = _process(context)
        if of is None:
            return super().call_at(when, callback, *args, context=context)
        context = context or contextvars.copy_context()
        process_callback = _Callback(callback, args, context, of)
        timer = super().call_at(when, process_callback, context=context)
        process_callback.handle, process_callback.due = timer, when
        # The caller may still cancel the timer that it knows.
        process_callback.set_again = partial(
            super().call_at, callback=process_callback.again, context=context
        )
        return timer


def _process(context: contextvars.Context | None) -> Process | None:
    if context is None:
        return _CURRENT.get()
    found: Process | None = context.get(_CURRENT)
    return found


class SkewedClock:
    """The clock of one process, whose time of day may run ahead of the others.

    Parameters
    ----------
    base
        The clock of the loop.
    """

    def __init__(self, base: ManualClock) -> None:
        self._base = base
        self.ahead_ns = 0
        """How far the wall clock is ahead, nanoseconds; negative for behind."""
        self._slept_ns = 0
        self._asleep_since_ns: int | None = None
        # When the process woke, and when its wall clock was last set back.
        self._woke_ns = self._set_back_ns = -(10**18)

    def now_ns(self) -> int:
        """Wall-clock time as this process reads it, nanoseconds since the Unix epoch."""
        return self._base.now_ns() + self.ahead_ns

    def monotonic_ns(self) -> int:
        """Time since the start without that asleep, nanoseconds."""
        since_ns = self._asleep_since_ns
        return (self._base.monotonic_ns() if since_ns is None else since_ns) - self._slept_ns

    def jump(self, seconds: float) -> bool:
        """Set the wall clock ahead, or back; return whether that was done.

        Of a process that slept lately it is not set back: no clock would tell how long that was.
        """
        now_ns = self._base.monotonic_ns()
        if seconds < 0:
            if self._asleep_since_ns is not None or now_ns - self._woke_ns < _LATELY_NS:
                return False
            self._set_back_ns = now_ns
        self.ahead_ns += round(seconds * NS_PER_SECOND)
        return True

    def sleep(self) -> bool:
        """Let the monotonic clock stand still until `wake`; return whether it does.

        It does not where the wall clock was set back lately.
        """
        now_ns = self._base.monotonic_ns()
        if now_ns - self._set_back_ns < _LATELY_NS:
            return False
        self._asleep_since_ns = now_ns
        return True

    def wake(self) -> None:
        """Let the monotonic clock go on, if it stands still."""
        if self._asleep_since_ns is not None:
            self._woke_ns = self._base.monotonic_ns()
            self._slept_ns += self._woke_ns - self._asleep_since_ns
            self._asleep_since_ns = None


def run_simulated(main: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """Run a coroutine to its end in virtual time, with processes.

    Raises
    ------
    StuckError
        The coroutine waits, but nothing can wake it.
    """
    with asyncio.Runner(loop_factory=lambda: SimLoop(clock)) as runner:
        return runner.run(main)
