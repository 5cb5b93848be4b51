"""The session of one command with an API server: find the server, connect, work, disconnect."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from moorage.base.aio import sleep
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import (
    ApiError,
    KubeconfigError,
    MoorageError,
    RefusedError,
    TransportError,
)
from moorage.base.process import run_loop
from moorage.base.rng import Streams
from moorage.cli.cluster_choice import (
    ClusterChoice,
    StartingSandboxError,
    choose_cluster,
    look_for_cluster,
)
from moorage.cli.render import show_note
from moorage.client.auth import ServerAccess
from moorage.client.backoff import Backoff, BackoffRule
from moorage.client.http_transport import HttpTransport, open_transport
from moorage.client.transport import Transport
from moorage.client.writes import Client

T = TypeVar("T")

_LOOK_SECONDS = 0.1
# `moorage up &` makes its imports for some tenths of a second before it leaves a record.
_RECORD_SECONDS = 3.0
_START_SECONDS_MAX = 60.0


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
    cluster
        The cluster that was chosen.
    """

    client: Client
    transport: Transport
    namespace: str
    clock: Clock
    cluster: ClusterChoice


def run_session(
    work: Callable[[Session], Coroutine[Any, Any, T]],
    *,
    kubeconfig: str,
    context: str = "",
    namespace: str = "",
    waits: bool = False,
    writes: bool = False,
    notes: bool = True,
) -> T:
    """Connect to the cluster that `choose_cluster` chooses, do the work, disconnect.

    Parameters
    ----------
    waits
        Whether to wait for a sandbox that is starting.
    writes, notes
        As in `choose_cluster`.

    Raises
    ------
    KubeconfigError
        No server is configured.
    """
    clock = SystemClock()

    async def main() -> T:
        if waits:
            await _sandbox_starts(kubeconfig, context, clock)
        cluster = choose_cluster(kubeconfig, context, writes=writes, clock=clock, notes=notes)
        access = cluster.access
        transport = HttpTransport(access, user_agent="moorage-cli")
        client = Client(transport, rng=Streams().stream("client"))
        chosen = namespace or access.namespace or "default"
        try:
            return await work(Session(client, transport, chosen, clock, cluster))
        finally:
            await transport.close()

    return run_loop(main())


async def _sandbox_starts(kubeconfig: str, context: str, clock: Clock) -> None:
    """Return once the server answers, or if no sandbox of the kubeconfig is starting.

    The kubeconfig is read anew each time: the one of an earlier sandbox names another port.
    """
    waited = 0.0
    while waited < _START_SECONDS_MAX:
        starts = waited < _RECORD_SECONDS
        try:
            cluster = look_for_cluster(kubeconfig, context, writes=True, clock=clock)
            starts = starts or cluster.sandbox is not None
            await check_server(cluster.access, clock)
        except (KubeconfigError, RefusedError) as error:
            if not starts and not isinstance(error, StartingSandboxError):
                return  # the command itself reports the fault
        except MoorageError:
            return
        else:
            return
        await sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS


async def check_server(access: ServerAccess, clock: Clock) -> None:
    """Ask the server for its version, so that faults show before anything starts.

    Raises
    ------
    ApiError, TransportError
        The server cannot be reached or refuses our credentials.
    """
    transport = open_transport(access, clock=clock, user_agent="moorage-cli")
    try:
        await Client(transport, rng=Streams().stream("client")).read_path("/version")
    finally:
        await transport.close()


async def wait_for_server(transport: Transport, streams: Streams, clock: Clock) -> None:
    """Call the server until it answers, and report failed calls on standard error.

    Raises
    ------
    ApiError, TransportError
        The server cannot be used and waiting does not help: credentials, certificates, a path.
    """
    client = Client(transport, rng=streams.stream("client"))
    backoff = Backoff(BackoffRule(), clock=clock, rng=streams.stream("first call"))
    has_waited = False
    while True:
        try:
            await client.read_path("/version")
        except (ApiError, TransportError) as error:
            if not _may_pass(error):
                raise
            seconds = backoff.next_seconds()
            show_note(f"{error}; trying again in {seconds:.0f} s")
            has_waited = True
            await sleep(seconds)
        else:
            break
    if has_waited:
        show_note("the server answers")


def _may_pass(error: ApiError | TransportError) -> bool:
    """Whether a failure may end by itself: a server that is down, busy or starting."""
    if isinstance(error, ApiError):
        return error.code >= 500 or error.code == 429
    return not isinstance(error.__cause__, ssl.SSLError)
