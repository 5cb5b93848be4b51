"""``moorage bench start``: what the start of a scheduler costs next to a cluster that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_PODS_OF_A_NODE = 100

_EPILOG = """
\b
Examples:
  moorage bench start                              5000 nodes and 150000 running pods
  moorage bench start --listed pages               as a server without streaming lists sends them
  moorage bench start --nodes 100 --pods 3000 -o json

A server in a process of its own has the nodes, pods of 3 KB each with times and an annotation of
their own, and one pod without a node. `moorage run` starts against it over HTTPS. Meanwhile /livez
is asked every 20 ms over TLS.
"""


@click.command("start", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option(
    "--pods",
    type=click.IntRange(0),
    default=150_000,
    show_default=True,
    metavar="N",
    help=f"Running pods, at most {_PODS_OF_A_NODE} a node.",
)
@click.option(
    "--listed",
    type=click.Choice(["stream", "pages"]),
    default="stream",
    show_default=True,
    help="How the server sends lists.",
)
@output_option()
@repeated_seed_option
def bench_start(*, nodes: int, pods: int, listed: str, output: Form, seed: int) -> None:
    """Start a scheduler in a running cluster: time, CPU and memory until its first binding."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.cli.render import show
    from moorage_lab.bench.start.result import StartPlan
    from moorage_lab.bench.start.run import measure_start

    if pods > nodes * _PODS_OF_A_NODE:
        raise click.UsageError(
            f"--pods {pods}: {nodes} nodes have room for {nodes * _PODS_OF_A_NODE}"
        )
    result = run_loop(
        measure_start(
            StartPlan(nodes=nodes, pods=pods, streamed=listed == "stream"),
            seed=seed,
            clock=SystemClock(),
            progress=lambda line: click.echo(line, err=True),
        )
    )
    show(output, result.as_json(), text="\n".join(result.as_lines()))
