"""One measurement of the start: a scheduler, the null server, and questions about its health."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, TransportError
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.transport import Call, Transport
from moorage_lab.bench.path.null_server import Report, null_server_program
from moorage_lab.bench.processes import Child, free_port, open_harness
from moorage_lab.bench.start.result import StartPlan, StartResult
from moorage_lab.bench.timing import Stopwatch

_LOOK_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 600.0


async def measure_start(
    plan: StartPlan, *, seed: int, clock: Clock, progress: Callable[[str], None]
) -> StartResult:
    """Start the null server and then a scheduler; measure until the waiting pod is bound.

    Raises
    ------
    MoorageError
        A process ended, the scheduler stopped answering, or no pod was bound for ten minutes.
    """
    port = free_port()
    null_server = partial(null_server_program, plan.standing)
    async with open_harness(clock, name="null server", server_program=null_server) as harness:
        progress("the null server answers")
        flags = ("--seed", str(seed), "--bind-address", "127.0.0.1", "--secure-port", str(port))
        own = ServerAccess(
            f"https://127.0.0.1:{port}", FixedCredentials(), insecure_skip_tls_verify=True
        )
        control, health = harness.open_transport(), harness.open_transport(own)
        return await _Run(plan, harness.scheduler(*flags), control, health, clock).measure()


class Health:
    """Asks for the health of a scheduler again and again, and keeps the longest wait.

    Parameters
    ----------
    transport
        Leads to the scheduler.
    clock
        Measures the waits.

    Attributes
    ----------
    answers
        Number of answers.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._longest = 0.0
        self._probe: Stopwatch | None = None
        self.answers = 0

    @property
    def longest_seconds(self) -> float:
        """The longest wait, that for an answer which has not come yet included."""
        waiting = 0.0
        if self.answers and self._probe is not None:
            waiting = self._probe.seconds
        return max(self._longest, waiting)

    async def ask(self) -> None:
        """Ask until cancelled; refused connections before the first answer do not count.

        Raises
        ------
        TransportError
            The scheduler has answered before, and does not answer any more.
        """
        while True:
            probe = self._probe = Stopwatch(self._clock.monotonic_ns)
            try:
                await self._transport.request(Call("GET", "/livez", accept="text/plain"))
            except TransportError:
                if self.answers:
                    raise
            else:
                self._longest = max(self._longest, probe.seconds)
                self.answers += 1
            self._probe = None
            await aio.sleep(_LOOK_SECONDS)


class _Run:
    def __init__(
        self,
        plan: StartPlan,
        scheduler: Child,
        control: Transport,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._scheduler = scheduler
        self._control = control
        self._health = Health(transport, clock)
        self._clock = clock

    async def measure(self) -> StartResult:
        tasks = aio.TaskOwner()
        watch = Stopwatch(self._clock.monotonic_ns)
        await self._scheduler.start()
        asking = tasks.spawn(self._health.ask(), name="health")
        try:
            while not await self._bindings():
                self._scheduler.raise_if_ended()
                if asking.done():
                    asking.result()
                if watch.seconds > _PATIENCE_SECONDS:
                    raise MoorageError(f"no pod was bound for {_PATIENCE_SECONDS:.0f} s")
                await aio.sleep(_LOOK_SECONDS)
            return StartResult(
                plan=self._plan,
                seconds=watch.seconds,
                cpu_seconds=self._scheduler.processor_seconds(),
                memory_mib=self._scheduler.peak_memory_mib(),
                health_seconds_max=self._health.longest_seconds,
                health_checks=self._health.answers,
            )
        finally:
            await tasks.cancel_all()

    async def _bindings(self) -> int:
        answer = await self._control.request(Call("GET", "/null/report"))
        return msgspec.json.decode(answer.body, type=Report).bindings
