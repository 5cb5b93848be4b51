"""``moorage status``: which sandboxes run here, and how their pods are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from moorage.base.errors import MoorageError
from moorage.cli.options import output_option
from moorage.cli.render import Form, show
from moorage.cli.which_sandbox import Which, which_options

if TYPE_CHECKING:
    from moorage.base.running_sandboxes import SandboxRecord
    from moorage.service.questions.folding.folds import Fold
    from moorage_sandbox.sandbox.progress import Progress

_EPILOG = """
\b
Examples:
  moorage status
  moorage status --name blue -o json

\b
Exit codes: 0 a sandbox runs, 1 none does.
"""
_SECONDS_MAX = 5.0
_ROWS_MOST = 20
_INDENT = "  "


@click.command(epilog=_EPILOG)
@output_option("name")
@which_options
def status(*, output: Form, name: str, kubeconfig: Path | None) -> None:
    """Show which sandboxes run in this directory, and how their pods are."""
    from moorage.base.process import run_loop

    which = Which(name, kubeconfig)
    records = which.running_sandboxes()
    found = [run_loop(_described(record)) for record in records]
    names = [f"sandbox/{record.name}" if record.name else "sandbox" for record in records]
    text = "\n\n".join("\n".join(_lines(dict(each))) for each in found)
    show(output, {"sandboxes": found}, text=text, names=names)
    if not records:
        raise MoorageError(which.missing())


def _lines(status: dict[str, Any]) -> Iterator[str]:
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
    yield from waiting_lines(waiting)
    for text in groups:
        yield f"  {text}"


def waiting_lines(pods: Sequence[dict[str, Any]]) -> list[str]:
    """Return the pods without a node, those that wait alike as one row.

    Members of a group wait for the reason for which their group waits.
    """
    from moorage.api.reasons.codes import ReasonCode
    from moorage.cli.rows.text import fold_lines, rows_left, terminal_width
    from moorage.service.questions.folding.folds import first_folds, fold
    from moorage.service.questions.folding.group_reason import concerns_group, reason_of_group

    rows = [_row(each) for each in pods]
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.group and row.reason != ReasonCode.SCHEDULING_GATED:
            texts.setdefault(row.group, []).append(row.message)
    of_groups = {group: reason_of_group(each) for group, each in texts.items()}
    for at, row in enumerate(rows):
        reason, message = of_groups.get(row.group, ("", ""))
        if concerns_group(reason, message) and row.reason != ReasonCode.SCHEDULING_GATED:
            rows[at] = msgspec.structs.replace(row, reason=reason, message=message)
    shown = first_folds(fold(rows), _ROWS_MOST)
    lines = fold_lines(shown.folds, now_ns=0, width=terminal_width() - len(_INDENT))
    left = rows_left(shown.rows_left, "`moorage queue` shows more", pods=shown.pods_left)
    return [f"{_INDENT}{line}" for line in ([*lines, left] if left else lines)]


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
