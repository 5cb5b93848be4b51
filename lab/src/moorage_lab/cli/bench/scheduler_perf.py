"""``moorage bench scheduler-perf``: runs workload files of Kubernetes' scheduler_perf."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import DurationType, output_option, repeated_seed_option

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from moorage.base.clock import Clock
    from moorage.cli.render import Form
    from moorage_lab.bench.scheduler_perf.clusters import Cluster
    from moorage_lab.bench.scheduler_perf.data_items import DataItem
    from moorage_lab.bench.scheduler_perf.run_suite import Failed, Open, Suite
    from moorage_lab.bench.scheduler_perf.run_workload import Planned

_EPILOG = """
\b
Examples:
  moorage bench scheduler-perf                                    our own files, all of them
  moorage bench scheduler-perf --labels short                     their small workloads
  moorage bench scheduler-perf misc/performance-config.yaml --labels integration-test
  moorage bench scheduler-perf test/integration/scheduler_perf --filter SchedulingBasic/5000Nodes
  moorage bench scheduler-perf dra --data-items-dir results -o json

FILE is a workload file, and a folder stands for every performance-config.yaml below it. Each
workload runs in a cluster of its own. A workload that asks for an opcode, a feature gate or a kind
that moorage does not have is reported as not supported, by name.

\b
Exit codes: 0 nothing failed, 1 a workload failed or missed its threshold, 2 a file has faults.
"""


@click.command("scheduler-perf", epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--filter",
    "names",
    default="",
    metavar="CASE[/WORKLOAD]",
    help="Run only workloads with these names; both are regular expressions.",
)
@click.option(
    "--labels",
    default="",
    metavar="LABELS",
    help="Run only workloads with these labels, joined by commas; -LABEL excludes.",
)
@click.option(
    "--topic",
    default="",
    metavar="NAME",
    help="Name of the thresholds to use, where a workload has several; part of the name of the "
    "results' file.",
)
@click.option(
    "--mode",
    type=click.Choice(["engine", "server"]),
    default="engine",
    show_default=True,
    help="engine: everything in this process, no network. server: our API server over HTTPS.",
)
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Run at this API server instead, and remove the objects afterwards.",
)
@click.option(
    "--no-scheduler",
    is_flag=True,
    help="With --kubeconfig: leave the pods to the scheduler that runs there.",
)
@click.option(
    "--with-nodes",
    is_flag=True,
    help="With --kubeconfig: go on although the cluster has nodes.",
)
@click.option(
    "--data-items-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the results there, in a file as scheduler_perf names it.",
)
@click.option(
    "--wait",
    type=DurationType(above=True),
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="How long an operation waits for pods.",
)
@output_option()
@repeated_seed_option
@click.pass_context
def bench_scheduler_perf(ctx: click.Context, /, output: Form, **flags: Any) -> None:
    """Run workload files in the format of Kubernetes' scheduler_perf, unmodified."""
    from moorage.base.process import run_loop
    from moorage.cli.render import show
    from moorage_lab.bench.scheduler_perf.files import OWN, read_files

    if not flags["kubeconfig"] and (flags["no_scheduler"] or flags["with_nodes"]):
        raise click.UsageError("--no-scheduler and --with-nodes need --kubeconfig")
    files = read_files(flags["file"] or OWN)
    # People read each workload when it ends, as a run takes hours; a document comes at the end.
    suite, in_text = _suite(flags), output == "text"
    try:
        report = run_loop(
            suite.run(files, lambda lines: click.echo("\n".join(lines), err=not in_text))
        )
    finally:
        if flags["data_items_dir"] is not None and suite.ended:
            items = [item for each in suite.ended for item in each.items]
            _write(flags["data_items_dir"], flags["topic"], items)
    show(output, report.as_json(), text="")
    if report.malformed:
        ctx.exit(2)
    if any(each.has_failed for each in report.workloads):
        ctx.exit(1)


def _suite(flags: dict[str, Any]) -> Suite:
    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage_lab.bench.scheduler_perf.run_suite import Suite

    clock = SystemClock()
    return Suite(
        _opener(flags, clock),
        clock=clock,
        streams=Streams(flags["seed"]),
        names=flags["names"],
        labels=flags["labels"],
        topic=flags["topic"],
        wait_seconds=flags["wait"],
        progress=lambda line: click.echo(line, err=True),
    )


def _opener(flags: dict[str, Any], clock: Clock) -> Open:
    """Return the function that starts a cluster for a workload."""
    from moorage.plugins.in_tree import in_tree_registry
    from moorage_lab.bench.scheduler_perf.clusters import Settings, in_process
    from moorage_lab.bench.scheduler_perf.processes import (
        SchedulerProcess,
        at_kubeconfig,
        over_https,
    )

    registry = in_tree_registry()

    def opened(planned: Planned, failed: Failed) -> AbstractAsyncContextManager[Cluster]:
        if flags["mode"] == "engine" and not flags["kubeconfig"]:
            settings = Settings(
                config=planned.config, registry=registry, clock=clock, seed=flags["seed"]
            )
            return in_process(settings, failed)
        process = SchedulerProcess(
            config=planned.config_path,
            gates=planned.config.gates,
            seed=flags["seed"],
            clock=clock,
        )
        if not flags["kubeconfig"]:
            return over_https(process, failed)
        return at_kubeconfig(
            flags["kubeconfig"],
            None if flags["no_scheduler"] else process,
            failed,
            clock=clock,
            with_nodes=flags["with_nodes"],
        )

    return opened


def _write(folder: Path, topic: str, items: Sequence[DataItem]) -> None:
    from moorage.base.clock import SystemClock, rfc3339
    from moorage.cli.render import json_text
    from moorage_lab.bench.scheduler_perf.data_items import document

    folder.mkdir(parents=True, exist_ok=True)
    moment = rfc3339(SystemClock().now_ns())
    name = "_".join(filter(None, ("BenchmarkPerfScheduling_benchmark", topic, moment)))
    path = folder / f"{name}.json"
    path.write_text(json_text(document(items)), encoding="utf-8")
    click.echo(f"results written to {path}", err=True)
