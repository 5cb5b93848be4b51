"""Moves waiting pods without an event: when backoff ends, and when a pod waited too long.

Three tasks of the scheduler, next to `pump`. The queue says which pods move, the ledger of
evictions which groups need not wait for victims any longer, and `backfill` which groups have waited
for long.
"""

from __future__ import annotations

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.service.attempts.pump import Pump
from moorage.service.core import Core
from moorage.service.groups.releases import release_groups
from moorage.state.queue import SchedulingQueue

_GROUPS_FLUSH_SECONDS = 1.0
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


async def flush_groups(core: Core, pump: Pump) -> None:
    """Try groups again that wait without an event, every second, until cancelled."""
    while True:
        await aio.sleep(_GROUPS_FLUSH_SECONDS)
        look_at_groups(core, pump)


def groups_need_look(core: Core, pump: Pump) -> bool:
    """Whether `look_at_groups` may have something to do in a second."""
    backfill = pump.backfill
    return core.evictions.groups_wait or (backfill is not None and backfill.needs_look)


def look_at_groups(core: Core, pump: Pump) -> None:
    """Try groups again that need not wait any longer: for victims, or for room to be held."""
    if pump.backfill is not None:
        pump.backfill.look()
    release_groups(core)
