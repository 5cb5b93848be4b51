"""``moorage bench gang-arrivals``: jobs that arrive at random, with and without gangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench gang-arrivals
  moorage bench gang-arrivals --mode trial --mode default
  moorage bench gang-arrivals --nodes 60 --jobs 40 --largest 32 -o json

A job starts when all its pods have a node, and works for 20 to 60 seconds. Without Coscheduling
jobs that are placed in part hold nodes that nobody works on, and may stop each other for good.
The run is in virtual time: of the columns only the last one depends on the machine. Of all-or-none
it is checked after every attempt that each group has a place for all its pods or for none, that
nobody waits on a node, and that no job waits for long while there is room for all of it.
"""


@click.command("gang-arrivals", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=500, show_default=True, metavar="N")
@click.option("--jobs", type=click.IntRange(1), default=200, show_default=True, metavar="N")
@click.option(
    "--largest",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="N",
    help="Most pods a job has; the least is 1.",
)
@click.option(
    "--every",
    type=click.FloatRange(0, min_open=True),
    default=0.2,
    show_default=True,
    metavar="SECONDS",
    help="Time between two jobs on average.",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(["trial", "permit", "default"]),
    multiple=True,
    help="Run only these; may be given several times.",
)
@output_option()
@repeated_seed_option
def bench_gang_arrivals(
    *,
    nodes: int,
    jobs: int,
    largest: int,
    every: float,
    modes: tuple[Literal["trial", "permit", "default"], ...],
    output: Form,
    seed: int,
) -> None:
    """Let jobs of many sizes arrive at random: makespan and use, with and without gangs."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.arrival_report import MODES, as_lines
    from moorage_lab.bench.gang_arrivals import ArrivalRun, plan

    if largest > nodes * 8:
        raise click.BadParameter(f"jobs of {largest} pods do not fit {nodes} nodes of 8")
    planned = plan(Streams(seed), jobs=jobs, largest=largest, every_seconds=every)
    results = []
    for mode in modes or MODES:
        click.echo(f"{mode} ...", err=True)
        run = ArrivalRun(planned, nodes=nodes, mode=mode, watch=SystemClock())
        results.append(run.run())
    lines = as_lines(results, nodes=nodes, jobs=jobs)
    show(output, {"results": results}, text="\n".join(lines))
