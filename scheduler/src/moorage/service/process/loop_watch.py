"""Says who holds the event loop: a thread that looks from outside while the loop cannot.

A loop that is held answers no health check and writes no log line itself. `loop_stalls` measures
short stalls afterwards; this is for those that a person notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from moorage.base.clock import NS_PER_SECOND, Clock

_log = logging.getLogger(__name__)

HELD_SECONDS: Final = 3.0
"""Time after which a held loop is reported; kubelet's probes fail after a second or more."""
_LOOK_SECONDS: Final = 0.5
_FRAMES: Final = 3


class LoopWatch:
    """Reports a loop that gives no sign; a context, entered in the thread of the loop.

    Parameters
    ----------
    clock
        Real time.
    caller
        Returns the plugin that is being called, and the extension point; empty for none.
    held_seconds, look_seconds
        Time without a sign after which the loop is reported, and time between two looks.
    """

    def __init__(
        self,
        clock: Clock,
        caller: Callable[[], str],
        *,
        held_seconds: float = HELD_SECONDS,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        self._clock = clock
        self._caller = caller
        self._held_ns = round(held_seconds * NS_PER_SECOND)
        self._look_seconds = look_seconds
        self._sign_ns = 0
        self._closing = threading.Event()
        self._ident = 0
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start to watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._ident = threading.get_ident()
        self._sign()
        self._thread = threading.Thread(target=self._watch, name="loop watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _sign(self) -> None:
        """Note that the loop runs; called in the loop."""
        self._sign_ns = self._clock.monotonic_ns()

    def _watch(self) -> None:
        reported_ns, look_ns = 0, self._clock.monotonic_ns()
        while not self._closing.wait(self._look_seconds):
            sign_ns, before_ns, look_ns = self._sign_ns, look_ns, self._clock.monotonic_ns()
            if reported_ns and sign_ns != reported_ns:
                reported_ns = 0
                _log.warning("the event loop runs again")
            # A process that was stopped has not looked either.
            looked = look_ns - before_ns < 2 * self._look_seconds * NS_PER_SECOND
            if looked and look_ns - sign_ns >= self._held_ns and not reported_ns:
                reported_ns = sign_ns
                seconds = (look_ns - sign_ns) / NS_PER_SECOND
                _log.error("the event loop has been held for %.1f s by %s", seconds, self._holder())
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(self._sign)

    def _holder(self) -> str:
        """Return who holds the loop: a plugin by its name, other code by its place."""
        plugin = self._caller()
        frame = sys._current_frames().get(self._ident)  # noqa: SLF001 - its documented purpose
        places = reversed(traceback.extract_stack(frame, limit=_FRAMES) if frame else [])
        code = ", called by ".join(
            f"{each.name} ({each.filename}:{each.lineno})" for each in places
        )
        return f"plugin {plugin}: {code}" if plugin else code or "code that is unknown"
