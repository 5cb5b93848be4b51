"""``moorage bench page``: what the page costs the scheduler that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import DurationType, output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.page.run import PageResult

_EPILOG = """
\b
Examples:
  moorage bench page
  moorage bench page --nodes 5000 --pods 50000 -o json

An API server and a scheduler with a page are started, and the cluster is filled. The first picture
is everything that the page shows; a viewer receives only changes after that. What a browser takes
for drawing is not in these figures.
"""


@click.command("page", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=100, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(1), default=1000, show_default=True, metavar="N")
@click.option(
    "--viewers",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="The most viewers; none and one are measured, too.",
)
@click.option(
    "--arrivals",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Pods created each second in the second half.",
)
@click.option(
    "--seconds",
    type=DurationType(0.1),
    default="20s",
    show_default=True,
    metavar="DURATION",
    help="How long each number of viewers is measured.",
)
@output_option()
@repeated_seed_option
def bench_page(
    *,
    nodes: int,
    pods: int,
    viewers: int,
    arrivals: int,
    seconds: float,
    output: Form,
    seed: int,
) -> None:
    """Serve a page to viewers: time of the first picture, the scheduler's CPU, bytes of changes."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.page.run import PagePlan, measure_page

    result = run_loop(
        measure_page(
            PagePlan(
                nodes=nodes,
                pods=pods,
                viewers=tuple(sorted({0, 1, viewers})),
                arrivals_per_second=arrivals,
                seconds=seconds,
            ),
            clock=SystemClock(),
            streams=Streams(seed),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, result, text=lambda: "\n".join(_lines(result)))


def _lines(result: PageResult) -> list[str]:
    return [
        f"{result.nodes} nodes, {result.pods} pods",
        f"first picture   {result.first_ms:.0f} ms, {result.first_bytes / 1e6:.2f} MB; "
        f"{result.first_cpu_ms:.0f} ms of the scheduler's CPU",
        f"next viewers    {result.next_ms:.0f} ms",
        "viewers  pods/s  scheduler's CPU  each viewer receives",
        *(
            f"{each.viewers:7}  {each.arrivals_per_second:6}  {each.core_percent:8.2f} % of a core"
            f"  {each.bytes_per_second:8} bytes/s"
            for each in result.costs
        ),
    ]
