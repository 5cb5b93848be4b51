"""Keeps plugins from outside within their time; ends the process when a call cannot be stopped.

Two stages (docs/decisions/0006-plugins-from-outside.md):

1. A thread looks ten times a second at the call under way. When its budget is spent, it sends
   SIGURG to the main thread; the handler raises `BudgetExceededError` there, inside the plugin's
   code. The exception ends loops, sleeps and waits for a lock.
2. A hang inside a C extension runs no Python, and may even keep the thread from looking. So the
   kernel's own timer is set for every call. At its end comes SIGALRM, whose handler is written in
   C: it prints where the plugin hangs and ends the process, before its lease can mislead.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self, TypeVar

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.framework.containment import BudgetExceededError

_log = logging.getLogger(__name__)

T = TypeVar("T")

HANG_SECONDS: Final = 15.0
"""Time for which a call may exceed its budget; kube-scheduler's lease lasts as long."""

EXIT_HANGS: Final = 128 + signal.SIGALRM
"""The exit code, as a shell sees it, of a process that was ended because a plugin hung."""

# Ten looks a second: a budget of a second is kept to a tenth, at a negligible cost.
_LOOK_SECONDS: Final = 0.1
_DEPTH_MAX: Final = 20_000
"""Highest recursion limit of a plugin: 20 times Python's own, and left in milliseconds."""


class _Running:
    """The call under way."""

    __slots__ = ("depth_max", "is_late", "label", "started_ns")

    def __init__(self, label: str, started_ns: int) -> None:
        self.label = label
        self.started_ns = started_ns
        self.is_late = False
        self.depth_max = min(sys.getrecursionlimit(), _DEPTH_MAX)

    def say_late(self) -> None:
        """Note that the call's time is up."""
        self.is_late = True


class PluginWatch:
    """The budget of a scheduler process; a context, left when the scheduler has ended.

    The watch starts with the first call: a process without such plugins has neither thread nor
    signal handler. In any other thread than the main one nothing can be interrupted; there a call
    that took too long fails when it comes back.

    Parameters
    ----------
    budget_seconds
        Longest duration of one call.
    clock
        Measures it.
    hang_seconds
        How long after the budget the process is ended; None: never, for tests that share a process.
    """

    def __init__(
        self, budget_seconds: float, clock: Clock, *, hang_seconds: float | None = HANG_SECONDS
    ) -> None:
        self._budget_ns = round(budget_seconds * NS_PER_SECOND)
        self._budget_seconds = budget_seconds
        self._end_seconds = 0.0 if hang_seconds is None else budget_seconds + hang_seconds
        self._clock = clock
        self._running: _Running | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._main_ident = threading.main_thread().ident or 0
        self._handler_before: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching."""
        self._closing.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        signal.signal(signal.SIGURG, self._handler_before)
        if self._end_seconds:
            faulthandler.unregister(signal.SIGALRM)

    @property
    def label(self) -> str:
        """The plugin that is being called, and the extension point; empty for none."""
        running = self._running
        return "" if running is None else running.label

    def run(
        self, label: str, call: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> T:
        """Return the value of a call, or interrupt the call when its time is up.

        Raises
        ------
        BudgetExceededError
            The call's time was up.
        """
        if threading.get_ident() != self._main_ident:
            return self._afterwards(label, call, args, kwargs)
        if self._thread is None:
            self._start_thread()
        before, running = self._running, _Running(label, self._clock.monotonic_ns())
        try:
            # The inner `try` cleans up when the plugin is interrupted; the outer one when the
            # interruption comes while the inner one cleans up.
            try:
                self._running = running
                if self._end_seconds:
                    signal.setitimer(signal.ITIMER_REAL, self._end_seconds)
                answer = call(*args, **kwargs)
            finally:
                self._settle(before)
        except BudgetExceededError:
            self._settle(before)
            raise
        if running.is_late:  # the call ended just before, or the plugin swallowed the interruption
            raise self._exceeded(label)
        return answer

    def _settle(self, before: _Running | None) -> None:
        """Forget the call; an outer call (a plugin that asks what if) gets its full time again."""
        self._running = before
        if self._end_seconds:
            signal.setitimer(signal.ITIMER_REAL, 0.0 if before is None else self._end_seconds)

    def _afterwards(
        self, label: str, call: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> T:
        started_ns = self._clock.monotonic_ns()
        answer = call(*args, **kwargs)
        if self._clock.monotonic_ns() - started_ns > self._budget_ns:
            raise self._exceeded(label)
        return answer

    def _exceeded(self, label: str) -> BudgetExceededError:
        return BudgetExceededError(
            f"{label} took longer than {self._budget_seconds:g} s and was stopped "
            "(pluginBudgetSeconds)"
        )

    def _start_thread(self) -> None:
        self._handler_before = signal.signal(signal.SIGURG, self._interrupt)
        if self._end_seconds:
            # The stack is printed by a handler that needs no Python; then SIGALRM does what it
            # does by default, and ends the process.
            faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
        self._thread = threading.Thread(target=self._watch, name="plugin watch", daemon=True)
        self._thread.start()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise in the main thread, between two steps of the plugin, if its call is still late."""
        del number, frame
        running = self._running
        if running is not None and running.is_late:
            raise self._exceeded(running.label)

    def _watch(self) -> None:
        last: _Running | None = None
        while not self._closing.wait(_LOOK_SECONDS):
            running = self._running
            if running is None:
                continue
            if sys.getrecursionlimit() > running.depth_max:
                # Millions of nested calls take GiB, and longer to leave than a budget.
                sys.setrecursionlimit(running.depth_max)
            if self._clock.monotonic_ns() - running.started_ns <= self._budget_ns:
                continue
            if running.is_late and last is not running:
                last = running
                _log.error(
                    "%s was told to stop and goes on; %s",
                    running.label,
                    f"the process ends {self._end_seconds:g} s after it began"
                    if self._end_seconds
                    else "it is told again",
                )
            running.say_late()
            signal.pthread_kill(self._main_ident, signal.SIGURG)
