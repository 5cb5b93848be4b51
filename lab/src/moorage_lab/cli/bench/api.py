"""``moorage bench api``: measures the API server of ``moorage up``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import DurationType, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench api                                 5000 nodes, 50000 pods, 50 watchers
  moorage bench api --nodes 50 --pods 500           the same in short
  moorage bench api --watchers 200 --rate 500 -o json

Starts `moorage up --no-scheduler` and two client processes, everything over HTTPS. One creates
nodes and pods one by one, then lists them: all, one label out of ten, as a Table and in protobuf.
Then it changes ConfigMaps of about the size of a pod at a steady rate, while the other process
watches them, each watcher over a connection of its own. The lag is the time from before a write is
sent until a watcher has read its event.

\b
Exit codes: 0 all objects were listed and all watchers saw all events in the same order, 1 not
(FAULT lines say what).
"""


@click.command("api", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(0), default=5000, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(1), default=50_000, show_default=True, metavar="N")
@click.option(
    "--connections",
    type=click.IntRange(1, 200),
    default=16,
    show_default=True,
    metavar="N",
    help="Of the process that writes, each with one call at a time.",
)
@click.option("--watchers", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@click.option(
    "--rate",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Writes a second while watchers watch.",
)
@click.option(
    "--seconds",
    type=DurationType(1, whole=True),
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How long to write at this rate.",
)
@output_option()
@click.pass_context
def bench_api(
    ctx: click.Context,
    *,
    nodes: int,
    pods: int,
    connections: int,
    watchers: int,
    rate: int,
    seconds: int,
    output: Form,
) -> None:
    """Load the API server: objects created, lists read, changes sent to many watchers."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.cli.render import show
    from moorage_lab.bench.api.run import ApiPlan, ApiRun

    plan = ApiPlan(
        nodes=nodes,
        pods=pods,
        connections=connections,
        watchers=watchers,
        rate=rate,
        seconds=seconds,
    )
    run = ApiRun(plan, clock=SystemClock(), progress=lambda line: click.echo(line, err=True))
    result = run_loop(run.run())
    show(output, result.as_json(), text="\n".join(result.as_lines()))
    if result.faults:
        ctx.exit(1)
