"""Runs a workload through an API server with a scheduler that asks an extender about every pod.

The extender is ``moorage example-extender``, in its own process as a real extender would be. It
filters and prioritizes. Every node is sent to the extender whole and returned, unless the run sends
names only.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from moorage_lab.bench.configurations import with_extender
from moorage_lab.bench.processes import Child, open_harness
from moorage_lab.bench.report import Result
from moorage_lab.bench.server_run import ServerRun
from moorage_lab.bench.workload import Workload

_START_SECONDS = 30.0
_LOOK_SECONDS = 0.05
_MARK = "urlPrefix: "


class ExtenderStats(msgspec.Struct, frozen=True):
    """The counts of the extender.

    Parameters
    ----------
    calls
        Number of calls by verb.
    connections
        Number of connections that carried the calls.
    """

    calls: dict[str, int]
    connections: int


class ExtenderRun:
    """One run of one workload with an extender.

    Parameters
    ----------
    workload
        The operations.
    names_only
        Whether the extender receives names instead of whole nodes.
    clock, streams
        Time for measuring; seed of the scheduler's ties.
    progress
        Called with a message at every step.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        names_only: bool,
        clock: Clock,
        streams: Streams,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._workload = workload
        self._names_only = names_only
        self._clock = clock
        self._streams = streams
        self._progress = progress

    async def run(self) -> tuple[Result, ExtenderStats]:
        """Start the processes, place the pods, end the processes.

        Raises
        ------
        MoorageError
            A process ended early, or no pod got a node for a minute.
        """
        async with open_harness(self._clock) as harness:
            flags = ("--port", "0", "--kubeconfig", str(harness.kubeconfig))
            extender = harness.child("extender", ("example-extender", *flags))
            await extender.start()
            url = await _url_of(extender)
            config = harness.folder / "scheduler.yaml"
            text = with_extender(url, names_only=self._names_only)
            config.write_text(text, encoding="utf-8")
            run = ServerRun(
                self._workload, clock=self._clock, streams=self._streams, progress=self._progress
            )
            result = await run.run_in(harness, config=config)
            return result, await _stats_of(url)


async def _url_of(extender: Child) -> str:
    waited = 0.0
    while waited < _START_SECONDS:
        extender.raise_if_ended()
        for line in extender.output().splitlines():
            if line.startswith(_MARK):
                return line.removeprefix(_MARK)
        await aio.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS
    raise MoorageError(f"the extender did not start within {_START_SECONDS:.0f} s")


async def _stats_of(url: str) -> ExtenderStats:
    transport = HttpTransport(ServerAccess(url, FixedCredentials()))
    try:
        answer = await transport.request(Call("GET", "/stats"))
    finally:
        await transport.close()
    return msgspec.json.decode(answer.body, type=ExtenderStats)
