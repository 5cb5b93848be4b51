"""``moorage bench``: measure on this machine."""

from __future__ import annotations

from typing import Literal

import click

# Runs are compared with each other, so they repeat unless told otherwise.
_SEED = 1

_EPILOG = """
\b
Examples:
  moorage bench basic                           decisions alone: 5000 nodes, 10000 pods
  moorage bench basic --mode server             through an API server, in three processes
  moorage bench basic --nodes 500 --pods 1000 -o json

\b
The workload is SchedulingBasic of Kubernetes' scheduler_perf, and the JSON has its dataItems, so
results can be laid beside kube-scheduler's. The same seed gives the same digest of placements.
"""


@click.group()
def bench() -> None:
    """Measure how fast moorage decides on this machine."""


@bench.command(epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option(
    "--init-pods",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    metavar="N",
    help="Pods placed before measuring begins.",
)
@click.option(
    "--pods",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Pods measured.",
)
@click.option(
    "--mode",
    type=click.Choice(["engine", "server"]),
    default="engine",
    show_default=True,
    help="engine: deciding alone. server: through an API server over HTTPS.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=_SEED,
    show_default=True,
    metavar="NUMBER",
    help="Seed of all random choices.",
)
def basic(
    *,
    nodes: int,
    init_pods: int,
    pods: int,
    mode: Literal["engine", "server"],
    output: Literal["text", "json"],
    seed: int,
) -> None:
    """Place plain pods on plain nodes: pods a second, time of a decision, memory."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.bench.workload import basic as workload_of
    from moorage.cli.render import json_text

    workload = workload_of(nodes=nodes, init_pods=init_pods, pods=pods)
    clock, streams = SystemClock(), Streams(seed)

    def progress(line: str) -> None:
        click.echo(line, err=True)

    if mode == "engine":
        from moorage.bench.engine_run import EngineRun
        from moorage.plugins.in_tree import in_tree_registry

        engine = EngineRun(workload, in_tree_registry(), clock=clock, streams=streams)
        result = engine.run(progress)
    else:
        from moorage.bench.server_run import ServerRun
        from moorage.sandbox.process import run_loop

        server = ServerRun(workload, clock=clock, streams=streams, progress=progress)
        result = run_loop(server.run())
    if output == "json":
        click.echo(json_text(result.as_json()))
    else:
        click.echo("\n".join(result.as_lines()))
