"""Stalls of the event loop: how late timers run because other work holds the loop.

Everything runs on one loop: the deciding, watches, the lease, health checks. A long step of one
delays all others, and so does a collection of garbage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock

_EVERY_SECONDS: Final = 0.02
"""A longer stall is never missed, and 50 looks a second cost 0.2 % of a processor."""


async def watch_loop(
    clock: Clock, observe: Callable[[float], None], *, every_seconds: float = _EVERY_SECONDS
) -> None:
    """Look again and again how late a timer is, until cancelled.

    Parameters
    ----------
    clock
        Real time: in virtual time no timer is late.
    observe
        Called with the lateness of each timer, seconds.
    every_seconds
        Time between two looks, seconds; a shorter stall may be missed.
    """
    while True:
        due_ns = clock.monotonic_ns() + round(every_seconds * NS_PER_SECOND)
        await aio.sleep(every_seconds)
        observe(max(0, clock.monotonic_ns() - due_ns) / NS_PER_SECOND)
