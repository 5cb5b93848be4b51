"""The cluster without its scheduler: an API server over HTTPS, node agents and controllers.

Agents and controllers are ordinary clients, but without a network: opening a connection with TLS
costs five milliseconds of processor time, and each of their watches needs a connection.

Runs in its own process (``server_process``), or in the caller's loop (``--single-process``).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable
from pathlib import Path

from moorage.api.node import Node
from moorage.api.resources import LEASES, NODES
from moorage.base.aio import TaskOwner, together
from moorage.base.certificates import LOCAL_NAMES, KeyPair, kubeconfig, server_context
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.kinds.custom.shipped import SHIPPED
from moorage.nodeshapes.templates import NodeTemplate, name_of, template_of
from moorage_sandbox.apiserver.audit import AuditLog
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.bootstrap import complete
from moorage_sandbox.apiserver.rbac.policy import CONTROLLER_USER, NODES_GROUP, SCHEDULER_USER
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.cluster.assembly import (
    NODE_AGENTS,
    ClusterSettings,
    EmbeddedCluster,
    OpenServer,
    open_server,
)
from moorage_sandbox.cluster.in_process import Handling, InProcessTransport
from moorage_sandbox.controllers.cluster import parts_without
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.nodeagent.node_bodies import LEASE_NAMESPACE
from moorage_sandbox.sandbox.data_directory import DataDirectory, new_identity
from moorage_sandbox.sandbox.own_endpoints import publish_endpoints
from moorage_sandbox.sandbox.settings import SANDBOX_CONTEXT, ServerReport, ServerSettings
from moorage_sandbox.storage.persistence import Persistence

_log = logging.getLogger(__name__)

# The users of the programs, as in any cluster; --rbac gives each its rights.
_CONTROLLER = User(CONTROLLER_USER)
_USERS = {NODE_AGENTS: User("system:node:moorage", (NODES_GROUP,))}


def _connect(server: Handling, program: str) -> Transport:
    """Return the transport of a program of the sandbox to the server."""
    user = _USERS.get(program, _CONTROLLER)
    name = f"moorage-{program}"
    return InProcessTransport(server, user=user, latency_seconds=0, user_agent=name)


class SandboxServer:
    """An API server with nodes.

    Parameters
    ----------
    settings
        Port, nodes and seed.
    clock
        Time for the server, agents and controllers.
    """

    def __init__(self, settings: ServerSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._streams = Streams(settings.seed)
        # A client checks a certificate with its own clock.
        real = SystemClock()
        self._directory = DataDirectory(Path(settings.data), clock=real) if settings.data else None
        identity = self._directory.identity if self._directory else new_identity(real)
        self._authority = identity.authority(real)
        self._form = ClusterSettings(
            clock=clock,
            streams=self._streams,
            connect=_connect,
            controllers=parts_without(settings.no_controllers),
            rbac=settings.rbac,
            secret=hmac.digest(identity.key, b"tokens of service accounts", "sha256"),
            authority=self._authority.certificate,
            version=settings.version,
            custom_kinds=settings.custom_kinds,
        )
        self._audit: AuditLog | None = None
        self._http: HttpServer | None = None
        self._persistence: Persistence | None = None
        self.url = ""

    async def start(self) -> ServerReport:
        """Listen; return the address, and an administrator's kubeconfig.

        Raises
        ------
        UsageError
            The port cannot be listened on, or the data directory cannot be used.
        """
        opened = self._open()
        self._api, self._persistence = opened.api, opened.persistence
        self._api.map_services(self._settings.webhooks)
        if opened.restored:
            self._complete(salvaged=opened.damaged)
        if self._settings.audit_log:
            rng = self._streams.stream("apiserver/audit")
            self._audit = AuditLog(Path(self._settings.audit_log), clock=self._clock, rng=rng)
            self._api.audit_to(self._audit)
        self._cluster = EmbeddedCluster(self._form, self._api)
        self._nodes = self._settings.nodes
        if opened.restored:
            self._nodes = self._with_stored_nodes()
        port = await self._listen()
        listen = self._settings.listen
        self.url = f"https://[{listen}]:{port}" if ":" in listen else f"https://{listen}:{port}"
        await publish_endpoints(self._cluster.client("apiserver"), listen, port)
        authority = self._authority
        return ServerReport(
            url=self.url,
            kubeconfig=self._kubeconfig(authority.client_pair()),
            scheduler_kubeconfig=self._kubeconfig(authority.client_pair(SCHEDULER_USER, ())),
            restored=opened.restored,
            nodes=len(self._nodes),
        )

    def _kubeconfig(self, client: KeyPair) -> str:
        return kubeconfig(
            self.url,
            authority_certificate=self._authority.certificate,
            client=client,
            cluster=SANDBOX_CONTEXT,
        )

    async def play_nodes(self, on_ready: Callable[[], None]) -> None:
        """Play kubelet for the nodes, and all controllers, until cancelled.

        Parameters
        ----------
        on_ready
            Called once when all nodes are registered and the controllers are ready.

        Raises
        ------
        ApiError
            A node, or the default storage class, was refused.
        MoorageError
            The disk failed, and the cluster can no longer be kept.
        """
        works = [self._cluster.failed(), self._play(on_ready)]
        if self._persistence is not None:
            works.append(self._persistence.failed())
        try:
            await together(*works)
        finally:
            await self._cluster.stop()

    async def _play(self, on_ready: Callable[[], None]) -> None:
        """Start controllers and agents, and tell when they work."""
        controllers = self._cluster.start_controllers()
        agents = self._cluster.start_agents(self._nodes, adopt=True)
        await controllers.ready()
        await agents.registered.wait()
        on_ready()
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """End every stream, close every connection, commit pending writes."""
        if self._http is not None:
            await self._http.stop()
        if self._persistence is not None:
            await self._persistence.close()
        if self._audit is not None:
            self._audit.close()
        if self._directory is not None:
            self._directory.close()

    def _open(self) -> OpenServer:
        """Open the server with a new cluster's first objects, or with the stored objects."""
        if self._directory is None:
            return open_server(self._form)
        salvaging = self._settings.salvage
        journal = self._directory.open_journal(self._clock, salvaging=salvaging)
        for line in journal.report or (["nothing is damaged"] if salvaging else []):
            _log.warning("salvage: %s", line)
        return open_server(self._form, journal)

    def _complete(self, *, salvaged: bool) -> None:
        """Create the objects of a new cluster that a stored one lacks, as each start upstream does.

        An older version may have written the directory, or the scheduler had other plugins. What
        was lost with damaged data includes every kind of scheduler-plugins.
        """
        completion = complete(
            self._api,
            authority_certificate=self._authority.certificate,
            custom_kinds=SHIPPED if salvaged else self._settings.custom_kinds,
        )
        for name in completion.created:
            if salvaged:
                _log.warning("salvage: made anew: %s", name)
            else:
                _log.info("missing object made: %s", name)
        for name in completion.refused:
            _log.warning("missing object not made: %s", name)

    def _with_stored_nodes(self) -> list[NodeTemplate]:
        """Return the requested nodes, and the stored nodes that agents played before."""
        templates = [] if self._settings.nodes_of_new else self._settings.nodes
        names = {name_of(template) for template in templates}
        store = self._api.store
        leases = store.shelf(LEASES.qualified)
        stored = [
            template_of(record.decode())
            for record in store.shelf(NODES.qualified).records()
            if record.name not in names and leases.get((LEASE_NAMESPACE, record.name)) is not None
        ]
        return [*templates, *stored]

    async def _listen(self) -> int:
        """Listen on the requested port, else on the previous port, else on any free port."""
        listen = self._settings.listen
        names = dict.fromkeys([*LOCAL_NAMES, listen, *self._settings.names])
        pair = self._authority.server_pair(list(names))
        tls = server_context(pair, self._authority.certificate)
        authenticator = Authenticator({}, self._api.account_tokens.user)
        http = self._http = HttpServer(self._api, authenticator, tls)
        before = self._directory.identity.port if self._directory else 0
        try:
            port = await http.start(listen, self._settings.port or before)
        except UsageError:
            if self._settings.port or not before:
                raise
            _log.warning("port %d is taken now; kubeconfigs made before are out of date", before)
            port = await http.start(listen)
        if self._directory is not None:
            self._directory.keep_port(port)
        return port


async def play_nodes(
    transport: Transport,
    nodes: list[dict[str, object]],
    *,
    clock: Clock,
    streams: Streams,
    on_ready: Callable[[], None],
    adopt: Callable[[Node], bool] | None = None,
) -> None:
    """Play kubelet for nodes of any API server until cancelled.

    Parameters
    ----------
    transport
        Transport to the server.
    nodes
        Templates of the nodes.
    on_ready
        Called once when all nodes are registered.
    adopt
        As of `NodeAgents`.

    Raises
    ------
    ApiError
        A node was refused.
    """
    client = Client(transport, rng=streams.stream("nodes/client"))
    agents = NodeAgents(client, nodes, clock=clock, streams=streams, adopt=adopt)

    async def report() -> None:
        await agents.registered.wait()
        on_ready()

    waiting = TaskOwner()
    try:
        waiting.spawn(report(), name="nodes ready")
        await agents.run()
    finally:
        await waiting.cancel_all()
