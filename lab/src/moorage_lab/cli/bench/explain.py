"""``moorage bench explain``: how long an answer of ``moorage explain pod`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.explain.run import ExplainResult

_EPILOG = """
\b
Examples:
  moorage bench explain
  moorage bench explain --nodes 1000 --pods-per-node 30 -o json

Pending pods of several causes are explained on a full cluster, suggestions included. Times are user
CPU time: for that long the loop of a scheduler that is asked would be busy.
"""


@click.command(epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(10), default=5000, show_default=True, metavar="N")
@click.option("--pods-per-node", type=click.IntRange(1), default=10, show_default=True, metavar="N")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How often each cause is asked about.",
)
@output_option()
def explain(*, nodes: int, pods_per_node: int, rounds: int, output: Form) -> None:
    """Measure how long it takes to explain a pod."""
    from moorage.base.clock import SystemClock
    from moorage.cli.render import show
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.explain.run import measure_explanations

    result = measure_explanations(
        in_tree_registry(),
        nodes=nodes,
        pods_a_node=pods_per_node,
        rounds=rounds,
        clock=SystemClock(),
        progress=lambda line: click.echo(line, err=True),
    )
    show(output, result, text=lambda: "\n".join(_lines(result)))


def _lines(result: ExplainResult) -> list[str]:
    width = max(map(len, result.by_cause))
    return [
        f"{result.questions} answers, {result.nodes} nodes, {result.pods} pods, "
        f"{result.suggestions} suggestions",
        f"p50 {result.p50_ms} ms, p95 {result.p95_ms} ms, max {result.max_ms} ms",
        *(f"  {name:<{width}}  {ms} ms" for name, ms in result.by_cause.items()),
    ]
