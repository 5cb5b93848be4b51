"""``moorage bench questions``: what a running scheduler loses while what-if is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.questions_run import QuestionsResult

_EPILOG = """
\b
Examples:
  moorage bench questions
  moorage bench questions --nodes 500 --pods 1000 --rounds 1 -o json

Plain pods are scheduled through an API server, as in `moorage bench basic --mode server`, in turn
without and with questions. What-if about one more pod is asked again as soon as it is answered.
"""


@click.command("questions", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option("--init-pods", type=click.IntRange(1), default=1000, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(1), default=3000, show_default=True, metavar="N")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of runs without, and of runs with questions.",
)
@output_option()
@repeated_seed_option
def bench_questions(
    *, nodes: int, init_pods: int, pods: int, rounds: int, output: Form, seed: int
) -> None:
    """Place plain pods while what-if is asked again and again: pods a second, time of an answer."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.questions_run import measure_questions
    from moorage_lab.bench.workload import basic

    result = run_loop(
        measure_questions(
            basic(nodes=nodes, init_pods=init_pods, pods=pods),
            nodes=nodes,
            pods=pods,
            rounds=rounds,
            clock=SystemClock(),
            streams=Streams(seed),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, result, text=lambda: "\n".join(_lines(result)))


def _lines(result: QuestionsResult) -> list[str]:
    return [
        f"{result.nodes} nodes, {result.pods} pods a run",
        f"without questions  {', '.join(f'{each:.0f}' for each in result.without)} pods/s",
        f"with questions     {', '.join(f'{each:.0f}' for each in result.with_questions)} pods/s, "
        f"loss {result.loss_percent:.1f} %",
        f"scheduler's CPU    {_each(result.cpu_without)} ms a pod without, "
        f"{_each(result.cpu_with_questions)} with",
        f"{result.answers} answers meanwhile, median {result.median_ms:.0f} ms; the first, for "
        f"which the state is copied, {result.first_ms:.0f} ms",
        f"while no pod comes: one pod {result.quiet_ms:.0f} ms, a gang of 500 "
        f"{result.gang_ms:.0f} ms; a question takes the scheduler {result.loop_ms:.1f} ms of CPU",
    ]


def _each(values: tuple[float, ...]) -> str:
    return ", ".join(f"{each:.2f}" for each in values)
