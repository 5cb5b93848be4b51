"""The cluster without its scheduler: an API server over HTTPS, and node agents as its clients.

Runs in a process of its own (``server_process``), or in the caller's loop (``--single-process``).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from moorage.apiserver.auth import Authenticator
from moorage.apiserver.bootstrap import bootstrap
from moorage.apiserver.certs import ADMIN_GROUP, Authority, kubeconfig, server_context
from moorage.apiserver.http import HttpServer
from moorage.apiserver.kinds import all_kinds
from moorage.apiserver.requests import User
from moorage.apiserver.server import ApiServer
from moorage.base.aio import TaskOwner, together
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.writes import Client
from moorage.controllers.disruption import DisruptionController
from moorage.controllers.volumes import VolumeControllers
from moorage.controllers.workloads import WorkloadControllers
from moorage.nodeagent.agents import NodeAgents
from moorage.sandbox.settings import SANDBOX_CONTEXT, ServerSettings

_AGENT = User("system:nodes", (ADMIN_GROUP, "system:nodes"))


class SandboxServer:
    """An API server with nodes.

    Parameters
    ----------
    settings
        Port, nodes and seed.
    clock
        Time for everything in it.
    """

    def __init__(self, settings: ServerSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._streams = Streams(settings.seed)
        self._authority = Authority(clock)
        # Secrets are not drawn from the seed: who knows the seed must not know the token.
        self._token = secrets.token_urlsafe(32)
        self._api = ApiServer(all_kinds(), clock=clock, streams=self._streams)
        bootstrap(self._api, authority_certificate=self._authority.certificate)
        tls = server_context(self._authority.server_pair(), self._authority.certificate)
        self._http = HttpServer(self._api, Authenticator({self._token: _AGENT}), tls)
        self.url = ""

    async def start(self) -> str:
        """Listen; return the text of an administrator's kubeconfig.

        Raises
        ------
        UsageError
            The port cannot be listened on.
        """
        port = await self._http.start(port=self._settings.port)
        self.url = f"https://127.0.0.1:{port}"
        return kubeconfig(
            self.url,
            authority_certificate=self._authority.certificate,
            client=self._authority.client_pair(),
            cluster=SANDBOX_CONTEXT,
        )

    async def play_nodes(self, on_ready: Callable[[], None]) -> None:
        """Play kubelet for the nodes, and all controllers, until cancelled.

        Parameters
        ----------
        on_ready
            Called once when all nodes are registered and volumes are looked after.

        Raises
        ------
        ApiError
            A node, or the default storage class, was refused.
        """
        access = ServerAccess(
            self.url,
            FixedCredentials(Credential(headers=(bearer(self._token),))),
            ca_pem=self._authority.certificate,
        )
        transport = HttpTransport(access, user_agent="moorage-controllers")
        client = Client(transport, rng=self._streams.stream("controllers/client"))
        controllers = VolumeControllers(client, clock=self._clock, streams=self._streams)
        budgets = DisruptionController(client, clock=self._clock, streams=self._streams)
        workloads = WorkloadControllers(client, clock=self._clock, streams=self._streams)
        nodes = play_nodes(
            access,
            self._settings.nodes,
            clock=self._clock,
            streams=self._streams,
            on_ready=on_ready,
            first=controllers.ready.wait,
        )
        try:
            await together(controllers.run(), budgets.run(), workloads.run(), nodes)
        finally:
            await transport.close()

    async def stop(self) -> None:
        """End every stream and close every connection."""
        await self._http.stop()


async def play_nodes(
    access: ServerAccess,
    nodes: list[dict[str, object]],
    *,
    clock: Clock,
    streams: Streams,
    on_ready: Callable[[], None],
    first: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Play kubelet for nodes of any API server until cancelled.

    Parameters
    ----------
    access
        The server.
    nodes
        Templates of the nodes.
    on_ready
        Called once when all are registered.
    first
        What to wait for besides before that.

    Raises
    ------
    ApiError
        A node was refused.
    """
    transport = HttpTransport(access, user_agent="moorage-nodes")
    client = Client(transport, rng=streams.stream("nodes/client"))
    agents = NodeAgents(client, nodes, clock=clock, streams=streams)
    waiting = TaskOwner()
    try:
        waiting.spawn(_tell(agents, on_ready, first), name="nodes ready")
        await agents.run()
    finally:
        await waiting.cancel_all()
        await transport.close()


async def _tell(
    agents: NodeAgents,
    on_ready: Callable[[], None],
    first: Callable[[], Awaitable[object]] | None,
) -> None:
    if first is not None:
        await first()
    await agents.registered.wait()
    on_ready()
