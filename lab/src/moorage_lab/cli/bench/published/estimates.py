"""``moorage bench estimates``: how often estimates of starts hold, on a trace of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_RUN_TIMES = ("exact", "inexact", "learned")
_EPILOG = """
\b
Examples:
  moorage bench estimates lublin_256.swf --jobs 1000
  moorage bench estimates site.swf.gz --processors 1152 --run-times learned -o json

\b
TRACE is a file in Standard Workload Format, plain or gzipped. Its jobs are pods on one node with
as many cpus as the machine has processors, and the scheduler's own cycle decides. Then estimates
are asked for at arrival and at half the wait, with what was known at the time:
  held      share of the 80 % intervals that held; an infinite one did not
  thirds    the same for short, middle and long waits
  width     median width; "by rate": of position x mean time between starts, with factors fitted
            to the outcomes so that as many hold
  score     mean interval score; also of the simple rules: by rate, and by the last waits
"""


@click.command("estimates", epilog=_EPILOG)
@click.argument("trace", metavar="TRACE")
@click.option(
    "--jobs",
    type=click.IntRange(50, 1_000_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="Jobs that are played.",
)
@click.option(
    "--from",
    "first",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Jobs of the trace that are left out before these.",
)
@click.option(
    "--run-times",
    type=click.Choice(_RUN_TIMES),
    multiple=True,
    help="What is known: exact, declared one to five times too long (inexact), or learned from "
    "jobs that ended. Repeatable. Default: all.",
)
@click.option(
    "--roll-outs",
    type=click.IntRange(1, 1000),
    default=40,
    show_default=True,
    metavar="N",
    help="Roll-outs of one estimate.",
)
@click.option(
    "--processors",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Processors of the machine. Default: of the header.",
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Of all draws.")
@output_option()
def bench_estimates(
    *,
    trace: str,
    jobs: int,
    first: int,
    run_times: tuple[str, ...],
    roll_outs: int,
    processors: int | None,
    seed: int,
    output: Form,
) -> None:
    """Ask for estimates of starts on a trace of jobs, and compare them with what happened."""
    from typing import cast

    from moorage.base.errors import UsageError
    from moorage.cli.render import show
    from moorage_lab.bench.estimates.asking import RunTimes, ask_all
    from moorage_lab.bench.estimates.replay import play_jobs
    from moorage_lab.bench.estimates.report import as_json, as_lines, figures_of
    from moorage_lab.bench.queues.experiment import queue_of_file

    queue = queue_of_file(trace, processors)
    chosen = queue.jobs[first : first + jobs]
    if len(chosen) < jobs:
        raise UsageError(f"{trace}: has {len(queue.jobs)} jobs: give --jobs or --from")
    played = play_jobs(chosen, queue.processors)
    waited = sum(each.wait for each in played) / len(played) / 60
    click.echo(
        f"{jobs} jobs on 1 node of {queue.processors} cpus: mean wait {waited:.1f} min", err=True
    )
    figures = []
    for name in run_times or _RUN_TIMES:
        estimates = ask_all(
            played,
            queue.processors,
            run_times=cast("RunTimes", name),
            roll_outs=roll_outs,
            seed=seed,
        )
        figures += figures_of(name, estimates)
    show(output, as_json(figures), text="\n".join(as_lines(figures)))
