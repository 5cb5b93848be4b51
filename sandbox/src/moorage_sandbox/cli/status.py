"""``moorage status``: which sandboxes run here, and how their pods are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from moorage.base.errors import MoorageError
from moorage.cli.options import by_option, output_option, rows_option
from moorage.cli.render import Form, show
from moorage.cli.which_sandbox import Which, which_options

if TYPE_CHECKING:
    from moorage.base.running_sandboxes import SandboxRecord
    from moorage.cli.rows.text import Shown
    from moorage.service.questions.folding.folds import By, Fold
    from moorage_sandbox.sandbox.progress import Progress

_EPILOG = """
\b
Examples:
  moorage status
  moorage status --name blue -o json
  moorage status --by reason              how many pods wait for each reason

\b
Exit codes: 0 a sandbox runs, 1 none does.
"""
_SECONDS_MAX = 5.0
_ROWS_MOST = 20
_INDENT = "  "


@click.command(epilog=_EPILOG)
@by_option()
@rows_option(_ROWS_MOST)
@output_option("wide", "name")
@which_options
def status(*, by: By, limit: int, output: Form, name: str, kubeconfig: Path | None) -> None:
    """Show which sandboxes run in this directory, and how their pods are."""
    from moorage.base.process import run_loop
    from moorage.cli.rows.text import Shown, terminal_width

    which = Which(name, kubeconfig)
    records = which.running_sandboxes()
    found = [run_loop(_described(record)) for record in records]
    names = [f"sandbox/{record.name}" if record.name else "sandbox" for record in records]
    shown = None if output == "wide" else Shown(by, limit, terminal_width())
    text = "\n\n".join("\n".join(_lines(dict(each), shown)) for each in found)
    show(output, {"sandboxes": found}, text=text, names=names)
    if not records:
        raise MoorageError(which.missing())


def _lines(status: dict[str, Any], shown: Shown | None) -> Iterator[str]:
    waiting, groups = status.pop("waiting"), status.pop("groups")
    pods = ", ".join(f"{count} {state}" for state, count in status.pop("pods").items())
    if scaled := status.pop("autoscale"):
        status["nodes"] = f"{status['nodes']}, autoscaled {scaled}"
    status["scheduler"] = ", ".join(status.pop("served") or ()) or "none"
    status["metrics"] = f"{status.pop('health')}/metrics"
    if not status["metrics"].startswith("https:"):
        del status["metrics"]
    if page := status.pop("page"):
        status["page"] = f"{page} (the link works once)"
    for key, value in {"name": status.pop("name") or "-", **status, "pods": pods or "none"}.items():
        if value != "":
            yield f"{key + ':':<12}{value}"
    yield from waiting_lines(waiting, shown)
    for text in groups:
        yield f"  {text}"


def waiting_lines(pods: Sequence[dict[str, Any]], shown: Shown | None) -> list[str]:
    """Return the pods without a node, those that wait alike as one row.

    Members of a group wait for the reason for which their group waits.

    Parameters
    ----------
    pods
        The pods.
    shown
        What becomes one row, and how much is shown; None for every pod by itself, in full.
    """
    from moorage.cli.render import Columns
    from moorage.cli.rows.text import fold_lines, rows_left
    from moorage.service.questions.folding.folds import first_folds, fold
    from moorage.service.questions.folding.group_reason import with_group_reasons

    rows = with_group_reasons(_row(each) for each in pods)
    if shown is None:
        cells = [_wide_cells(each) for each in rows]
        lines = Columns(("pod", "state", "owner", "group", "reason", "message")).lines(cells)
        return [f"{_INDENT}{line}" for line in (lines if cells else ())]
    folded = first_folds(fold(rows, by=shown.by), shown.limit)
    lines = fold_lines(folded.folds, now_ns=0, width=shown.width - len(_INDENT))
    left = rows_left(folded.rows_left, "--limit shows more", pods=folded.pods_left)
    return [f"{_INDENT}{line}" for line in ([*lines, left] if left else lines)]


def _wide_cells(row: Fold) -> list[str]:
    more = (*row.queues, row.owner, row.group, row.reason, row.message)
    return [f"{row.namespace}/{row.names[0]}", *(each or "<none>" for each in more)]


def _row(waiting: dict[str, Any]) -> Fold:
    from moorage.service.questions.folding.folds import Fold

    namespace, _, name = waiting["pod"].partition("/")
    return Fold(
        namespace=namespace,
        owner=waiting["owner"],
        group=waiting["group"],
        reason=waiting["reason"],
        names=(name,),
        queues={waiting["state"]: 1},
        message=waiting["message"],
    )


async def _described(record: SandboxRecord) -> dict[str, Any]:
    """Return a record with the counts of pods by state, and the pods without a node."""
    import asyncio

    from moorage.base.clock import SystemClock
    from moorage_sandbox.sandbox.watching import watched

    described: dict[str, Any] = {**msgspec.to_builtins(record)}
    described |= {"pods": {}, "waiting": [], "groups": []}
    if not record.url:
        return described
    try:
        async with asyncio.timeout(_SECONDS_MAX):
            clock = SystemClock()
            async with watched(Path(record.kubeconfig), record.served, clock=clock) as progress:
                described |= {"nodes": progress.nodes} | _pods(progress)
    except TimeoutError:
        described["state"] = f"no answer within {_SECONDS_MAX:g} s"
    return described


def _pods(progress: Progress) -> dict[str, Any]:
    counts = {state.value: count for state, count in progress.counts.items() if count}
    return {
        "pods": dict(sorted(counts.items())),
        "waiting": msgspec.to_builtins(progress.waiting),
        "groups": progress.disabled_groups,
    }
