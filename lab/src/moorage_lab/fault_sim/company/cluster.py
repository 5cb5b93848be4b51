"""The cluster of a world: server, node agents, controllers and one scheduler, on a virtual loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from moorage.base.clock import Clock
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage_lab.fault_sim.company.setups import configuration
from moorage_lab.fault_sim.company.world import CompanyWorld
from moorage_sandbox.cluster.assembly import in_process
from moorage_sandbox.cluster.in_process import Handling
from moorage_sandbox.controllers.cluster import ALL
from moorage_sandbox.testing.virtual_cluster import VirtualCluster

_READS = frozenset({"GET", "HEAD"})
# No world has so many pods. A storm of evictions is seen by then, and could last for minutes.
_DELETIONS_MOST = 200


class WriteCall(msgspec.Struct, frozen=True, kw_only=True):
    """A write that a program sent.

    Parameters
    ----------
    at
        When its answer came, seconds since the start.
    version
        Version of the server by then.
    program
        ``scheduler``, ``controllers``, ``nodes`` or ``user``.
    method, path, status
        As in HTTP.
    """

    at: float
    version: int
    program: str
    method: str
    path: str
    status: int


_OnWrite = Callable[[str, Call, Answer], None]


class _NotedTransport:
    """Carries the calls of one program, and notes its writes."""

    def __init__(self, inner: Transport, program: str, on_write: _OnWrite) -> None:
        self._inner = inner
        self._program = program
        self._on_write = on_write

    async def request(self, call: Call) -> Answer:
        """Send a call and return its answer."""
        answer = await self._inner.request(call)
        if call.method not in _READS:
            self._on_write(self._program, call, answer)
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Refuse further calls."""
        await self._inner.close()


class CompanyCluster(VirtualCluster):
    """An asynchronous context in which the programs of a world run.

    Parameters
    ----------
    world
        Nodes, configuration and seed.
    clock
        Time of the loop.

    Attributes
    ----------
    writes
        Every write that a program sent, in order.
    storm
        Set when the scheduler has deleted more pods than a world has.
    """

    def __init__(self, world: CompanyWorld, clock: Clock) -> None:
        self.writes: list[WriteCall] = []
        self.storm = asyncio.Event()
        self._deletions = 0
        super().__init__(
            clock,
            nodes=world.nodes,
            config=configuration(world.setup),
            seed=world.seed,
            controllers=ALL,
            connect=self._connect,
        )

    def start_task(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Run a task until the cluster ends."""
        self.parts.spawn(work, name=name)

    @property
    def failures(self) -> list[str]:
        """The tasks that failed, and how."""
        return [f"{type(error).__name__}: {error}" for error in self.parts.failures]

    def _connect(self, server: Handling, program: str) -> Transport:
        return _NotedTransport(in_process(server, program), program, self._note_write)

    def _note_write(self, program: str, call: Call, answer: Answer) -> None:
        write = WriteCall(
            at=self.seconds,
            version=self.server.store.version,
            program=program,
            method=call.method,
            path=call.path,
            status=answer.status,
        )
        self.writes.append(write)
        self._deletions += program == "scheduler" and call.method == "DELETE"
        if self._deletions >= _DELETIONS_MOST:
            self.storm.set()
