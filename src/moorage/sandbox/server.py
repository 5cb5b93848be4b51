"""The cluster without its scheduler: an API server over HTTPS, node agents and controllers.

Agents and controllers are ordinary clients, but without a network: opening a connection with TLS
costs five milliseconds of processor time, and each of their watches needs a connection.

Runs in its own process (``server_process``), or in the caller's loop (``--single-process``).
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from moorage.api.resources import LEASES, NODES
from moorage.apiserver.audit import AuditLog
from moorage.apiserver.auth import Authenticator
from moorage.apiserver.bootstrap import bootstrap, complete
from moorage.apiserver.certs import LOCAL_NAMES, KeyPair, kubeconfig, server_context
from moorage.apiserver.http import HttpServer
from moorage.apiserver.rbac.policy import CONTROLLER_USER, NODES_GROUP, SCHEDULER_USER
from moorage.apiserver.requests import User
from moorage.apiserver.served_kinds import served_kinds
from moorage.apiserver.server import ApiServer
from moorage.base.aio import TaskOwner, together
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.base.timeline import Timeline
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.cluster.in_process import InProcessTransport
from moorage.controllers.cluster import ClusterControllers
from moorage.nodeagent.agents import NodeAgents
from moorage.nodeagent.node_bodies import LEASE_NAMESPACE
from moorage.nodeshapes.templates import NodeTemplate, name_of, template_of
from moorage.sandbox.data_directory import DataDirectory, new_identity
from moorage.sandbox.own_endpoints import publish_endpoints
from moorage.sandbox.settings import SANDBOX_CONTEXT, ServerReport, ServerSettings
from moorage.storage.persistence import Persistence

_log = logging.getLogger(__name__)

# The users of the parts of the sandbox, as in any cluster; --rbac gives each its rights.
_NODES = User("system:node:moorage", (NODES_GROUP,))
_CONTROLLERS = User(CONTROLLER_USER)


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
        self._api = ApiServer(
            served_kinds(),
            clock=clock,
            streams=self._streams,
            rbac=settings.rbac,
            secret=hmac.digest(identity.key, b"tokens of service accounts", "sha256"),
        )
        if isinstance(clock, Timeline):
            self._api.control_time(clock)
        self._persistence: Persistence | None = None
        self._audit: AuditLog | None = None
        names = dict.fromkeys([*LOCAL_NAMES, settings.listen, *settings.names])
        pair = self._authority.server_pair(list(names))
        tls = server_context(pair, self._authority.certificate)
        self._http = HttpServer(self._api, Authenticator({}, self._api.account_tokens.user), tls)
        self._nodes = settings.nodes
        self.url = ""

    async def start(self) -> ServerReport:
        """Listen; return the address, and an administrator's kubeconfig.

        Raises
        ------
        UsageError
            The port cannot be listened on, or the data directory cannot be used.
        """
        restored = self._fill()
        if self._settings.audit_log:
            rng = self._streams.stream("apiserver/audit")
            self._audit = AuditLog(Path(self._settings.audit_log), clock=self._clock, rng=rng)
            self._api.audit_to(self._audit)
        if restored:
            self._nodes = self._with_stored_nodes()
        port = await self._listen()
        listen = self._settings.listen
        self.url = f"https://[{listen}]:{port}" if ":" in listen else f"https://{listen}:{port}"
        await publish_endpoints(self._client("moorage-apiserver"), listen, port)
        authority = self._authority
        return ServerReport(
            url=self.url,
            kubeconfig=self._kubeconfig(authority.client_pair()),
            scheduler_kubeconfig=self._kubeconfig(authority.client_pair(SCHEDULER_USER, ())),
            restored=restored,
            nodes=len(self._nodes),
        )

    def _kubeconfig(self, client: KeyPair) -> str:
        return kubeconfig(
            self.url,
            authority_certificate=self._authority.certificate,
            client=client,
            cluster=SANDBOX_CONTEXT,
        )

    def _transport(self, user: User, name: str) -> Transport:
        """Return the transport of a part of the sandbox to the server."""
        return InProcessTransport(self._api, user=user, latency_seconds=0, user_agent=name)

    def _client(self, name: str) -> Client:
        """Return a client with the rights of the controllers."""
        transport = self._transport(_CONTROLLERS, name)
        return Client(transport, rng=self._streams.stream("controllers/client"))

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
        controllers = ClusterControllers(
            self._client("moorage-controllers"),
            clock=self._clock,
            streams=self._streams,
            authority=self._authority.certificate.decode(),
        )
        nodes = play_nodes(
            self._transport(_NODES, "moorage-nodes"),
            self._nodes,
            clock=self._clock,
            streams=self._streams,
            on_ready=on_ready,
            first=controllers.ready,
            adopt=True,
        )
        works = [controllers.run(), nodes]
        if self._persistence is not None:
            works.append(self._persistence.failed())
        await together(*works)

    async def stop(self) -> None:
        """End every stream, close every connection, commit pending writes."""
        await self._http.stop()
        if self._persistence is not None:
            await self._persistence.close()
        if self._audit is not None:
            self._audit.close()
        if self._directory is not None:
            self._directory.close()

    def _fill(self) -> bool:
        """Load a new cluster's initial objects or the stored objects; return which."""
        if self._directory is None:
            bootstrap(self._api, authority_certificate=self._authority.certificate)
            return False
        salvaging = self._settings.salvage
        journal = self._directory.open_journal(self._clock, salvaging=salvaging)
        for line in journal.report or (["nothing is damaged"] if salvaging else []):
            _log.warning("salvage: %s", line)
        restored = self._api.restore(journal)
        if not restored:
            bootstrap(self._api, authority_certificate=self._authority.certificate)
            journal.fill(list(self._api.store.all_records()), self._api.store.version)
        self._persistence = self._api.keep_in(journal)
        if restored:
            self._complete(salvaged=bool(journal.report))
        return restored

    def _complete(self, *, salvaged: bool) -> None:
        """Create the objects of a new cluster that a stored one lacks, as each start upstream does.

        An older version may have written the directory. The definitions that moorage brings along
        are ordinary ones, which a client may have deleted; they come back only after a salvage.
        """
        certificate = self._authority.certificate
        found = complete(self._api, authority_certificate=certificate, definitions=salvaged)
        for name in found.made:
            if salvaged:
                _log.warning("salvage: made anew: %s", name)
            else:
                _log.info("missing object made: %s", name)
        for name in found.refused:
            _log.warning("missing object not made: %s", name)

    def _with_stored_nodes(self) -> list[NodeTemplate]:
        """Return the requested nodes, and the stored nodes that agents played before."""
        asked = [] if self._settings.nodes_of_new else self._settings.nodes
        names = {name_of(template) for template in asked}
        store = self._api.store
        leases = store.shelf(LEASES.qualified)
        stored = [
            template_of(record.decode())
            for record in store.shelf(NODES.qualified).records()
            if record.name not in names and leases.get((LEASE_NAMESPACE, record.name)) is not None
        ]
        return [*asked, *stored]

    async def _listen(self) -> int:
        """Listen on the requested port, else on the previous port, else on any free port."""
        listen = self._settings.listen
        before = self._directory.identity.port if self._directory else 0
        try:
            port = await self._http.start(listen, self._settings.port or before)
        except UsageError:
            if self._settings.port or not before:
                raise
            _log.warning("port %d is taken now; kubeconfigs made before are out of date", before)
            port = await self._http.start(listen)
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
    first: Callable[[], Awaitable[object]] | None = None,
    adopt: bool = False,
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
    first
        Additional work to wait for before that call.
    adopt
        Also play nodes that other clients created for this purpose.

    Raises
    ------
    ApiError
        A node was refused.
    """
    client = Client(transport, rng=streams.stream("nodes/client"))
    agents = NodeAgents(client, nodes, clock=clock, streams=streams, adopt=adopt)
    waiting = TaskOwner()
    try:
        waiting.spawn(_tell(agents, on_ready, first), name="nodes ready")
        await agents.run()
    finally:
        await waiting.cancel_all()


async def _tell(
    agents: NodeAgents,
    on_ready: Callable[[], None],
    first: Callable[[], Awaitable[object]] | None,
) -> None:
    if first is not None:
        await first()
    await agents.registered.wait()
    on_ready()
