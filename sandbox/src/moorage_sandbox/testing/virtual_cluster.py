"""A whole cluster in virtual time: API server, node agents and scheduler in one loop, no network.

For tests of the whole cluster, in moorage and by plugin authors::

    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            await cluster.create(pod_manifest("p"))
            await cluster.until(lambda: cluster.node_of("p") == "n1")

    run_virtual(main(), clock)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from moorage.api.resources import CORE_EVENTS, NODES, ResourceType, by_kind
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.rng import Streams
from moorage.client.requests import MERGE_PATCH, Selection, patch_body
from moorage.client.transport import Transport
from moorage.config.own import LoadedConfiguration
from moorage.controllers.cluster import MakePart
from moorage.framework.registry import Registry
from moorage.nodeshapes.annotations import PLAYED
from moorage.nodeshapes.templates import complete
from moorage.observe.traces.attempts import Traces
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.process.facts import Facts
from moorage_sandbox.cluster.assembly import (
    SCHEDULER,
    USER,
    ClusterSettings,
    Connect,
    EmbeddedCluster,
    in_process,
    open_server,
)
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.testing.builders import Manifest

_LOOK_SECONDS = 0.01


class NotReachedError(AssertionError):
    """A condition that a test waited for did not come in time."""


class VirtualCluster:
    """An asynchronous context in which a cluster runs.

    Parameters
    ----------
    clock
        The clock of the loop, see `run_virtual`.
    nodes
        Nodes that agents play from the start.
    config, registry
        The scheduler's configuration and plugins; None for the defaults.
    seed
        Seed of every random stream.
    around
        Wraps the scheduler's transport, to put faults into it.
    renew_seconds
        Interval of lease renewals by each node; with hundreds of nodes, most calls are renewals.
    facts
        The scheduler's running totals; new ones when not given.
    traces
        Makes spans from the scheduler's attempts; None where nothing is traced.
    controllers
        Controllers that run from the start.
    connect
        Makes the transport of a program, by its name, to the server.
    authority
        Certificate of the cluster's authority, PEM; empty for none.

    Attributes
    ----------
    parts
        The programs of the cluster.
    client
        Verbs for the test itself.
    scheduler
        The scheduler, running.
    draws
        The scheduler's random streams.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each part that a test may choose
        self,
        clock: Clock,
        *,
        nodes: Sequence[Manifest] = (),
        config: LoadedConfiguration | None = None,
        registry: Registry | None = None,
        seed: int = 1,
        around: Callable[[Transport], Transport] | None = None,
        renew_seconds: int = 10,
        facts: Facts | None = None,
        traces: Traces | None = None,
        controllers: Sequence[MakePart] = (),
        connect: Connect = in_process,
        authority: bytes = b"",
    ) -> None:
        self.clock = clock
        settings = ClusterSettings(
            clock=clock,
            streams=Streams(seed),
            connect=connect,
            controllers=controllers,
            renew_seconds=renew_seconds,
            authority=authority,
            version=(config or LoadedConfiguration()).gates.version,
        )
        self._has_controllers = bool(controllers)
        self._adopting = False
        self.server = open_server(settings).api
        self.parts = EmbeddedCluster(settings, self.server)
        self.client = self.parts.client(USER)
        self.transport = self.client.transport
        self._nodes = nodes
        self.draws = Streams(seed)
        carried = self.parts.transport(SCHEDULER)
        self.scheduler = scheduler_over(
            around(carried) if around else carried,
            config or LoadedConfiguration(),
            registry or in_tree_registry(),
            clock=clock,
            streams=self.draws,
            host="virtual",
            facts=facts,
            traces=traces,
        )

    async def __aenter__(self) -> Self:
        """Start; returns when the nodes are registered and the scheduler has seen them."""
        await self.play(self._nodes)
        self.parts.spawn(self.scheduler.run(), name=SCHEDULER)
        await self.scheduler.ready.wait()
        if self._has_controllers:
            await self.parts.start_controllers().ready()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything; raises the failure of a part, if any."""
        await self.parts.stop()
        self.server.close()
        if self.parts.failures and error is None:
            raise self.parts.failures[0]

    @property
    def seconds(self) -> float:
        """Virtual time since the clock was made."""
        return self.clock.monotonic_ns() / NS_PER_SECOND

    async def play(self, nodes: Sequence[Manifest]) -> None:
        """Add nodes that an agent plays."""
        templates = [complete(each) for each in nodes]
        agents = self.parts.start_agents(templates, adopt=not self._adopting)
        self._adopting = True
        await agents.registered.wait()

    async def join(self, node: Manifest) -> None:
        """Add a node as a sandbox does: the agents of the first nodes play it, too."""
        made: Manifest = dict(complete(node))
        metadata = made["metadata"]
        annotations = {**metadata.get("annotations", {}), PLAYED: "true"}
        await self.create_objects({**made, "metadata": {**metadata, "annotations": annotations}})

    # --- what a test does -------------------------------------------------------------------

    async def create_objects(self, *objects: Manifest) -> None:
        """Create objects, one after the other."""
        for obj in objects:
            resource = by_kind(obj["kind"], obj["apiVersion"])
            assert resource is not None, f"no such kind: {obj['apiVersion']} {obj['kind']}"
            namespace = obj["metadata"].get("namespace", "")
            await self.client.create(resource, obj, namespace=namespace)

    async def patch_object(
        self, resource: ResourceType, name: str, changes: Manifest, *, namespace: str = ""
    ) -> None:
        """Change an object by a JSON merge patch."""
        await self.client.patch(
            resource, name, patch_body(changes), namespace=namespace, content_type=MERGE_PATCH
        )

    async def delete_node(self, name: str) -> None:
        """Delete a node; its pods stay, as on a real cluster."""
        await self.client.delete(NODES, name)

    async def until(self, reached: Callable[[], bool], *, seconds: float = 30.0) -> None:
        """Let time pass until a condition holds.

        Raises
        ------
        NotReachedError
            The condition did not hold in that time.
        """
        end = self.seconds + seconds
        while not reached():
            if self.parts.failures:
                raise self.parts.failures[0]
            if self.seconds >= end:
                raise NotReachedError(f"not reached within {seconds} s: {self.placements()}")
            await aio.sleep(_LOOK_SECONDS)

    # --- what a test looks at ---------------------------------------------------------------

    def stored_pod(self, name: str, namespace: str = "default") -> Manifest | None:
        """Return the server's version of a pod, None if there is no such pod."""
        record = self.server.store.shelf("pods").get((namespace, name))
        return None if record is None else record.decode()

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Return the node a pod is bound to, "" for none."""
        return self._selected(name, namespace, "spec.nodeName")

    def phase_of(self, name: str, namespace: str = "default") -> str:
        """Return the phase of a pod, "" if it is not there."""
        return self._selected(name, namespace, "status.phase")

    def _selected(self, name: str, namespace: str, field: str) -> str:
        """Return a field that selectors know: decoding a pod each time `until` looks is slow."""
        record = self.server.store.shelf("pods").get((namespace, name))
        return "" if record is None else record.fields.get(field, "")

    def condition_of(self, name: str, namespace: str = "default") -> tuple[str, str, str]:
        """Return status, reason and message of a pod's PodScheduled condition, "" for absent."""
        found = self.stored_pod(name, namespace) or {}
        for each in found.get("status", {}).get("conditions") or []:
            if each["type"] == "PodScheduled":
                return each["status"], each.get("reason", ""), each.get("message", "")
        return "", "", ""

    def placements(self) -> dict[str, str]:
        """Return the node of every pod by ``namespace/name``, "" where it has none."""
        keys = [each.key for each in self.server.store.shelf("pods").records()]
        return {f"{namespace}/{name}": self.node_of(name, namespace) for namespace, name in keys}

    async def events(self, name: str, *, reason: str = "") -> list[Manifest]:
        """Return the Events about an object of this name, oldest first."""
        selector = f"involvedObject.name={name}"
        listed: Any = await self.client.list(CORE_EVENTS, Selection(field_selector=selector))
        found = [each for each in listed["items"] if not reason or each.get("reason") == reason]
        return sorted(found, key=lambda each: str(each.get("eventTime")))
