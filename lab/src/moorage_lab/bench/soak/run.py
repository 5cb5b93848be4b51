"""Runs a soak with processes: an API server, the schedulers, and the load in this process.

The server is ``moorage up --no-scheduler``. Each scheduler is a ``moorage run`` with its own
configuration and lease. At the end ``/metrics`` of each scheduler gives the answers to its calls,
and SIGUSR2 makes each scheduler compare its cache with the API.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, TransportError
from moorage.base.rng import Streams
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from moorage.client.writes import Client
from moorage_lab.bench.processes import Harness, free_port, open_harness
from moorage_lab.bench.soak.load import SoakLoad
from moorage_lab.bench.soak.plan import SchedulerEnd, SoakPlan, SoakReport, soak_config

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_COMPARISONS = 10  # a change on its way causes a short difference; a lasting difference is a fault
_CONFLICTS = re.compile(r'^rest_client_requests_total\{[^}]*code="409"[^}]*\} ([0-9.e+]+)', re.M)


async def measure_soak(
    plan: SoakPlan,
    *,
    clock: Clock,
    streams: Streams,
    progress: Callable[[str], None] = lambda line: None,
) -> SoakReport:
    """Start the processes, run the load, check the result, end the processes.

    Parameters
    ----------
    plan
        The load on the cluster.
    clock, streams
        Time and randomness.
    progress
        Called with a message at every step.

    Raises
    ------
    MoorageError
        A process ended early or did not start.
    """
    async with open_harness(clock) as harness:
        schedulers = [
            _Scheduler(name, harness, seed=streams.seed + number)
            for number, name in enumerate(plan.schedulers)
        ]
        transport = harness.open_transport(user_agent="moorage-soak")
        client = Client(transport, rng=streams.stream("soak/client"))
        load = SoakLoad(client, plan, clock=clock, streams=streams, progress=progress)
        try:
            await load.start()
            for scheduler in schedulers:
                await scheduler.start()
            progress(f"{len(schedulers)} schedulers work")
            report = await load.run()
            # No object may change while the schedulers compare.
            await load.stop()
            ends = [await scheduler.end_process() for scheduler in schedulers]
            return msgspec.structs.replace(report, schedulers=tuple(ends))
        finally:
            await load.stop()


class _Scheduler:
    """One ``moorage run`` process, with its metrics and cache comparison."""

    def __init__(self, name: str, harness: Harness, *, seed: int) -> None:
        self.name = name
        self._config = harness.folder / f"{name}.yaml"
        # The name tells this scheduler from another one that answers on its port.
        self._leads = f'\nleader_election_master_status{{name="{name}"}} 1'
        self._port = free_port()
        flags = ["--config", str(self._config)]
        flags += ["--seed", str(seed), "--secure-port", str(self._port)]
        flags += ["--bind-address", "127.0.0.1"]
        flags += ["--authorization-always-allow-paths", "/healthz,/readyz,/metrics"]
        self.child = harness.scheduler(*flags, name=name)

    async def start(self) -> None:
        """Start the scheduler, and wait until it holds its lease and schedules."""
        self._config.write_text(soak_config(self.name), encoding="utf-8")
        await self.child.start()
        waited = 0.0
        while waited < _START_SECONDS:
            self.child.raise_if_ended()
            if self._leads in await self._read_path("/metrics"):
                return
            await aio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        raise MoorageError(f"{self.name} did not begin to schedule in {_START_SECONDS:.0f} s")

    async def end_process(self) -> SchedulerEnd:
        """Make the scheduler compare its cache, and read how many conflicts the server answered."""
        self.child.raise_if_ended()
        agrees = False
        for _ in range(_COMPARISONS):
            agrees = await self._compares()
            if agrees:
                break
        conflicts = sum(
            float(count) for count in _CONFLICTS.findall(await self._read_path("/metrics"))
        )
        return SchedulerEnd(name=self.name, conflicts=int(conflicts), agrees=agrees)

    async def _compares(self) -> bool:
        known = len(self.child.output())
        self.child.signal(signal.SIGUSR2)
        for _ in range(50):
            await aio.sleep(_LOOK_SECONDS)
            said = self.child.output()[known:]
            if "cache and API " in said:
                return "cache and API agree" in said
        return False

    async def _read_path(self, path: str) -> str:
        access = ServerAccess(
            f"https://127.0.0.1:{self._port}", FixedCredentials(), insecure_skip_tls_verify=True
        )
        transport = HttpTransport(access)
        try:
            answer = await transport.request(Call("GET", path, accept="text/plain"))
        except TransportError:
            return ""
        finally:
            await transport.close()
        return answer.body.decode("utf-8", "replace")
