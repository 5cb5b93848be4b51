"""``moorage bench fgd``: policies that share GPUs, against published experiments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from moorage.cli.options import output_option
from moorage_lab.cli.bench.published.seeds import seed_list

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.bench.fgd.experiment import Run, Trace
    from moorage_lab.bench.fgd.published import Summary

# The seeds of the published runs.
_SEEDS = "42-51"

_EPILOG = """
\b
Examples:
  moorage bench fgd --data openb --trace default --policy FGD --seeds 42
  moorage bench fgd --data openb --jobs 2 --out results
  moorage bench fgd --data openb --policy Lookahead -o json

\b
DIR has the CSV files of the OpenB traces, as github.com/hkust-adsl/kubernetes-scheduler-simulator
has them in data/csv, plain or gzipped: openb_node_list_gpu_node.csv and openb_pod_list_TRACE.csv.
A file expected.csv next to them has the published results; the README of the data says how it is
made. The exit code is 1 where runs do not agree with it.

\b
Each experiment places the pods of a trace one after another, until they have asked for 130 % of
the GPUs. "unallocated" is the part of all GPUs that no pod has when pods have asked for 100 %.
Times are processor times.
"""


def _names(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    from moorage.plugins.gpu_share.policies import POLICIES

    del context
    if parameter.name == "policies":
        for name in value:
            if name not in POLICIES:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(POLICIES)}")
        return value or tuple(POLICIES)
    return value


@click.command("fgd", epilog=_EPILOG)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of the traces.",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    metavar="TRACE",
    help="A trace, repeatable. Default: all of the folder.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    callback=_names,
    metavar="POLICY",
    help="Random, DotProd, GpuClustering, GpuPacking, BestFit, FGD or Lookahead, repeatable. "
    "Default: all.",
)
@click.option(
    "--seeds",
    callback=seed_list,
    default=_SEEDS,
    show_default=True,
    metavar="N,N-N",
    help="Seeds of the order of pods and nodes.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Experiments at a time, each in a process.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    metavar="DIR",
    help="Keep finished experiments there: the same command goes on where it was.",
)
@output_option()
@click.pass_context
def bench_fgd(
    context: click.Context,
    *,
    data: Path,
    traces: tuple[str, ...],
    policies: tuple[str, ...],
    seeds: list[int],
    jobs: int,
    out: Path | None,
    output: Form,
) -> None:
    """Repeat published experiments on GPU sharing: policy x trace x seed."""
    from moorage.cli.render import show
    from moorage_lab.bench.fgd.experiment import Trace
    from moorage_lab.bench.fgd.openb import read_nodes, read_pods, traces_in
    from moorage_lab.bench.fgd.published import read_published, summarize

    nodes, published = read_nodes(data), read_published(data)
    loaded = [Trace(name, nodes, read_pods(data, name)) for name in traces or traces_in(data)]
    work = [
        _Work(trace, policy, seed, out) for trace, policy, seed in product(loaded, policies, seeds)
    ]
    summaries = []
    for _, group in groupby(_runs(work, jobs), key=lambda run: (run.trace, run.policy)):
        summaries.append(summarize(list(group), published))
        click.echo(_line(summaries[-1]), err=True)
    show(output, [each.as_json() for each in summaries], text=_table(summaries))
    if any(each.agrees is False for each in summaries):
        context.exit(1)


class _Work(NamedTuple):
    """An experiment to run, and the folder where it is kept."""

    trace: Trace
    policy: str
    seed: int
    out: Path | None


def _runs(work: list[_Work], jobs: int) -> Iterator[Run]:
    """Yield the runs in order, each as soon as it and those before it are done."""
    if jobs == 1:
        yield from map(_run, work)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_run, work)


def _run(work: _Work) -> Run:
    """Return an experiment that is kept, or run it."""
    from moorage.base.clock import SystemClock
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.fgd.experiment import run_experiment
    from moorage_lab.bench.fgd.result_files import read_result, write_result
    from moorage_lab.traces.memory import forget_clusters

    trace, policy, seed, out = work
    finished_run = read_result(out, trace, policy, seed) if out else None
    if finished_run is not None:
        return finished_run
    finished_run = run_experiment(
        trace, policy, seed, registry=in_tree_registry(), clock=SystemClock()
    )
    if out:
        write_result(out, trace, finished_run)
    forget_clusters(finished_run.decisions)
    return finished_run


def _line(summary: Summary) -> str:
    return f"{summary.trace} {summary.policy}: {summary.seconds:.1f} s an experiment"


def _table(summaries: list[Summary]) -> str:
    from moorage.cli.render import Columns

    rows: list[list[str]] = []
    for each in summaries:
        theirs = "-"
        if each.published_mean is not None:
            theirs = f"{each.published_mean:.2f} +- {each.published_deviation:.2f}"
        rows.append(
            [
                each.trace,
                each.policy,
                str(each.runs),
                f"{each.unallocated_mean:.2f} +- {each.unallocated_deviation:.2f}",
                theirs,
                f"{each.columns_equal} of {each.columns}" if each.columns else "-",
                {True: "yes", False: "no", None: "-"}[each.agrees],
                f"{each.seconds:.1f}",
                f"{each.microseconds_a_decision:.0f}",
            ]
        )
    header = [
        "TRACE",
        "POLICY",
        "RUNS",
        "UNALLOCATED %",
        "PUBLISHED %",
        "EQUAL COLUMNS",
        "AGREES",
        "SECONDS",
        "US A DECISION",
    ]
    return "\n".join(Columns(header).lines(rows))
