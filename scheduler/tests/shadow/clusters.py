"""A whole cluster in virtual time with a shadow beside its scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from textwrap import dedent

import msgspec

from moorage.api.resources import PODS, ResourceType
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import NotFoundError
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.plugins.in_tree import in_tree_registry
from moorage.shadow.comparison import Comparison
from moorage.shadow.feed import Feed
from moorage.shadow.report import Report
from moorage.shadow.watching import Limits, Watch
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.builders import Manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.what_if.agreement import CLASSES, priority_class, random_node, random_pod

Acts = Callable[[VirtualCluster], Awaitable[None]]

# Longer than a difference stays open.
_REST_SECONDS = 3.0


class Seen(msgspec.Struct, frozen=True):
    """What a shadow reported, and the methods of its calls."""

    report: Report
    comparisons: list[Comparison]
    methods: frozenset[str]


class NotedCalls:
    """A transport that notes the methods of calls."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.methods: set[str] = set()

    async def request(self, call: Call) -> Answer:
        """Note the method, and send the call."""
        self.methods.add(call.method)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Note the method, and open the stream."""
        self.methods.add(call.method)
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()


class SlowWrites:
    """A transport whose writes take random times, so that they arrive in another order."""

    def __init__(self, inner: Transport, rng: Random, slowest_seconds: float) -> None:
        self._inner = inner
        self._rng = rng
        self._slowest_seconds = slowest_seconds

    async def request(self, call: Call) -> Answer:
        """Send a call; a write waits first."""
        if call.method != "GET" and self._slowest_seconds:
            # Most are quick, a few are slow.
            await aio.sleep(self._rng.random() ** 3 * self._slowest_seconds)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()


def config_of(text: str) -> LoadedConfiguration:
    """Return a configuration from its text."""
    return parse_config(dedent(text), source="test")


def shadowed(
    acts: Acts,
    *,
    nodes: Sequence[Manifest],
    config: LoadedConfiguration | None = None,
    registry: Registry | None = None,
    real: LoadedConfiguration | None = None,
    seed: int = 1,
    slowest_write: float = 0.0,
) -> Seen:
    """Play acts in a cluster while a configuration is compared with its scheduler.

    Parameters
    ----------
    acts
        What happens in the cluster.
    config, registry
        The configuration that is compared, and the plugins that it knows.
    real
        The configuration of the cluster's scheduler.
    slowest_write
        The longest time of a write of the cluster's scheduler, in seconds; each takes a random time
        of its own.
    """
    clock = ManualClock()

    def around(inner: Transport) -> Transport:
        return SlowWrites(inner, Streams(seed).stream("slow writes"), slowest_write)

    async def main() -> Seen:
        found: list[Comparison] = []
        async with VirtualCluster(
            clock, nodes=nodes, seed=seed, config=real, renew_seconds=10_000, around=around
        ) as cluster:
            inputs = ClusterInputs(
                objects=ClusterObjects(),
                registry=registry or in_tree_registry(),
                config=config or LoadedConfiguration(),
                seed=seed,
                now_ns=clock.now_ns(),
            )
            feed = Feed(inputs, clock, configuration="test", on_comparison=found.append)
            transport = NotedCalls(InProcessTransport(cluster.server))
            watch = Watch(transport, feed, clock=clock, streams=Streams(seed))
            owner = TaskOwner()
            await watch.start()
            following = owner.spawn(watch.follow(Limits()), name="follow")
            await acts(cluster)
            await aio.sleep(_REST_SECONDS)
            if following.done():
                following.result()
            await owner.cancel_all()
            await watch.close()
            report = feed.report()
            feed.beside.half.core.queue.validate()
            return Seen(report, found, frozenset(transport.methods))

    return run_virtual(main(), clock)


def at_once(
    pods: Sequence[Manifest],
    *,
    delete: Sequence[str] = (),
    first: Sequence[tuple[ResourceType, Manifest]] = (),
) -> Acts:
    """Return acts that create all pods at once, and delete some while the others are bound.

    Parameters
    ----------
    first
        Objects that are there before, each with its resource.
    """

    async def acts(cluster: VirtualCluster) -> None:
        for name, value in CLASSES.items():
            await cluster.create_objects(priority_class(name, value))
        for resource, obj in first:
            await cluster.client.create(
                resource, obj, namespace=obj["metadata"].get("namespace", "")
            )
        tasks = TaskOwner()
        created = [tasks.spawn(cluster.create_objects(pod), name="create") for pod in pods]
        for task in created:
            await task
        for name in delete:
            await cluster.client.delete(PODS, name, namespace="default")
            await aio.sleep(0.01)
        await aio.sleep(20.0)

    return acts


def random_nodes(seed: int) -> list[Manifest]:
    """Return the first nodes of a random cluster."""
    rng = Streams(seed).stream("nodes")
    return [random_node(rng, f"n{number}") for number in range(rng.randint(2, 6))]


def random_acts(seed: int, *, most: int = 60) -> Acts:
    """Return acts in which pods of many kinds come and go in bursts, and nodes are added."""
    rng = Streams(seed).stream("acts")

    async def acts(cluster: VirtualCluster) -> None:
        for name, value in CLASSES.items():
            await cluster.create_objects(priority_class(name, value))
        alive: list[str] = []
        for number in range(most):
            await _act(cluster, rng, number, alive)
            if rng.random() < 0.4:
                await aio.sleep(rng.choice((0.01, 0.1, 1.1, 3.0)))
        await aio.sleep(20.0)

    return acts


async def _act(cluster: VirtualCluster, rng: Random, number: int, alive: list[str]) -> None:
    lot = rng.random()
    if lot < 0.75 or not alive:
        pod = random_pod(rng, f"p{number}")
        if rng.random() < 0.5:
            pod["metadata"]["labels"] = {"app": f"w{rng.randint(0, 3)}"}
        await cluster.create_objects(pod)
        alive.append(f"p{number}")
    elif lot < 0.95:
        name = alive.pop(rng.randrange(len(alive)))
        try:
            await cluster.client.delete(PODS, name, namespace="default")
        except NotFoundError:
            return  # it was evicted
    else:
        await cluster.play([random_node(rng, f"x{number}")])
