"""The clusters of scenarios, with real sockets, TLS and HTTP between their parts.

The same scenarios are told twice: in virtual time, where "within two seconds" means just that, and
over HTTPS, where time runs 30 times faster and whoever waits is given minutes of it, so that a
busy machine fails no scenario.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from moorage.base import aio
from moorage.base.aio import ScaledLoop
from moorage.base.certificates import Authority, server_context
from moorage.base.clock import Clock, ManualClock, ScaledClock, SystemClock
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.own import LoadedConfiguration
from moorage.config.types import LeaderElection
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.cluster.in_process import Handling
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

SPEED = 30.0
_PATIENCE_SECONDS = 900.0  # half a real minute
_TOKEN = "scenario"
_LAST_TURNS = 3


T = TypeVar("T")


class _Later:
    """A transport that is connected once it is known where the server listens."""

    inner: HttpTransport

    async def request(self, call: Call) -> Answer:
        return await self.inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


class OverHttps(VirtualCluster):
    """A cluster whose scheduler, agents, controllers and test talk to its server over HTTPS.

    Its scheduler holds no lease: a third of a second in which a busy machine does nothing is
    longer here than a leader may stay silent.
    """

    def __init__(
        self, clock: Clock, *, config: LoadedConfiguration | None = None, **settings: Any
    ) -> None:
        self._transports: list[_Later] = []
        self._access: ServerAccess | None = None
        config = _without_lease(config or LoadedConfiguration())
        super().__init__(clock, config=config, connect=self._connect, **settings)

    def _connect(self, _server: Handling, _program: str) -> Transport:
        later = _Later()
        if self._access is not None:
            later.inner = HttpTransport(self._access)
        self._transports.append(later)
        return later

    async def __aenter__(self) -> Self:
        authority = Authority(SystemClock())
        tls = server_context(authority.server_pair(), authority.certificate)
        admin = User("kubernetes-admin", ("system:masters",))
        self._http = HttpServer(self.server, Authenticator({_TOKEN: admin}), tls)
        url = f"https://127.0.0.1:{await self._http.start()}"
        credentials = FixedCredentials(Credential(headers=(bearer(_TOKEN),)))
        self._access = ServerAccess(url, credentials, ca_pem=authority.certificate)
        for each in self._transports:
            each.inner = HttpTransport(self._access)
        return await super().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            for each in self._transports:
                await each.close()
            await self._http.stop()
            await _end_connections()

    async def until(self, reached: Callable[[], bool], *, seconds: float = 0.0) -> None:
        """Wait until something is so, for as long as a busy machine may need."""
        await super().until(reached, seconds=max(seconds, _PATIENCE_SECONDS))


async def _end_connections() -> None:
    """End every connection of the loop: the goodbye of TLS waits for the other end."""
    loop = asyncio.get_running_loop()
    for each in list(vars(loop)["_transports"].values()):  # asyncio tells of them nowhere else
        each.abort()
    for _ in range(_LAST_TURNS):  # what ends a connection is called soon, and closes its socket
        await aio.sleep(0)


def _without_lease(config: LoadedConfiguration) -> LoadedConfiguration:
    alone = LeaderElection(leader_elect=False)
    scheduler = msgspec.structs.replace(config.scheduler, leader_election=alone)
    return msgspec.structs.replace(config, scheduler=scheduler)


def run_scaled(main: Callable[[Clock], Coroutine[Any, Any, T]], *, speed: float = SPEED) -> T:
    """Run a scenario in a loop whose time, and whose clock, run so many times faster."""
    clock = ScaledClock(speed, SystemClock().now_ns())
    with asyncio.Runner(loop_factory=lambda: ScaledLoop(speed)) as runner:
        return runner.run(main(clock))


def run_scenario(main: Callable[[Clock], Coroutine[Any, Any, T]], *, https: bool) -> T:
    """Run a scenario in the time that goes with where it is told."""
    if https:
        return run_scaled(main)
    clock = ManualClock()
    return run_virtual(main(clock), clock)
