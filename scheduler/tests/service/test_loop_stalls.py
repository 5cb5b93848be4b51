"""Stalls of the event loop, told by how late timers run."""

from __future__ import annotations

import asyncio

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.observe.series import Histogram
from moorage.service.process.loop_stalls import watch_loop


async def test_a_timer_that_is_late_tells_of_a_stall(monkeypatch: pytest.MonkeyPatch):
    clock, late = ManualClock(), [0.0, 0.0007, 0.009, 1.5]

    async def sleep(seconds: float) -> None:
        if not late:
            raise asyncio.CancelledError
        clock.advance_ns(round((seconds + late.pop(0)) * 1e9))

    monkeypatch.setattr(aio, "sleep", sleep)
    stalls = Histogram((0.001, 0.008, 0.016, 1.024))
    with pytest.raises(asyncio.CancelledError):
        await watch_loop(clock, stalls.observe)
    assert stalls.counts == [2, 0, 1, 0, 1]
    assert stalls.total == pytest.approx(1.5097)
