"""The commands ``run``, ``hunt``, ``walk``, ``replay`` of ``moorage fault-sim``; see `company`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.base.errors import UsageError
from moorage.base.files import DATA_BYTES_MAX, read_file
from moorage.cli.command_group import CommandGroup
from moorage.cli.options import DurationType, output_option
from moorage.cli.render import Form, show, show_note
from moorage_lab.cli.fault_sim.company import company

if TYPE_CHECKING:
    from moorage_lab.cli.fault_sim.hunting import Broken, Hunt
    from moorage_lab.fault_sim.acts import Script
    from moorage_lab.fault_sim.fault_run import Outcome
    from moorage_lab.fault_sim.hunt import HuntRun

_EPILOG = """
\b
Examples:
  moorage fault-sim run --seed 7
  moorage fault-sim run --seed 7 --scenario leaders --trace
  moorage fault-sim hunt --seconds 10m --jobs 2
  moorage fault-sim walk --scene preemption --act kill
  moorage fault-sim replay breach.json --pod default/p3
  moorage fault-sim company --worlds 100

\b
Exit codes:
  0  every invariant holds
  1  an invariant is broken
  2  bad input
"""


# A try to make a script shorter plays it, which takes seconds.
_TOLD_TRIES = 10


@click.group(cls=CommandGroup, epilog=_EPILOG)
def fault_sim() -> None:
    """Play a whole cluster with faults in one process, the same for the same seed."""


fault_sim.add_command(company)


def _scenario_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    more = "; all for each in turn" if default == "all" else ""
    return click.option(
        "--scenario",
        "scenario_name",
        default=default,
        show_default=True,
        metavar="NAME",
        help="Users and faults to draw: calm, waits, few, combined, late, wire, leaders, "
        f"quotas, operations, extenders, disk or mixed{more}.",
    )


def _steps_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--steps",
        type=click.IntRange(min=1),
        default=None,
        metavar="N",
        help="Number of acts of users; default: those of the scenario, 60.",
    )(function)


def _nodes_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--nodes",
        type=click.IntRange(min=1),
        default=None,
        metavar="N",
        help="Number of nodes at the start; default: those of the scenario, at most 5.",
    )(function)


def _jobs_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of processes.",
    )(function)


def _keep_option(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--keep",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        metavar="DIR",
        help=f"Write each script that breaks something there{what}.",
    )


def _faults_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--faults",
        default=None,
        metavar="KINDS",
        help="Kinds of faults instead of those of the scenario, with commas: wire, stop, kill, "
        "jump, lease, outage, blind, agents, stale, plugins, disk; none for no faults.",
    )(function)


@fault_sim.command(
    epilog="\b\nExamples:\n  moorage fault-sim run --seed 7\n"
    "  moorage fault-sim run --seed 7 --faults none --steps 200 -o json\n"
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="The seed.")
@_scenario_option("mixed")
@_steps_option
@_nodes_option
@_faults_option
@click.option("--trace", is_flag=True, help="Print what happened, line by line.")
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write the script of the seed, for replay.",
)
@output_option()
def run(
    *,
    seed: int,
    scenario_name: str,
    steps: int | None,
    nodes: int | None,
    faults: str | None,
    trace: bool,
    save: Path | None,
    output: Form,
) -> None:
    """Play the script of a seed, and look at every invariant."""
    from moorage_lab.cli.fault_sim.chosen import chosen

    script = chosen(scenario_name, steps=steps, faults=faults, nodes=nodes).script(seed)
    if save is not None:
        _write(script, save)
    _report(script, _played(script), trace=trace, pod="", output=output)


@fault_sim.command(
    epilog="\b\nExamples:\n  moorage fault-sim replay breach.json\n"
    "  moorage fault-sim replay breach.json --pod default/p3\n"
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--pod", default="", metavar="NAMESPACE/NAME", help="Print only what happened to this pod."
)
@output_option()
def replay(*, file: Path, pod: str, output: Form) -> None:
    """Play a script that was kept, and print its trace."""
    script = _read(file)
    _report(script, _played(script), trace=True, pod=pod, output=output)


@fault_sim.command(
    epilog="\b\nExamples:\n  moorage fault-sim hunt --seconds 10m --jobs 2\n"
    "  moorage fault-sim hunt --runs 100 --scenario leaders --keep found\n"
)
@click.option(
    "--seconds",
    type=DurationType(),
    default=None,
    metavar="DURATION",
    help="Begin no run after this time. Default: 1m, unless --runs is given.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=None, metavar="N", help="Number of runs."
)
@_jobs_option
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="First seed.")
@_scenario_option("all")
@_steps_option
@_nodes_option
@_faults_option
@_keep_option(", and make one for each invariant shorter")
@click.option("--first", is_flag=True, help="End at the first script that breaks something.")
@output_option()
def hunt(  # noqa: PLR0913 - one keyword for each option
    *,
    seconds: float | None,
    runs: int | None,
    jobs: int,
    seed: int,
    scenario_name: str,
    steps: int | None,
    nodes: int | None,
    faults: str | None,
    keep: Path | None,
    first: bool,
    output: Form,
) -> None:
    """Play seed after seed, steer towards what was not covered, and shorten what breaks."""
    from moorage.base.clock import SystemClock
    from moorage_lab.cli.fault_sim.chosen import all_chosen
    from moorage_lab.cli.fault_sim.hunting import Hunt

    if seconds is None and runs is None:
        seconds = 60.0
    hunting = Hunt(
        all_chosen(scenario_name, steps=steps, faults=faults, nodes=nodes), seed, SystemClock()
    )
    for hunt_run in hunting.run(jobs=jobs, seconds=seconds, runs=runs):
        _report_breach(hunt_run)
        if keep is not None:
            for breach in hunt_run.outcome.breaches:
                _write(hunt_run.script, _path(keep, breach.invariant, hunt_run.script))
        if first and hunt_run.outcome.breaches:
            break
    report = hunting.report()
    if keep is not None:
        for broken in report.broken:
            _shorten(hunting, broken, keep)
    show(output, report, text=report.report_text)
    if report.broken:
        sys.exit(1)


@fault_sim.command(
    epilog="\b\nExamples:\n  moorage fault-sim walk --scene preemption --act kill\n"
    "  moorage fault-sim walk --scene volumes --act all --each 2 --jobs 2\n"
)
@click.option(
    "--scene",
    "scene_name",
    default="all",
    show_default=True,
    metavar="NAME",
    help="Small script: binding, volumes, devices, preemption, gang, team, quota or "
    "delayed-step; all for each.",
)
@click.option(
    "--act",
    "act_name",
    default="all",
    show_default=True,
    metavar="NAME",
    help="What happens after a step of the leader: kill, end, stop, depose or delete; all for "
    "each.",
)
@click.option(
    "--each",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Walk at most so many steps of one await in the source. Default: every step.",
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="The seed.")
@_jobs_option
@_keep_option("")
@output_option()
def walk(
    *,
    scene_name: str,
    act_name: str,
    each: int | None,
    seed: int,
    jobs: int,
    keep: Path | None,
    output: Form,
) -> None:
    """Play a small script once for each step of its leader, and let something happen there."""
    from moorage.base.clock import SystemClock
    from moorage_lab.cli.fault_sim.walking import acts_of, scenes_of, text, walked

    clock, reports, acts = SystemClock(), [], acts_of(act_name)
    for name in scenes_of(scene_name):
        for act in acts:
            report, broken = walked(name, act, seed=seed, each=each, jobs=jobs, clock=clock)
            show_note(report.line)
            reports.append(report)
            if keep is not None:
                for steps, script in broken.items():
                    _write(script, _folder(keep) / f"{name}-{act}-{steps}.json")
    show(output, reports, text=lambda: text(reports))
    if any(report.broken for report in reports):
        sys.exit(1)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"{path} cannot be made: {problem.strerror}") from problem
    return path


def _path(folder: Path, invariant: str, script: Script) -> Path:
    return _folder(folder) / f"{invariant}-{script.seed}.json"


def _shorten(hunting: Hunt, broken: Broken, folder: Path) -> None:
    """Make a script shorter that was written, and write it again."""
    script = hunting.script(broken)
    path = _path(folder, broken.invariant, script)
    show_note(f"{path}: {len(script.acts)} acts break {broken.invariant}; made shorter now")

    def report_tries(tries: int, left: int) -> None:
        if tries % _TOLD_TRIES == 0:
            show_note(f"{path}: {left} acts after {tries} tries")

    script = hunting.shortened(broken, on_try=report_tries)
    _write(script, path)
    show_note(f"{path}: {len(script.acts)} acts break {broken.invariant}")


def _report_breach(hunt_run: HuntRun) -> None:
    for breach in hunt_run.outcome.breaches[:1]:
        show_note(f"seed {hunt_run.script.seed} breaks {breach.invariant}: {breach.text}")


def _played(script: Script) -> Outcome:
    from moorage_lab.fault_sim.fault_run import play

    return play(script)


def _report(script: Script, outcome: Outcome, *, trace: bool, pod: str, output: Form) -> None:
    from moorage_lab.cli.fault_sim.text import summary
    from moorage_lab.fault_sim.trace import about

    lines = (about(pod, outcome.lines) if pod else list(outcome.lines)) if trace else []
    plain = {
        "seed": outcome.seed,
        "acts": len(script.acts),
        "seconds": outcome.seconds,
        "steps": outcome.steps,
        "bound": outcome.bound,
        "evicted": outcome.evicted,
        "fault_counts": outcome.fault_counts,
        "digest": outcome.digest,
        "breaches": list(outcome.breaches),
        **({"trace": lines} if trace else {}),
    }
    show(output, plain, text=lambda: "\n".join([*lines, summary(script, outcome)]))
    if outcome.breaches:
        sys.exit(1)


def _write(script: Script, path: Path) -> None:
    import msgspec

    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(script)) + b"\n")
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from problem


def _read(path: Path) -> Script:
    import msgspec

    from moorage_lab.fault_sim.acts import Script

    try:
        return msgspec.json.decode(read_file(path, DATA_BYTES_MAX), type=Script)
    except OSError as problem:
        raise UsageError(f"{path} cannot be read: {problem.strerror}") from problem
    except msgspec.DecodeError as problem:
        raise UsageError(f"{path} is no script of a simulation: {problem}") from problem
