"""``moorage simulate``: configurations against traces, in virtual time, without a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.base.errors import UsageError
from moorage.cli.options import emulation_options, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage_lab.traces.results import Results
    from moorage_lab.traces.scenario import Scenario
    from moorage_lab.traces.sweep import OnShare, Sweep

_EPILOG = """
\b
Examples:
  moorage simulate scenario.yaml
  moorage simulate scenario.yaml --jobs 2 --out results --report report.html
  moorage simulate scenario.yaml --dask tcp://10.0.0.1:8786 --out results
  moorage simulate --nodes nodes.yaml --pods pods.yaml
  moorage simulate --nodes dump.json --pods pods.yaml --config a.yaml --config b.yaml --seeds 10

\b
Exit codes:
  0  the runs are done
  1  a run failed
  2  bad input: the scenario, a file or a configuration has faults
"""

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog=_EPILOG)
@click.argument("scenario", type=_FILE, required=False, metavar="[SCENARIO]")
@click.option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="Nodes, with all else of a dump, instead of a scenario. May be given several times.",
)
@click.option("--pods", multiple=True, metavar="FILE", help="Pods that come; as --nodes.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="FILE",
    help="A configuration of the scheduler; may be given several times. Default: the default one.",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="WHERE:NAME",
    help="A plugin of yours for every --config, such as file.py:name.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Number of seeds: 1 to N, in place of those of the scenario.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Number of processes; results do not depend on it. Default: 1, and with --dask local one "
    "for each processor.",
)
@click.option(
    "--dask",
    default="",
    metavar="ADDRESS",
    help="Run on the Dask cluster with its scheduler there, such as tcp://10.0.0.1:8786, or on one "
    'of this machine: "local". Needs dask.distributed.',
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    metavar="DIR",
    help="Write all tables there, and keep finished runs: the same command goes on where it was.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "parquet"]),
    default="csv",
    show_default=True,
    help="Format of the tables in --out; parquet needs pyarrow.",
)
@click.option(
    "--report",
    type=_FILE,
    default=None,
    metavar="FILE",
    help="Write a report with tables and pictures, one .html file; needs matplotlib.",
)
@click.option(
    "--plot",
    "plots",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Draw the series; the suffix says the format: .svg, .png or .pdf. Needs matplotlib.",
)
@emulation_options
@output_option()
def simulate(  # noqa: PLR0913 - one parameter for each option
    *,
    scenario: Path | None,
    nodes: tuple[str, ...],
    pods: tuple[str, ...],
    configs: tuple[str, ...],
    plugins: tuple[str, ...],
    seeds: int | None,
    jobs: int | None,
    dask: str,
    out: Path | None,
    form: Any,
    report: Path | None,
    plots: tuple[Path, ...],
    version: str,
    oldest: str,
    output: Form,
) -> None:
    """Place the pods of traces under several configurations, and compare.

    SCENARIO says which nodes there are, which pods come and when, how long they run, and which
    configurations are tried. Everything happens in virtual time, with the queue, the decisions,
    preemption and groups of the scheduler itself; no server takes part.
    """
    from msgspec.structs import replace

    from moorage.cli.render import show, show_note
    from moorage_lab.cli.simulate.text import report as text_of
    from moorage_lab.traces.in_python import simulate as run

    _check(form, report, plots)
    _check_dask(dask, jobs)
    known = _known(scenario, nodes, pods, configs, plugins)
    if seeds is not None:
        known = replace(known, seeds=seeds)
    if version:
        known = replace(known, emulated_version=version)
    if oldest:
        known = replace(known, min_compatibility_version=oldest)
    results = run(known, jobs=jobs, dask=dask, out=out, on_sweep=_progress_of)
    for line in results.left_out:
        show_note(f"{line}; it is left out")
    _write(results, out, form, report, plots)
    plain = results.plain() if output in ("json", "yaml") else None
    show(output, plain, text=lambda: text_of(results))


def _check(form: str, report: Path | None, plots: tuple[Path, ...]) -> None:
    """Refuse what could not be written in the end, before anything is run."""
    from moorage_lab.traces.page import check_page
    from moorage_lab.traces.tables import arrow
    from moorage_sandbox.pictures.files import check_picture

    if form == "parquet":
        arrow("--format parquet")
    if report is not None:
        check_page(report)
    for file in plots:
        check_picture(file)


def _check_dask(where: str, jobs: int | None) -> None:
    """Refuse before anything is read what Dask could not do."""
    if not where:
        return
    from moorage_lab.traces.on_dask import LOCAL, dask

    dask()
    if where != LOCAL and jobs is not None:
        raise UsageError(
            f"--jobs {jobs}: the Dask cluster at {where} has the processes that it has; leave "
            "--jobs out"
        )


def _known(
    scenario: Path | None,
    nodes: tuple[str, ...],
    pods: tuple[str, ...],
    configs: tuple[str, ...],
    plugins: tuple[str, ...],
) -> Scenario:
    from moorage_lab.traces.scenario import read_scenario

    if scenario is not None:
        if nodes or pods or configs or plugins:
            raise UsageError(
                "a scenario says all that --nodes, --pods, --config and --plugin say: write it "
                "there, or leave the scenario out"
            )
        return read_scenario(scenario)
    return _of_flags(nodes, pods, configs, plugins)


def _of_flags(
    nodes: tuple[str, ...],
    pods: tuple[str, ...],
    configs: tuple[str, ...],
    plugins: tuple[str, ...],
) -> Scenario:
    """Return the scenario that flags say."""
    from moorage_lab.traces.scenario import API_VERSION, KIND, scenario_of

    if not nodes or not pods:
        raise UsageError("write a SCENARIO, or --nodes FILE and --pods FILE")
    names = _names(configs)
    return scenario_of(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "nodes": [{"file": each} for each in nodes],
            "pods": [{"file": each} for each in pods],
            "configurations": [
                {"name": name, "file": file, "plugins": list(plugins)}
                for name, file in zip(names, configs or [""], strict=True)
            ],
        },
        folder=Path(),
        source="the flags",
    )


def _names(configs: tuple[str, ...]) -> list[str]:
    """Return a name for each configuration: of its file, or the whole path where two are alike."""
    stems = [Path(each).stem for each in configs]
    if not configs:
        return ["default"]
    return [
        stem if stems.count(stem) == 1 else file for stem, file in zip(stems, configs, strict=True)
    ]


def _progress_of(sweep: Sweep) -> OnShare:
    """Tell on standard error how far the runs are."""
    from moorage.base.clock import SystemClock
    from moorage.cli.render import show_note
    from moorage_lab.traces.progress import ProgressLine

    often = sys.stderr.isatty()
    if sweep.known:
        show_note(f"{sweep.known} of {len(sweep)} runs were finished before")

    def write(line: str) -> None:
        if often:
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)
        else:
            click.echo(line, err=True)

    progress = ProgressLine(len(sweep), sweep.known, clock=SystemClock(), write=write, often=often)

    def tell(done: int, share: float) -> None:
        progress.show_share(done, share)
        if often and done == len(sweep):
            click.echo("\r\x1b[K", err=True, nl=False)

    return tell


def _write(
    results: Results, out: Path | None, form: Any, report: Path | None, plots: tuple[Path, ...]
) -> None:
    from moorage.cli.render import show_note

    if out is not None:
        try:
            files = results.write(out, form)
        except OSError as error:
            raise UsageError(f"cannot write to {out}: {error.strerror}") from error
        show_note(f"wrote {', '.join(file.name for file in files)} to {out}")
    if report is not None:
        from moorage_lab.traces.page import write_page

        write_page(results, report)
    for file in plots:
        from moorage_lab.traces.plots import write_pictures

        write_pictures(results, file)
