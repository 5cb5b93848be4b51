"""Who holds the event loop, as a thread sees it from outside."""

from __future__ import annotations

import logging
import threading

import pytest

from moorage.base import aio
from moorage.base.clock import SystemClock
from moorage.service.process.loop_watch import LoopWatch


def watched(caller: str, held_seconds: float = 0.05) -> LoopWatch:
    return LoopWatch(SystemClock(), lambda: caller, held_seconds=held_seconds, look_seconds=0.01)


class Told(logging.Handler):
    """Collects what the watch logs, and says when it is enough."""

    def __init__(self, enough: int) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.enough = threading.Event()
        self._enough = enough

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        if len(self.texts) >= self._enough:
            self.enough.set()


def hold_until(told: threading.Event) -> None:
    assert told.wait(20)


@pytest.mark.parametrize(
    ("caller", "beginning"),
    [
        pytest.param("Slow at Filter", "s by plugin Slow at Filter: wait (", id="a plugin"),
        pytest.param("", "s by wait (", id="code without a plugin"),
    ],
)
async def test_a_held_loop_is_reported_once_and_when_it_runs_again(
    caller: str, beginning: str
) -> None:
    once, twice = Told(1), Told(2)
    logger = logging.getLogger("moorage.service.process.loop_watch")
    for each in (once, twice):
        logger.addHandler(each)
    try:
        with watched(caller):
            hold_until(once.enough)
            while not twice.enough.is_set():
                await aio.sleep(0.01)
    finally:
        for each in (once, twice):
            logger.removeHandler(each)
    first, second = twice.texts[:2]
    assert first.startswith("the event loop has been held for 0.")
    assert beginning in first
    assert "hold_until" in first
    assert second == "the event loop runs again"


async def test_a_loop_that_runs_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    with watched("", held_seconds=30):
        for _ in range(20):
            await aio.sleep(0.01)
    assert caplog.text == ""
