"""A cluster for one workload in this process: server, controllers and scheduler, no network.

`processes` has the clusters whose scheduler is a process of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock, SystemClock
from moorage.base.rng import Streams
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.own import LoadedConfiguration
from moorage.controllers.controller import ControllerInputs
from moorage.framework.containment import Containment
from moorage.framework.registry import Registry
from moorage.observe.access import AccessFacts
from moorage.observe.calls import CallFacts
from moorage.service.intake.plugin_watch import PluginWatch
from moorage.service.process.metrics import exposition_of
from moorage_sandbox.cluster.assembly import (
    SCHEDULER,
    ClusterSettings,
    EmbeddedCluster,
    open_server,
)
from moorage_sandbox.cluster.in_process import Handling, InProcessTransport
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.controllers.garbage import GarbageCollector
from moorage_sandbox.controllers.resource_claims import ClaimMaker, ClaimReleaser
from moorage_sandbox.controllers.volumes import VolumeControllers


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The form of a cluster to be made.

    Parameters
    ----------
    config
        The scheduler's configuration, with its feature gates.
    registry
        The known plugins.
    clock
        Time of every part.
    seed
        Seed of all random choices.
    latency_seconds
        Delay of a call without a network, each way.
    """

    config: LoadedConfiguration
    registry: Registry
    clock: Clock
    seed: int
    latency_seconds: float = 0.0


class Cluster(msgspec.Struct, frozen=True):
    """A cluster that runs.

    Parameters
    ----------
    transport
        Carries calls to its server.
    client
        Verbs over it.
    metrics
        Reads the scheduler's page of metrics; None if the scheduler shows none.
    shared
        Whether the cluster goes on after the workload, so that objects have to be removed.
    """

    transport: Transport
    client: Client
    metrics: Callable[[], Awaitable[str]] | None
    shared: bool = False


@asynccontextmanager
async def in_process(
    settings: Settings, failed: Callable[[str, BaseException], None]
) -> AsyncIterator[Cluster]:
    """Run a cluster in this process.

    Parameters
    ----------
    failed
        Called with the name and the exception of a part that ends.
    """

    def connect(server: Handling, program: str) -> Transport:
        name = f"moorage-{program}"
        return InProcessTransport(server, latency_seconds=settings.latency_seconds, user_agent=name)

    form = ClusterSettings(
        clock=settings.clock,
        streams=Streams(settings.seed),
        connect=connect,
        controllers=(VolumeControllers, ClaimControllers),
        on_failure=failed,
    )
    server = open_server(form).api
    parts = EmbeddedCluster(form, server)
    scheduler = scheduler_over(
        parts.transport(SCHEDULER),
        settings.config,
        settings.registry,
        clock=settings.clock,
        streams=Streams(settings.seed),
        host="bench",
    )
    page = exposition_of(
        scheduler,
        calls=CallFacts("in-process"),
        access=AccessFacts(),
        containment=Containment(PluginWatch(1.0, SystemClock())),
        gates=settings.config.gates,
    )

    async def metrics() -> str:
        return page.page_text("")[0].decode()

    client = parts.client("bench")
    try:
        controllers = parts.start_controllers()
        parts.spawn(scheduler.run(), name=SCHEDULER)
        await controllers.ready()
        await scheduler.ready.wait()
        yield Cluster(client.transport, client, metrics)
    finally:
        await parts.stop()
        server.close()


class ClaimControllers:
    """The controllers that make and release the claims of pods, and remove what they owned.

    The suite runs the same three next to its scheduler.

    Attributes
    ----------
    ready
        Set once everything has been listed.
    """

    def __init__(self, around: ControllerInputs) -> None:
        self._views = around.views
        self._controllers = (ClaimMaker(around), ClaimReleaser(around))
        self._garbage = GarbageCollector(around)
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        await aio.together(self._garbage.run(), self._work())

    async def _work(self) -> None:
        await self._views.synced()
        await self._garbage.ready.wait()
        self.ready.set()
        await aio.together(*(each.run() for each in self._controllers))
