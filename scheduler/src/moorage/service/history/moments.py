"""Keeps numbers of every ten seconds: what waits, what was decided, how full the nodes are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock, rfc3339_micro
from moorage.service.core import Core
from moorage.service.history.extended_use import ExtendedUse
from moorage.service.process.facts import Facts
from moorage.snapshot.snapshot import Snapshot

EVERY_SECONDS: Final = 10.0
MOMENTS_MOST: Final = 360
"""An hour."""
RESOURCES: Final = ("cpu", "memory")
"""The resources that every node has."""


class Fill(msgspec.Struct, frozen=True, rename="camel"):
    """What all nodes offer of a resource, and what pods request of it.

    Parameters
    ----------
    requested, allocatable
        cpu in millicores, memory in bytes, extended resources in units: a share of a GPU is a part
        of a unit.
    """

    requested: float
    allocatable: int


class Moment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The scheduler at one moment.

    Parameters
    ----------
    time
        The moment, RFC 3339 with microseconds.
    active, backoff, unschedulable, gated
        The pods in each sub-queue; active counts those whose attempt is under way.
    bound, failed, evicted
        Since the scheduler started: pods bound, attempts without a binding, and victims that
        preemption chose. The difference of two moments is what happened between them.
    nodes
        The number of nodes.
    fills
        How full the nodes are, by resource: cpu, memory, and the extended resources that nodes
        offer.
    """

    time: str
    active: int
    backoff: int
    unschedulable: int
    gated: int
    bound: int
    failed: int
    evicted: int
    nodes: int
    fills: dict[str, Fill]


class History:
    """The moments of the last hour.

    Parameters
    ----------
    core, facts
        What is looked at; nothing of it is changed.
    clock
        The time of the cluster.
    """

    def __init__(self, core: Core, facts: Facts, clock: Clock) -> None:
        self._core = core
        self._facts = facts
        self._clock = clock
        self._extended = ExtendedUse(core)
        self._moments: deque[Moment] = deque(maxlen=MOMENTS_MOST)

    async def run(self) -> None:
        """Look every ten seconds, until cancelled."""
        while True:
            self._moments.append(self.now())
            await aio.sleep(EVERY_SECONDS)

    def moments(self) -> Iterator[Moment]:
        """Yield the moments that are kept, the oldest first, and the present one."""
        yield from self._moments
        yield self.now()

    def now(self) -> Moment:
        """Return the scheduler as it is now."""
        core, facts = self._core, self._facts
        queue = core.queue.counts()
        return Moment(
            time=rfc3339_micro(self._clock.now_ns()),
            active=queue.active + queue.in_flight,
            backoff=queue.backoff,
            unschedulable=queue.unschedulable,
            gated=queue.gated,
            bound=facts.bound,
            failed=facts.attempts.failures.total(),
            evicted=int(facts.attempts.victims.total),
            nodes=core.snapshot.num_nodes,
            fills={**_fills(core.snapshot), **self._extended_fills()},
        )

    def _extended_fills(self) -> dict[str, Fill]:
        return {
            name: Fill(requested=round(taken, 3), allocatable=offered)
            for name, taken, offered in self._extended.amounts()
        }


def _fills(snapshot: Snapshot) -> dict[str, Fill]:
    return {
        each: Fill(
            requested=int(snapshot.requested(each).sum()),
            allocatable=int(snapshot.allocatable(each).sum()),
        )
        for each in RESOURCES
    }
