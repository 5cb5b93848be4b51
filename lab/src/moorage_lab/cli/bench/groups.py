"""``moorage bench gang-arrivals`` and ``groups-complete``: jobs at random, and groups that fit."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.options import DurationType, output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_ARRIVALS_EPILOG = """
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


@click.command("gang-arrivals", epilog=_ARRIVALS_EPILOG)
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
    type=DurationType(above=True),
    default="200ms",
    show_default=True,
    metavar="DURATION",
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
    from moorage_lab.bench.gangs.arrival_report import MODES, as_lines
    from moorage_lab.bench.gangs.arrivals import ArrivalRun, plan

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


_COMPLETE_EPILOG = """
\b
Examples:
  moorage bench groups-complete
  moorage bench groups-complete --exact 0 --random 10000 --seed 100000
  moorage bench groups-complete --exact 4 --random 20 -o json

Every group fits by construction. Exact groups are cut out of six equal nodes, in six cells. Random
groups have 2 to 64 pods of 1 to 6 shapes on 50 to 5000 nodes; half of the groups have pods that may
not share a node, a third must be in one zone and prefer one rack. A time is the processor's, of the
whole decision: one order, then the search. A step is what happens without others having a turn.
Group number K has the seed SEED + K. Each group that is not placed in time is listed.
"""


@click.command("groups-complete", epilog=_COMPLETE_EPILOG)
@click.option(
    "--exact",
    type=click.IntRange(0),
    default=40,
    show_default=True,
    metavar="N",
    help="Exact groups in each of the six cells.",
)
@click.option(
    "--random",
    "random_groups",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    metavar="N",
    help="Random groups.",
)
@output_option()
@repeated_seed_option
def bench_groups_complete(*, exact: int, random_groups: int, output: Form, seed: int) -> None:
    """Place groups of unlike pods that fit: how many have places, and how long it takes."""
    from moorage.cli.render import show, show_note
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.group_search.generator import exact_cases, random_case
    from moorage_lab.bench.group_search.report import as_json, as_lines
    from moorage_lab.bench.group_search.run import decide_cases

    if not exact + random_groups:
        raise click.UsageError("--exact and --random are both 0: there is nothing to measure")
    cases = chain(
        exact_cases(seed, of_each=exact),
        (random_case(seed + number) for number in range(random_groups)),
    )
    show_note(f"{6 * exact} exact and {random_groups} random groups, seeds from {seed}")
    ends = decide_cases(cases, in_tree_registry())
    show(output, as_json(ends), text="\n".join(as_lines(ends)))
