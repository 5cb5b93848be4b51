"""Composes the scheduler: configuration, plugins, transport; used by ``run`` and ``up``."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.plugins import with_plugins
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.config.types import KubeSchedulerConfiguration
from moorage.framework.containment import Containment
from moorage.plugins.in_tree import IN_TREE
from moorage.sandbox.settings import SANDBOX_MARK
from moorage.service.core import build_core
from moorage.service.plugin_watch import PluginWatch
from moorage.service.scheduler import Scheduler

_log = logging.getLogger(__name__)

NOT_THE_SANDBOX = (
    "is not a moorage sandbox, and moorage does not have every in-tree plugin yet (missing: {}): "
    "pods that need one are held, where kube-scheduler would place them. "
    "Give --experimental to run it there all the same"
)


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What ``moorage run`` was asked for.

    Parameters
    ----------
    kubeconfig, context
        How to reach the server; "" for the configuration's, then the usual places.
    config
        File of the configuration; None for the defaults.
    seed
        Of all random choices; None draws one.
    experimental
        Whether any server will do.
    plugins
        Plugins from outside, as ``--plugin`` names them.
    """

    kubeconfig: str = ""
    context: str = ""
    config: Path | None = None
    seed: int | None = None
    experimental: bool = False
    plugins: tuple[str, ...] = ()


def check_config(path: Path | None, plugins: Sequence[str] = ()) -> LoadedConfiguration:
    """Load a configuration and build its profiles once, so that every mistake is told now.

    Parameters
    ----------
    path
        The file; None for the defaults.
    plugins
        Plugins from outside.

    Raises
    ------
    UsageError
        The file or a plugin cannot be read or used.
    """
    from moorage.base.clock import ManualClock

    config = LoadedConfiguration() if path is None else load_config(path)
    known = with_plugins(config, plugins)
    build_core(known.config, known.registry, clock=ManualClock(), streams=Streams(0))
    return config


async def schedule(options: SchedulerOptions, clock: Clock) -> None:
    """Schedule the pods of a server until cancelled.

    Raises
    ------
    UsageError
        The configuration, the kubeconfig or the server cannot be used.
    ApiError, TransportError
        The server cannot be reached or refuses us.
    """
    config = LoadedConfiguration() if options.config is None else load_config(options.config)
    access = scheduler_access(options, config.scheduler, clock)
    streams = Streams(options.seed)
    watch = PluginWatch(config.own.plugin_budget_seconds, clock)
    known = with_plugins(config, options.plugins, containment=Containment(watch))
    for note in known.notes:
        click.echo(f"moorage: {note}", err=True)
    transport = scheduler_transport(config.scheduler, access, clock)
    try:
        await _check_server(access, transport, streams, experimental=options.experimental)
        scheduler = Scheduler(
            known.config,
            known.registry,
            transport,
            clock=clock,
            streams=streams,
            host=socket.gethostname(),
        )
        # kube-scheduler's own debugging signal: log belief against truth.
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, scheduler.compare)
        _log.info("scheduling for %s with seed %d", access.server, streams.seed)
        with watch:
            await scheduler.run()
    finally:
        await transport.close()


def scheduler_access(
    options: SchedulerOptions, config: KubeSchedulerConfiguration, clock: Clock
) -> ServerAccess:
    """Find the server: the flag wins over the configuration's file, that over the usual places.

    Raises
    ------
    KubeconfigError
        Nothing found, or nothing usable.
    """
    kubeconfig = options.kubeconfig or config.client_connection.kubeconfig
    return find_access(kubeconfig, context=options.context, clock=clock)


def scheduler_transport(
    config: KubeSchedulerConfiguration, access: ServerAccess, clock: Clock
) -> Transport:
    """Return the transport to the server, limited as ``clientConnection`` asks; else not at all."""
    limits = config.client_connection
    return open_transport(
        access, clock=clock, qps=limits.qps, burst=limits.burst, user_agent="moorage-scheduler"
    )


async def _check_server(
    access: ServerAccess, transport: Transport, streams: Streams, *, experimental: bool
) -> None:
    client = Client(transport, rng=streams.stream("client"))
    found = await client.read("/version")
    missing = sorted(entry.name for entry in IN_TREE if not entry.built)
    sandbox = str(found.get("gitVersion", "")).endswith(SANDBOX_MARK)
    if missing and not experimental and not sandbox:
        raise UsageError(f"{access.server} {NOT_THE_SANDBOX.format(', '.join(missing))}")
