"""How long callbacks hold the event loop, in processor time of the loop's thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Holds:
    """The longest callback, seconds of processor time, and its description."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.callback = ""

    def clear(self) -> None:
        """Forget all callbacks so far."""
        self.longest, self.callback = 0.0, ""


@contextmanager
def measured_holds() -> Iterator[Holds]:
    """Measure every callback of the loop within the context.

    Processor time of one thread does not count what other programs do, and not how long the thread
    waits for the interpreter.
    """
    holds, run = Holds(), asyncio.events.Handle._run

    def timed(handle: Any) -> None:
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began
        if took > holds.longest:
            holds.longest, holds.callback = took, repr(handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.events.Handle, "_run", timed)
        yield holds
