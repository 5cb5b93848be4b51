"""``moorage bench``: measure on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.command_group import CommandGroup
from moorage.cli.options import output_option, repeated_seed_option
from moorage_lab.bench.catalogue import WORKLOADS, Size

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.report import Result

# Runs are compared with each other, so they repeat unless another seed is given.
_SEED = 1

_EPILOG = """
\b
Examples:
  moorage bench basic                           decisions alone: 5000 nodes, 10000 pods
  moorage bench basic --mode server             through an API server, in three processes
  moorage bench basic --nodes 500 --pods 1000 -o json

\b
The workload is SchedulingBasic of Kubernetes' scheduler_perf, and the JSON has its dataItems, so
results can be laid next to kube-scheduler's. The same seed gives the same digest of placements.
"""


_GROUP_EPILOG = """
\b
Examples:
  moorage bench basic
  moorage bench workload mixed -o json
"""


@click.group(cls=CommandGroup, epilog=_GROUP_EPILOG)
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
@click.option(
    "--records", is_flag=True, help="Keep a record of each attempt, as `moorage run` does."
)
@output_option()
@repeated_seed_option
def basic(
    *,
    nodes: int,
    init_pods: int,
    pods: int,
    mode: Literal["engine", "server"],
    records: bool,
    output: Form,
    seed: int,
) -> None:
    """Place plain pods on plain nodes: pods a second, time of a decision, memory."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage_lab.bench.workload import basic as workload_of

    workload = workload_of(nodes=nodes, init_pods=init_pods, pods=pods)
    clock, streams = SystemClock(), Streams(seed)

    def progress(line: str) -> None:
        click.echo(line, err=True)

    if mode == "engine":
        from moorage.plugins.in_tree import in_tree_registry
        from moorage_lab.bench.engine_run import EngineRun

        engine = EngineRun(
            workload, in_tree_registry(), clock=clock, streams=streams, records=records
        )
        result = engine.run(progress)
    else:
        from moorage.base.process import run_loop
        from moorage_lab.bench.server_run import ServerRun

        server = ServerRun(workload, clock=clock, streams=streams, progress=progress)
        result = run_loop(server.run())
    _tell(result, output)


def _tell(result: Result, output: Form) -> None:
    from moorage.cli.render import show

    show(output, result.as_json(), text="\n".join(result.as_lines()))


def _workload_epilog() -> str:
    width = max(len(name) for name in WORKLOADS)
    lines = []
    for name, recipe in WORKLOADS.items():
        size = f"{recipe.size.nodes}, {recipe.size.init_pods} + {recipe.size.pods}"
        lines += [f"  {name:{width}}  {size}", f"    {recipe.about}"]
    listed = "\n".join(lines)
    return f"""
\b
Workloads, after scheduler_perf's: nodes, pods before measuring + pods measured.
{listed}

\b
Examples:
  moorage bench workload pod-anti-affinity
  moorage bench workload mixed --nodes 500 --init-pods 500 --pods 200 -o json
  moorage bench workload preemption --all-candidates
"""


@bench.command(epilog=_workload_epilog())
@click.argument("name", type=click.Choice(list(WORKLOADS)), metavar="NAME")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Default: see below.")
@click.option(
    "--init-pods", type=click.IntRange(0), metavar="N", help="Pods placed before measuring begins."
)
@click.option("--pods", type=click.IntRange(1), metavar="N", help="Pods measured.")
@click.option(
    "--all-candidates",
    is_flag=True,
    help="Preemption looks at every node instead of a tenth of those worth a try.",
)
@click.option(
    "--records", is_flag=True, help="Keep a record of each attempt, as `moorage run` does."
)
@output_option()
@repeated_seed_option
def workload(
    *,
    name: str,
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    all_candidates: bool,
    records: bool,
    output: Form,
    seed: int,
) -> None:
    """Run a named workload against the deciding half alone."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.engine_run import EngineRun
    from moorage_lab.bench.preempting import looking_at_every_node

    recipe = WORKLOADS[name]
    size = Size(
        recipe.size.nodes if nodes is None else nodes,
        recipe.size.init_pods if init_pods is None else init_pods,
        recipe.size.pods if pods is None else pods,
    )
    engine = EngineRun(
        recipe.workload(size),
        in_tree_registry(),
        clock=SystemClock(),
        streams=Streams(seed),
        loaded=looking_at_every_node() if all_candidates else None,
        records=records,
    )
    _tell(engine.run(lambda line: click.echo(line, err=True)), output)


_PLUGINS_EPILOG = """
\b
Examples:
  moorage bench plugins
  moorage bench plugins --nodes 1000 -o json

Each plugin gets pods that give it work, on a cluster that takes a pod between two measurements:
the time of its PreFilter and Filter over all nodes, and of its PreScore, Score and NormalizeScore
over those that fit, nothing reused. DynamicResources is left out: what it costs is a matter
of the devices it searches. The JSON has the plugins alone.
"""


def _sizes(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    del context, parameter
    parts = value.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise click.BadParameter(f"{value!r} is no list of positive numbers such as 1000,5000")
    return sorted({int(part) for part in parts})


@bench.command(epilog=_PLUGINS_EPILOG)
@click.option(
    "--nodes",
    callback=_sizes,
    default="1000,5000,15000",
    show_default=True,
    metavar="N,N,...",
    help="Sizes of the clusters, from 10 nodes on; one pod on each node.",
)
@output_option()
def plugins(*, nodes: list[int], output: Form) -> None:
    """Measure what each plugin costs, and whole decisions, as clusters grow."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.plugin_costs import costs_json, costs_lines, measure

    clock = SystemClock()
    costs = measure(
        nodes,
        in_tree_registry(),
        clock=clock,
        streams=Streams(_SEED),
        progress=lambda line: click.echo(line, err=True),
    )
    report = costs_json(costs, now_ns=clock.now_ns())
    show(output, report, text="\n".join(costs_lines(costs)))


_PACKING_EPILOG = """
\b
Examples:
  moorage bench packing examples/profiles/packing.yaml
  moorage bench packing examples/profiles/packing.yaml --plot packing.svg

Every profile of CONFIG gets an empty cluster of nodes with 8 GPUs and the same pods in the same
order: training jobs of 1, 2 and 4 GPUs between replicas of services. "Whole nodes" is what is left
for jobs of 8 GPUs, "stranded" are free GPUs next to taken ones. Drawing needs matplotlib.
"""


@bench.command(epilog=_PACKING_EPILOG)
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False), metavar="CONFIG")
@click.option("--nodes", type=click.IntRange(1), default=24, show_default=True, metavar="N")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the nodes as bars, a column for each profile: .svg, .png or .pdf.",
)
@output_option()
@repeated_seed_option
def packing(
    *,
    config: Path,
    nodes: int,
    plot: Path | None,
    output: Form,
    seed: int,
) -> None:
    """Compare how profiles pack the same pods."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.cli.render import Columns, show
    from moorage.config.load import load_config
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.packing import GPU, pack
    from moorage_sandbox.pictures.bars import draw, panel
    from moorage_sandbox.pictures.files import check_picture

    if plot is not None:
        check_picture(plot)
    packings = pack(
        load_config(config),
        in_tree_registry(),
        node_count=nodes,
        clock=SystemClock(),
        streams=Streams(seed),
    )
    if plot is not None:
        columns = [
            [
                panel(
                    each.nodes,
                    each.pods,
                    resource,
                    title=each.profile,
                    group_of=lambda pod: pod.metadata.labels["app"],
                )
                for resource in (GPU, "cpu")
            ]
            for each in packings
        ]
        draw(columns, plot)
    table = Columns(["PROFILE", "PODS", "PENDING", "GPUS", "WHOLE NODES", "STRANDED", "DIGEST"])
    rows = [
        [
            each.profile,
            str(len(each.pods)),
            str(each.pending),
            f"{each.gpus_percent} %",
            f"{each.whole_nodes} of {nodes}",
            str(each.gpus_stranded),
            each.digest[:12],
        ]
        for each in packings
    ]
    show(output, [each.as_json() for each in packings], text="\n".join(table.lines(rows)))


_GANG_EPILOG = """
\b
Examples:
  moorage bench gang
  moorage bench gang --nodes 500 --gangs 100 -o json

A decision tries every member of a gang next to those before it, all nodes scored, and takes it
back; gangs that come one after another are assumed. The same seed gives the same digest of places.
"""


@bench.command(epilog=_GANG_EPILOG)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option(
    "--sizes",
    default="8,64,512",
    show_default=True,
    metavar="N,N...",
    callback=_sizes,
    help="Members of the gangs decided about.",
)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, metavar="N")
@click.option(
    "--gangs",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Gangs of 8 that come one after another.",
)
@output_option()
@repeated_seed_option
def gang(
    *,
    nodes: int,
    sizes: list[int],
    repeats: int,
    gangs: int,
    output: Form,
    seed: int,
) -> None:
    """Place gangs of identical pods: time of a group's decision, gangs a second."""
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.gangs.run import GangRun

    run = GangRun(nodes, in_tree_registry(), clock=SystemClock(), streams=Streams(seed))
    result = run.run(sizes, repeats=repeats, gangs=gangs, gang_pods=8)
    show(output, result.as_json(), text="\n".join(result.as_lines()))
