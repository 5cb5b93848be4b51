"""``moorage bench``: measure on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.options import seed_option

if TYPE_CHECKING:  # start-up: the command line imports no engine before a command needs it
    from moorage.bench.report import Result
    from moorage.bench.workload import Workload

_EPILOG = """
\b
Examples:
  moorage bench basic                                5000 nodes, 10000 pods, engine alone
  moorage bench basic --mode server                  the same through an API server
  moorage bench basic --nodes 500 --pods 1000 -o json

\b
The digest tells the placements: the same seed gives the same digest (mode engine).
Compare figures only from the same machine, best as ratios from one session.
"""


@click.group()
def bench() -> None:
    """Measure how fast moorage decides on this machine."""


@bench.command(epilog=_EPILOG)
@click.option("--nodes", default=5000, metavar="N", type=click.IntRange(min=1), show_default=True)
@click.option("--init-pods", default=1000, metavar="N", type=click.IntRange(0), show_default=True)
@click.option("--pods", default=10000, metavar="N", type=click.IntRange(min=1), show_default=True)
@click.option(
    "--mode",
    type=click.Choice(["engine", "server"]),
    default="engine",
    help="engine: queue, decision and cache alone. server: through an API server over HTTPS. "
    "Default: engine.",
)
@seed_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def basic(
    *,
    nodes: int,
    init_pods: int,
    pods: int,
    mode: Literal["engine", "server"],
    seed: int | None,
    output: Literal["text", "json"],
) -> None:
    """Schedule plain pods on plain nodes (scheduler_perf's SchedulingBasic), all nodes scored."""
    import msgspec

    from moorage.bench.workload import basic as workload

    def progress(line: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"  {line} ...", err=True)

    result = _run(
        workload(nodes=nodes, init_pods=init_pods, pods=pods),
        mode,
        seed=1 if seed is None else seed,
        progress=progress,
    )
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result.as_json())).decode())
    else:
        click.echo("\n".join(result.as_lines()))


def _run(work: Workload, mode: str, *, seed: int, progress: Callable[[str], None]) -> Result:
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.bench.engine_run import EngineRun
    from moorage.bench.server_run import ServerRun
    from moorage.plugins.in_tree import in_tree_registry
    from moorage.sandbox.process import run_loop

    clock, streams = SystemClock(), Streams(seed)
    if mode == "engine":
        run = EngineRun(work, in_tree_registry(), clock=clock, streams=streams)
        return run.run(progress)
    return run_loop(ServerRun(work, clock=clock, streams=streams, progress=progress).run())
