"""One scheduler of a simulation, through all its lives."""

from __future__ import annotations

import asyncio

from moorage.base.clock import ManualClock
from moorage.service.scheduler import Scheduler
from moorage_lab.fault_sim.loop import Process, SkewedClock
from moorage_lab.fault_sim.network_faults import NetworkFaults


class Replica:
    """One scheduler, through all its lives.

    Parameters
    ----------
    name
        Name of the process in acts: ``scheduler-0``.

    Attributes
    ----------
    life
        Number of times that it was started.
    process, scheduler
        The life of now.
    started_ns
        When it was started, monotonic, nanoseconds.
    """

    def __init__(self, name: str, base: ManualClock, faults: NetworkFaults) -> None:
        self.name = name
        self.clock = SkewedClock(base)
        self.faults = faults
        self.life = 0
        self.started_ns = 0
        self.process = Process(name)
        self.scheduler: Scheduler | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def identity(self) -> str:
        """Name of this life."""
        return f"{self.name}.{self.life}"

    @property
    def runs(self) -> bool:
        """Whether this life is neither stopped nor killed."""
        return self.process.running and not self.process.dead

    @property
    def leading(self) -> bool:
        """Whether this life may write now."""
        elector = self.scheduler.elector if self.scheduler else None
        return elector is not None and not self.process.dead and elector.leading
