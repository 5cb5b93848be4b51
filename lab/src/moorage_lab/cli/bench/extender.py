"""``moorage bench extender``: measures the cost of calling an extender."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench extender
  moorage bench extender --names-only -o json

Four processes: API server, scheduler, extender, and this one, which creates the pods and watches
them get their nodes. Every pod costs a filter and a prioritize call about all nodes.
"""


@click.command("extender", epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(2), default=1000, show_default=True, metavar="N")
@click.option(
    "--init-pods",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="Pods placed before measuring begins: the first wait for everything to start.",
)
@click.option("--pods", type=click.IntRange(1), default=1000, show_default=True, metavar="N")
@click.option("--names-only", is_flag=True, help="nodeCacheCapable: send names, not whole nodes.")
@output_option()
@repeated_seed_option
def bench_extender(
    *,
    nodes: int,
    init_pods: int,
    pods: int,
    names_only: bool,
    output: Form,
    seed: int,
) -> None:
    """Place plain pods, asking an HTTP extender to filter and prioritize for each."""
    import msgspec

    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.extender_run import ExtenderRun
    from moorage_lab.bench.workload import basic

    run = ExtenderRun(
        basic(nodes=nodes, init_pods=init_pods, pods=pods),
        names_only=names_only,
        clock=SystemClock(),
        streams=Streams(seed),
        progress=lambda line: click.echo(line, err=True),
    )
    result, stats = run_loop(run.run())
    calls = ", ".join(f"{count} {verb}" for verb, count in stats.calls.items())
    told = f"extender: {calls} calls over {stats.connections} connections"
    report = {**result.as_json(), "extender": msgspec.to_builtins(stats)}
    show(output, report, text="\n".join([*result.as_lines(), told]))
