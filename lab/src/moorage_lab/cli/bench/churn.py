"""``moorage bench churn``: memory of server and scheduler while many pods come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench churn                              80000 pods
  moorage bench churn --nodes 10 --pods 500 -o json

An API server and `moorage run` have processes of their own. Each pod is deleted as soon as it has a
node. What is left is what the server keeps: Events, and the history of watches.
"""


@click.command("churn", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(1), default=80_000, show_default=True, metavar="N")
@click.option(
    "--present",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="N",
    help="Most pods at a time.",
)
@output_option()
@repeated_seed_option
def bench_churn(*, nodes: int, pods: int, present: int, output: Form, seed: int) -> None:
    """Create and delete pods: memory of the API server and of the scheduler afterwards."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.churn import ChurnPlan, measure_churn

    result = run_loop(
        measure_churn(
            ChurnPlan(nodes=nodes, pods=pods, present=present),
            clock=SystemClock(),
            streams=Streams(seed),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, result.as_json(), text="\n".join(result.as_lines()))
