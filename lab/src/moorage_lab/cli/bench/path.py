"""``moorage bench path``: the processor time of a pod's way through the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench path
  moorage bench path --rate 500                  pods come steadily: latencies
  moorage bench path --nodes 500 --pods 2000 -o json

The scheduler runs in this process and speaks HTTPS with a server that answers every call at once.
Pods come by its watch. So all of the time is the scheduler's own.
"""


@click.command("path", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option(
    "--init-pods",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Pods placed before measuring begins.",
)
@click.option(
    "--pods",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Pods measured.",
)
@click.option(
    "--window",
    type=click.IntRange(1, 999),
    default=500,
    show_default=True,
    metavar="N",
    help="Pods without a node or an Event at a time.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=0.0,
    metavar="PODS",
    help="Pods that come each second; 0 keeps the window full.  [default: 0]",
)
@click.option(
    "--parts/--no-parts", default=True, show_default=True, help="Measure each part of the way."
)
@output_option()
@repeated_seed_option
def bench_path(
    *,
    nodes: int,
    init_pods: int,
    pods: int,
    window: int,
    rate: float,
    parts: bool,
    output: Form,
    seed: int,
) -> None:
    """Place plain pods over HTTPS with a server that costs nothing: CPU of each part."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.path.run import PathPlan, measure_path

    plan = PathPlan(
        nodes=nodes, init_pods=init_pods, pods=pods, window=window, rate=rate, parts=parts
    )
    result = run_loop(
        measure_path(
            plan,
            in_tree_registry(),
            clock=SystemClock(),
            streams=Streams(seed),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, result.as_json(), text="\n".join(result.as_lines()))
