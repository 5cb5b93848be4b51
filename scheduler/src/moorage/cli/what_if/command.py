"""``moorage what-if``: what a change would do to a cluster; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from moorage.cli.options import by_option, output_option, rows_option
from moorage.cli.what_if.options import source_options

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.service.questions.folding.folds import By

_EPILOG = """
\b
Examples:
  moorage what-if --drain node-03
  moorage what-if --add 3xcpu=16,memory=64Gi --scale deployment/web=100
  moorage what-if --apply job.yaml --from prod.json
  moorage what-if -f scenario.yaml -o json
  moorage what-if --drain node-03 --by reason
  moorage what-if --drain node-03 --scheduler kube-system/moorage-0

\b
The changes of several options happen in this order: config and plugin, add, apply, scale,
priority, taint, cordon, drain, remove, delete. A scenario has an order of its own:
  steps:
  - add: 2xcpu=16,memory=64Gi
  - drain: node-03
  - scale: deployment/web=40

\b
Exit codes:
  0  nothing gets worse
  1  a pod is lost, evicted, or without a node that had one or is new; or it failed
  2  bad input: a change cannot be made
"""


F = TypeVar("F", bound=Callable[..., Any])


def _many(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(name, multiple=True, metavar=metavar, help=text)


@click.command(name="what-if", epilog=_EPILOG)
@_many("--add", "[Nx]SHAPE", "Add nodes, such as 3xcpu=8,memory=32Gi; shapes as of `up --shape`.")
@_many("--remove", "NODE", "Delete a node.")
@_many("--cordon", "NODE", "Let no further pod onto a node.")
@_many("--drain", "NODE", "Cordon a node and evict its pods, as budgets allow.")
@_many("--taint", "NODE=KEY[=VALUE]:EFFECT", "Put a taint on a node.")
@_many("--apply", "FILE", "Create the objects of a file; - reads standard input.")
@_many("--scale", "KIND/NAME=N", "Give a Deployment or its like another number of pods.")
@_many("--delete", "KIND/NAME", "Delete an object, with everything it owns.")
@_many("--priority", "pod=NAME:VALUE", "Give a pod another priority.")
@click.option("--config", default="", metavar="FILE", help="Give the scheduler this configuration.")
@_many("--plugin", "WHERE:NAME", "Give the scheduler a plugin of yours, such as file.py:name.")
@click.option(
    "-f",
    "--filename",
    "scenario",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="A scenario: steps in order, before the changes of other options.",
)
@by_option()
@rows_option(20)
@output_option("wide")
@source_options
@click.pass_context
def what_if(
    ctx: click.Context,
    /,
    *,
    scenario: Path | None,
    by: By,
    limit: int,
    output: Form,
    **flags: Any,
) -> None:
    """Say which pods would start, move, be evicted or lost, and why others would wait.

    A running scheduler tries the changes on a copy of its state: that of the sandbox, or the one
    named. Otherwise the objects are read once, from the API server or a file. Everything happens in
    memory, with the plugins and the decisions of the scheduler itself. Pods that a node loses come
    back as their owners make them.
    """
    from moorage.cli.render import show
    from moorage.cli.rows.text import Shown, terminal_width
    from moorage.cli.what_if.parsing import Reading, flag_changes, scenario_changes
    from moorage.cli.what_if.source import source_of
    from moorage.cli.what_if.text import ChangeReport, report
    from moorage.cli.what_if.trying import tried

    source = source_of(flags)
    reading = Reading(source.chosen_namespace, source.running)
    steps = [] if scenario is None else scenario_changes(scenario, reading)
    steps += flag_changes(flags, reading)
    result = tried(source, steps)
    shown = None if output == "wide" else Shown(by, limit, terminal_width())
    course = msgspec.structs.asdict(result.course)
    show(
        output,
        ChangeReport(**course, worse=tuple(result.worse), source=result.source),
        text=lambda: report(result.course, result.source, worse=result.worse, shown=shown),
    )
    if result.worse:
        ctx.exit(1)
