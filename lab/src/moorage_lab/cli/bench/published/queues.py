"""``moorage bench queues``: policies of job queues, against a published table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import output_option
from moorage_lab.cli.bench.published.seeds import seed_list

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.queues.experiment import Queue

_BACKFILL = {"none": (False,), "easy": (True,), "both": (False, True)}

_EPILOG = """
\b
Examples:
  moorage bench queues lublin_256.swf lublin_256_new2.swf
  moorage bench queues lublin_256.swf --policy SAF --policy Headroom --backfill none
  moorage bench queues --draw one --draw two --seeds 101-110 --policy Headroom
  moorage bench queues site.swf.gz --processors 1152 --head fresh -o json

\b
TRACE is a file in Standard Workload Format, plain or gzipped. The two traces of the published
table are in the folder data of github.com/DIR-LAB/deep-batch-scheduler; they are known by their
content. The exit code is 1 where a value is not equal to the published one.

\b
Ten samples of 1,024 jobs are played on an empty machine, the same ones for every policy:
  slowdown   (wait + run time) / run time, at least 1; run times below 10 s count as 10 s
  used       share of the machine that jobs had until the last of them started
"sticky" plays as the published experiments: the head is chosen once and stays until it starts.
"fresh" chooses it anew whenever a job comes or ends. SAF and Headroom are played fresh, all
others sticky, unless --head says otherwise; Headroom is always played fresh.
"""


def _policies(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[Any, ...]:
    from moorage_lab.bench.queues.policies import POLICIES

    del context, parameter
    by_name = {name.lower(): policy for name, policy in POLICIES.items()}
    for name in value:
        if name.lower() not in by_name:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(POLICIES)}")
    names = dict.fromkeys(name.lower() for name in value)
    return tuple(by_name[name] for name in names or by_name)


@click.command("queues", epilog=_EPILOG)
@click.argument("traces", nargs=-1, metavar="[TRACE]...")
@click.option(
    "--draw",
    "draws",
    type=click.Choice(["one", "two"]),
    multiple=True,
    help="Play traces drawn from the model of Lublin and Feitelson, too: with one kind of jobs, or "
    "with interactive and batch jobs. Repeatable.",
)
@click.option(
    "--seeds",
    callback=seed_list,
    default="1",
    show_default=True,
    metavar="N,N-N",
    help="Seeds of the drawn traces.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    callback=_policies,
    metavar="POLICY",
    help="FCFS, WFP3, UNICEP, SJF, F1, SAF or Headroom, repeatable. Default: all.",
)
@click.option(
    "--headroom",
    type=click.FloatRange(0, 1),
    default=0.75,
    show_default=True,
    metavar="SHARE",
    help="Share of the machine that the longest jobs leave free under Headroom.",
)
@click.option(
    "--backfill",
    type=click.Choice(list(_BACKFILL)),
    default="both",
    show_default=True,
    help="Whether jobs behind the head may start while it waits.",
)
@click.option(
    "--head",
    type=click.Choice(["usual", "sticky", "fresh"]),
    default="usual",
    show_default=True,
    help="When the next job is chosen; see below.",
)
@click.option(
    "--processors",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Processors of the machine. Default: of the header; 256 for drawn traces.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="Samples of each trace.",
)
@click.option(
    "--sample-jobs",
    type=click.IntRange(1, 10_000),
    default=1024,
    show_default=True,
    metavar="N",
    help="Jobs of a sample.",
)
@output_option()
@click.pass_context
def bench_queues(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    /,
    *,
    traces: tuple[str, ...],
    draws: tuple[Any, ...],
    seeds: list[int],
    policies: tuple[Any, ...],
    headroom: float,
    processors: int | None,
    backfill: str,
    output: Form,
    **plan_values: Any,
) -> None:
    """Play job queues under several policies: average bounded slowdown and utilisation."""
    from moorage.base.clock import SystemClock
    from moorage.cli.render import show
    from moorage_lab.bench.queues.experiment import Plan, drawn_queue, play_queue, queue_of_file
    from moorage_lab.bench.queues.policies import HEADROOM, headroom_policy
    from moorage_lab.bench.queues.report import as_json, as_lines, equal_values

    if not traces and not draws:
        raise click.UsageError("give a TRACE, or --draw")
    plan = Plan(
        policies=tuple(
            headroom_policy(headroom) if each.name == HEADROOM else each for each in policies
        ),
        backfill=_BACKFILL[backfill],
        **plan_values,
    )
    queues: list[Queue] = [queue_of_file(each, processors) for each in traces]
    queues += [drawn_queue(kinds, seed, processors) for kinds in draws for seed in seeds]
    runs = []
    for queue in queues:
        for run in play_queue(queue, plan, SystemClock()):
            easy = ", EASY" if run.backfill else ""
            line = f"{run.trace} {run.policy}{easy}: {run.slowdown:.2f} ({run.seconds:.1f} s)"
            click.echo(line, err=True)
            runs.append(run)
    show(output, as_json(runs), text="\n".join(as_lines(runs)))
    equal, total = equal_values(runs)
    if equal < total:
        context.exit(1)
