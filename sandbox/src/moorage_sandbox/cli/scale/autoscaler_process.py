"""Adds and removes nodes: the work of ``moorage scale auto``, and a process of a sandbox.

The process is ``python -m moorage_sandbox.cli.scale.autoscaler_process``. It reads
`AutoscalerSettings`; see `child_process`.
"""

from __future__ import annotations

import sys

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.cli.checking import check_config
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.options import start_logging
from moorage.cli.render import error_text
from moorage.client.http_transport import HttpTransport
from moorage.client.writes import Client
from moorage.config.own import with_groups
from moorage.plugins.from_outside import with_plugins
from moorage_sandbox.cli.scale.server import check_server_is_sandbox
from moorage_sandbox.sandbox.processes.child_process import run_child
from moorage_sandbox.sandbox.scaling.autoscaler import Autoscaler, Rules
from moorage_sandbox.sandbox.scaling.groups import groups_of, idle_seconds_of, parse_bounds
from moorage_sandbox.sandbox.settings import AutoscalerSettings


def main() -> int:
    """Add and remove nodes until the process should end; return the exit code."""
    start_logging(0)
    return run_child(AutoscalerSettings, autoscale, name="autoscaler", explain=error_text)


async def autoscale(settings: AutoscalerSettings, clock: Clock) -> None:
    """Add and remove nodes until cancelled.

    Raises
    ------
    UsageError
        A setting cannot be used, or the server is no sandbox.
    """
    config = check_config(settings.config, settings.plugins)
    loaded = with_plugins(with_groups(config) if settings.groups else config, settings.plugins)
    rules = Rules(
        bounds=parse_bounds(settings.bounds),
        groups=groups_of(settings.shapes),
        idle_seconds=idle_seconds_of(settings.idle),
        config=loaded.config,
        registry=loaded.registry,
    )
    streams = Streams(settings.seed)
    cluster = choose_cluster(settings.kubeconfig, settings.context, writes=True, clock=clock)
    transport = HttpTransport(cluster.access, user_agent="moorage-autoscaler")
    try:
        await check_server_is_sandbox(transport)
        client = Client(transport, rng=streams.stream("client"))
        await Autoscaler(client, rules, clock=clock, streams=streams).run()
    finally:
        await transport.close()


if __name__ == "__main__":
    sys.exit(main())
