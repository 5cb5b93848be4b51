"""``moorage scale auto``: nodes come and go by themselves."""

from __future__ import annotations

from pathlib import Path

import click

from moorage.cli.options import (
    config_option,
    kubeconfig_option,
    plugin_option,
    seed_option,
    shape_option,
    start_logging,
    verbose_option,
)

_EPILOG = """
\b
Examples:
  moorage scale auto 3:50                                between 3 and 50 nodes
  moorage scale auto 0:20 --shape m5.4xlarge --shape p4d.24xlarge
                                                         the smallest that fits a pending pod

\b
`moorage up --autoscale 3:50` does the same from the start. Nodes that are empty for a while are
removed; pods are never evicted, so annotations such as
cluster-autoscaler.kubernetes.io/safe-to-evict make no difference. A node with the annotation
cluster-autoscaler.kubernetes.io/scale-down-disabled: "true" stays.
"""


@click.command(epilog=_EPILOG)
@click.argument("bounds", metavar="MIN:MAX")
@shape_option
@click.option(
    "--idle",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="How long a node has to be empty before it is removed, in the cluster's time.",
)
@config_option("The scheduler's KubeSchedulerConfiguration: its Filters say whether a pod fits.")
@plugin_option
@seed_option
@verbose_option
@kubeconfig_option
@click.option("--end-with-stdin", is_flag=True, hidden=True)
@click.option("--pace", type=(float, int, str, int), default=(1.0, 0, "", 0), hidden=True)
def auto(  # noqa: PLR0913 - one parameter an option
    *,
    bounds: str,
    shapes: tuple[str, ...],
    idle: str,
    config: Path | None,
    plugins: tuple[str, ...],
    seed: int | None,
    verbose: int,
    kubeconfig: str,
    context: str,
    end_with_stdin: bool,
    pace: tuple[float, int, str, int],
) -> None:
    """Add nodes for pending pods and remove empty nodes, until Ctrl-C or SIGTERM.

    The cluster has at least MIN and at most MAX nodes. A stand-in for cluster-autoscaler.
    """
    from moorage.base.process import Ending, Pace, run_loop, until_ended
    from moorage.base.rng import Streams
    from moorage.cli.checking import check_config
    from moorage.cli.cluster_choice import choose_cluster
    from moorage.client.http_transport import HttpTransport
    from moorage.client.writes import Client
    from moorage.plugins.from_outside import with_plugins
    from moorage_sandbox.cli.scale.server import check_server_is_sandbox
    from moorage_sandbox.sandbox.scaling.autoscaler import Autoscaler, Rules
    from moorage_sandbox.sandbox.scaling.groups import groups_of, idle_seconds_of, parse_bounds

    start_logging(verbose)
    loaded = with_plugins(check_config(config, plugins), plugins)
    rules = Rules(
        bounds=parse_bounds(bounds),
        groups=groups_of(shapes),
        idle_seconds=idle_seconds_of(idle),
        config=loaded.config,
        registry=loaded.registry,
    )
    chosen = Pace(*pace)
    clock, streams = chosen.clock(), Streams(seed)

    async def scale() -> None:
        access = choose_cluster(kubeconfig, context, writes=True, clock=clock).access
        transport = HttpTransport(access, user_agent="moorage-autoscaler")
        try:
            await check_server_is_sandbox(transport)
            client = Client(transport, rng=streams.stream("client"))
            await Autoscaler(client, rules, clock=clock, streams=streams).run()
        finally:
            await transport.close()

    async def main() -> None:
        ending = Ending(clock=clock)
        ending.listen()
        await until_ended(scale(), ending, name="autoscaler", child=end_with_stdin)

    run_loop(main(), chosen, clock)
