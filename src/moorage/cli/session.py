"""The session of one command with an API server: find the server, connect, work, disconnect."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from moorage.base.clock import Clock, SystemClock
from moorage.base.rng import Streams
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import HttpTransport, open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.sandbox.process import run_loop

T = TypeVar("T")


class Session(msgspec.Struct, frozen=True):
    """The means of a command: client, namespace and server.

    Parameters
    ----------
    client
        The verbs of the API.
    transport
        The transport for calls without a verb.
    namespace
        The namespace of objects that name none.
    clock
        The clock by which ages are shown.
    """

    client: Client
    transport: Transport
    namespace: str
    clock: Clock


def run_session(
    work: Callable[[Session], Coroutine[Any, Any, T]],
    *,
    kubeconfig: str,
    context: str = "",
    namespace: str = "",
) -> T:
    """Connect as the flags say, do the work, disconnect.

    Raises
    ------
    KubeconfigError
        No server is configured.
    """
    clock = SystemClock()

    async def main() -> T:
        access = find_access(kubeconfig, context=context, clock=clock)
        transport = HttpTransport(access, user_agent="moorage-cli")
        client = Client(transport, rng=Streams().stream("client"))
        chosen = namespace or access.namespace or "default"
        try:
            return await work(Session(client, transport, chosen, clock))
        finally:
            await transport.close()

    return run_loop(main())


async def check_server(access: ServerAccess, clock: Clock) -> None:
    """Ask the server for its version, so that faults show before anything starts.

    Raises
    ------
    ApiError, TransportError
        The server cannot be reached or refuses our credentials.
    """
    transport = open_transport(access, clock=clock, user_agent="moorage-cli")
    try:
        await Client(transport, rng=Streams().stream("client")).read("/version")
    finally:
        await transport.close()
