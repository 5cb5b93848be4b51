"""``moorage scale auto``: nodes come and go by themselves."""

from __future__ import annotations

from pathlib import Path

import click

from moorage.cli.options import (
    config_option,
    groups_option,
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
@groups_option
@plugin_option
@seed_option
@verbose_option
@kubeconfig_option
def auto(  # noqa: PLR0913 - one parameter an option
    *,
    bounds: str,
    shapes: tuple[str, ...],
    idle: str,
    config: Path | None,
    groups: bool,
    plugins: tuple[str, ...],
    seed: int | None,
    verbose: int,
    kubeconfig: str,
    context: str,
) -> None:
    """Add nodes for pending pods and remove empty nodes, until Ctrl-C or SIGTERM.

    The cluster has at least MIN and at most MAX nodes. A stand-in for cluster-autoscaler.
    """
    from moorage.base.clock import SystemClock
    from moorage.base.process import Ending, run_loop, until_ended
    from moorage_sandbox.cli.scale.autoscaler_process import autoscale
    from moorage_sandbox.sandbox.settings import AutoscalerSettings

    start_logging(verbose)
    settings = AutoscalerSettings(
        kubeconfig=kubeconfig,
        context=context,
        bounds=bounds,
        idle=idle,
        shapes=shapes,
        config=config,
        plugins=plugins,
        groups=groups,
        seed=seed,
    )

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(autoscale(settings, SystemClock()), ending, name="autoscaler")

    run_loop(main())
