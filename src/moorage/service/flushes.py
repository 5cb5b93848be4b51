"""Moves waiting pods without an event: when backoff ends, and when a pod waited too long.

Two tasks of the scheduler, beside `pump`. The queue says which pods move.
"""

from __future__ import annotations

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.state.queue import SchedulingQueue

_LEFTOVER_FLUSH_SECONDS = 30.0  # kubernetes v1.36 pkg/scheduler/backend/queue


async def flush_backoff(queue: SchedulingQueue, clock: Clock) -> None:
    """Release pods whose backoff is over, every second, until cancelled.

    Where backoff ends with a whole second of wall time, each look comes at a whole second. A look
    in between would only be late.
    """
    whole_seconds = queue.settings.pop_from_backoff
    while True:
        rest_ns = NS_PER_SECOND
        if whole_seconds:
            rest_ns -= clock.now_ns() % NS_PER_SECOND
        await aio.sleep(rest_ns / NS_PER_SECOND)
        queue.flush_backoff()


async def flush_leftover(queue: SchedulingQueue) -> None:
    """Retry pods that waited too long for an event, until cancelled."""
    while True:
        queue.flush_unschedulable_leftover()
        await aio.sleep(_LEFTOVER_FLUSH_SECONDS)
