"""``moorage bench soak``: pods and nodes come and go, and no pod may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench soak                            10000 pods, 1000 nodes, two schedulers
  moorage bench soak --nodes 50 --pods 500      the same in short
  moorage bench soak -o json

Starts an API server and two `moorage run` with different schedulerNames that want the same nodes.
Groups of nodes leave with their pods and come back under the same names; a foreign binder binds
pods without looking at what is free, some of them the schedulers' own; kubelets refuse what does
not fit. What is lost is replaced. In the end every pod runs or has a reported reason, none was
bound twice, no node has more than fits, and both caches hold what the server has.

\b
Exit codes: 0 all of that is so, 1 something is not (FAULT lines say what).
"""


@click.command(epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(10), default=1000, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(1), default=10_000, show_default=True, metavar="N")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=150.0,
    show_default=True,
    metavar="N",
    help="Pods created a second.",
)
@output_option()
@repeated_seed_option
@click.pass_context
def soak(
    ctx: click.Context,
    *,
    nodes: int,
    pods: int,
    rate: float,
    output: Form,
    seed: int,
) -> None:
    """Have two schedulers and a stranger place pods on nodes that come and go."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.soak.plan import SoakPlan
    from moorage_lab.bench.soak.run import measure_soak

    report = run_loop(
        measure_soak(
            SoakPlan(nodes=nodes, pods=pods, pods_per_second=rate),
            clock=SystemClock(),
            streams=Streams(seed),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, report.as_json(), text="\n".join(report.as_lines()))
    ctx.exit(1 if report.faults else 0)
