"""Puts an embedded cluster together: API server, controllers and node agents.

Four users vary it:

============  ==================  ===================  ===============  ======================
What          ``up``              tests                simulation       benchmark
============  ==================  ===================  ===============  ======================
time          real, scaled or a   virtual              virtual          real or virtual
              timeline
transports    in process, a user  in process, 1 ms     with faults      in process
              for each program
storage       memory or a         memory               memory or a      memory
              directory                                faulty disk
controllers   all                 none, some or all    all              volumes and claims
node agents   of the options      of the test          of the script    none
schedulers    another process     one                  up to three      one
tasks         of the cluster      of the cluster       in processes     of the cluster
                                                       that are killed
============  ==================  ===================  ===============  ======================
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from moorage.base.aio import OnFailure, TaskOwner
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.base.timeline import Timeline
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.emulation import DEFAULT_VERSION
from moorage.config.gate_table import V1_37
from moorage.controllers.cluster import ClusterControllers, MakePart
from moorage.kinds.custom.shipped import SHIPPED
from moorage.nodeshapes.annotations import asks_for_agent
from moorage.nodeshapes.templates import NodeTemplate
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.world import GIT_VERSION, GIT_VERSION_1_37
from moorage_sandbox.cluster.in_process import Handling, InProcessTransport
from moorage_sandbox.controllers.cluster import ALL
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.persistence import Persistence

CONTROLLERS: Final = "controllers"
NODE_AGENTS: Final = "nodes"
SCHEDULER: Final = "scheduler"
USER: Final = "user"

Connect: TypeAlias = Callable[[Handling, str], Transport]
"""Returns the transport of a program, by its name, to the server."""

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Starts the work of a program, given its name."""


def in_process(server: Handling, program: str) -> Transport:
    """Connect a program as an administrator, with a millisecond each way."""
    del program
    return InProcessTransport(server)


def _ignore(_name: str, _error: BaseException) -> None:
    """Leave a failure to `EmbeddedCluster.failures`."""


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedded cluster is made of.

    Parameters
    ----------
    clock, streams
        Time and randomness of every part.
    connect
        Makes the transports of the parts to the server.
    controllers
        The controllers to run; empty for none.
    renew_seconds
        Interval of lease renewals by each node.
    rbac
        Whether users may only make the calls that roles allow.
    secret
        Key for the tokens of service accounts; derived from the seed if empty.
    authority
        Certificate of the cluster's authority, PEM; empty if nobody speaks TLS to the server.
    version
        The version of Kubernetes that the server plays: 1.36 or 1.37.
    custom_kinds
        Plural names of the kinds of scheduler-plugins that a new cluster has.
    on_failure
        Called with the name and the exception of a program that fails.
    """

    clock: Clock
    streams: Streams
    connect: Connect = in_process
    controllers: Sequence[MakePart] = ALL
    renew_seconds: int = 10
    rbac: bool = False
    secret: bytes = b""
    authority: bytes = b""
    version: str = DEFAULT_VERSION
    custom_kinds: Collection[str] = SHIPPED
    on_failure: OnFailure = _ignore


class OpenServer(msgspec.Struct, frozen=True):
    """An API server that has its objects.

    Parameters
    ----------
    api
        The server.
    persistence
        Keeps its writes in the journal; None for a server in memory.
    restored
        Whether the objects came from the journal.
    damaged
        Whether parts of the journal could not be read.
    """

    api: ApiServer
    persistence: Persistence | None = None
    restored: bool = False
    damaged: bool = False


def open_server(settings: ClusterSettings, journal: Journal | None = None) -> OpenServer:
    """Make an API server with the objects of its journal, or with those of a new cluster.

    Parameters
    ----------
    journal
        Where the server keeps its objects; None to keep them in memory.

    Raises
    ------
    UsageError
        The journal is damaged.
    """
    of_1_37 = settings.version == V1_37
    api = ApiServer(
        served_kinds(of_1_37=of_1_37),
        git_version=GIT_VERSION_1_37 if of_1_37 else GIT_VERSION,
        clock=settings.clock,
        streams=settings.streams,
        rbac=settings.rbac,
        secret=settings.secret,
    )
    if isinstance(settings.clock, Timeline):
        api.control_time(settings.clock)
    restored = journal is not None and api.restore(journal)
    if not restored:
        bootstrap(api, authority_certificate=settings.authority, custom_kinds=settings.custom_kinds)
    if journal is None:
        return OpenServer(api)
    if not restored:
        journal.fill(list(api.store.all_records()), api.store.version)
    return OpenServer(api, api.keep_in(journal), restored, damaged=bool(journal.report))


class EmbeddedCluster:
    """The programs around an API server in this process.

    Parameters
    ----------
    settings
        What the cluster is made of.
    server
        Answers the calls.
    spawn
        Starts a program; None for tasks of this object, whose failures `failed` raises.

    Attributes
    ----------
    failures
        Exceptions of the programs that failed, in order.
    """

    def __init__(
        self, settings: ClusterSettings, server: Handling, spawn: Spawn | None = None
    ) -> None:
        self._settings = settings
        self._server = server
        self._tasks = TaskOwner(self._note_failure)
        self._spawn = spawn or (lambda work, name: self._tasks.spawn(work, name=name))
        self._failure = asyncio.Event()
        self.failures: list[BaseException] = []

    def transport(self, program: str) -> Transport:
        """Return a transport of a program to the server."""
        return self._settings.connect(self._server, program)

    def client(self, program: str) -> Client:
        """Return verbs for a program."""
        rng = self._settings.streams.stream(f"client/{program}")
        return Client(self.transport(program), rng=rng)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a program, which runs until the cluster stops."""
        return self._spawn(work, name)

    def start_controllers(self) -> ClusterControllers:
        """Start the controllers; the caller waits until they are ready."""
        settings = self._settings
        controllers = ClusterControllers(
            self.client(CONTROLLERS),
            clock=settings.clock,
            streams=settings.streams,
            authority=settings.authority.decode(),
            parts=settings.controllers,
        )
        self.spawn(controllers.run(), name=CONTROLLERS)
        return controllers

    def start_agents(self, nodes: Sequence[NodeTemplate], *, adopt: bool = False) -> NodeAgents:
        """Start agents that play nodes; the caller waits until the nodes are registered.

        Parameters
        ----------
        nodes
            Templates of the nodes.
        adopt
            Also play the nodes that other clients create for this purpose.
        """
        settings = self._settings
        agents = NodeAgents(
            self.client(NODE_AGENTS),
            nodes,
            clock=settings.clock,
            streams=settings.streams,
            renew_seconds=settings.renew_seconds,
            adopt=asks_for_agent if adopt else None,
        )
        self.spawn(agents.run(), name=NODE_AGENTS)
        return agents

    async def failed(self) -> None:
        """Wait until a program fails.

        Raises
        ------
        Exception
            The failure of the program.
        """
        await self._failure.wait()
        raise self.failures[0]

    async def stop(self) -> None:
        """End the programs; the server goes on."""
        await self._tasks.cancel_all()

    def _note_failure(self, name: str, error: BaseException) -> None:
        self.failures.append(error)
        self._failure.set()
        self._settings.on_failure(name, error)
