"""``moorage bench gang-arrivals``: jobs that arrive at random, all or none and otherwise."""

from __future__ import annotations

from typing import Literal

import click

_EPILOG = """
\b
Examples:
  moorage bench gang-arrivals
  moorage bench gang-arrivals --nodes 60 --jobs 40 --largest 32 -o json

A job starts when all its pods have a node, and works for 20 to 60 seconds. Without Coscheduling
jobs that are placed in part hold nodes that nobody works on, and may stop each other for good.
The run is in virtual time; how long it takes says nothing about the scheduler's speed.
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
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="NUMBER",
    help="Seed of all random choices.",
)
def bench_gang_arrivals(
    *,
    nodes: int,
    jobs: int,
    largest: int,
    every: float,
    output: Literal["text", "json"],
    seed: int,
) -> None:
    """Let jobs of many sizes arrive at random: makespan and use, with and without gangs."""
    import msgspec

    from moorage.base.rng import Streams
    from moorage.bench.gang_arrivals import MODES, ArrivalRun, as_lines, plan
    from moorage.cli.render import json_text

    if largest > nodes * 8:
        raise click.BadParameter(f"jobs of {largest} pods do not fit {nodes} nodes of 8")
    planned = plan(Streams(seed), jobs=jobs, largest=largest, every_seconds=every)
    results = []
    for mode in MODES:
        click.echo(f"{mode} ...", err=True)
        results.append(ArrivalRun(planned, nodes=nodes, mode=mode).run())
    if output == "json":
        click.echo(json_text({"results": [msgspec.to_builtins(each) for each in results]}))
    else:
        click.echo("\n".join(as_lines(results, nodes=nodes, jobs=jobs)))
