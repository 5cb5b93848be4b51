"""``moorage wait``: until a sandbox schedules, or until every pod is decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from moorage.base.errors import MoorageError
from moorage.cli.options import DurationType, output_option
from moorage.cli.render import Form, show
from moorage.cli.which_sandbox import Which, which_options

if TYPE_CHECKING:
    from moorage.base.running_sandboxes import SandboxRecord

_EPILOG = """
\b
Examples:
  moorage up -d && moorage wait --for=settled
  moorage wait --for=ready --name blue --timeout 10

\b
Exit codes: 0 reached, 1 the time is over, or the sandbox ends before.
"""
_LOOK_SECONDS = 0.05
# How long a sandbox that was started a moment ago takes to write its record; a guess.
_RECORD_SECONDS = 5.0


@click.command(epilog=_EPILOG)
@click.option(
    "--for",
    "goal",
    type=click.Choice(["ready", "settled"]),
    required=True,
    help="ready: pods are scheduled. settled: every pod is bound, or its condition says why not.",
)
@click.option(
    "--timeout",
    type=DurationType(),
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait.",
)
@output_option()
@which_options
def wait(
    *,
    goal: Literal["ready", "settled"],
    timeout: float,
    output: Form,
    name: str,
    kubeconfig: Path | None,
) -> None:
    """Wait for a sandbox that another process starts."""
    from moorage.base.process import run_loop

    which = Which(name, kubeconfig)
    report: dict[str, Any] = {"goal": goal, "reached": False, "url": "", "pods": {}}
    try:
        text = run_loop(_wait(which, goal, timeout, report))
    except MoorageError as error:
        show(output, {**report, "message": str(error)}, text="")
        raise
    show(output, {**report, "reached": True, "message": ""}, text=text)


async def _wait(which: Which, goal: str, timeout: float, report: dict[str, Any]) -> str:
    """Wait, fill in the report as far as it goes, and return the reached condition."""
    from moorage.base.clock import NS_PER_SECOND, SystemClock

    clock = SystemClock()
    begin_ns = clock.monotonic_ns()
    record = await _ready(which, timeout)
    report["url"] = record.url
    if goal == "ready":
        return f"ready: {record.url}"
    if record.served is None:
        raise MoorageError(f"the {record.title} has no scheduler, so that no pod is decided")
    from moorage_sandbox.sandbox.lines import summary
    from moorage_sandbox.sandbox.watching import settled_within, watched

    def check() -> None:
        if not which.running_sandboxes():
            raise MoorageError(f"the {record.title} has ended")

    rest = max(0.0, timeout - (clock.monotonic_ns() - begin_ns) / NS_PER_SECOND)
    async with watched(Path(record.kubeconfig), record.served, clock=clock) as progress:
        try:
            await settled_within(progress, rest, check=check)
        finally:
            report["pods"] = {
                state.value: count for state, count in progress.counts.items() if count
            }
        return f"settled: {summary(progress)}"


async def _ready(which: Which, timeout: float) -> SandboxRecord:
    """Wait until the sandbox schedules; raise if there is none, or not in time."""
    from moorage.base import aio
    from moorage.base.running_sandboxes import find

    waited, appeared = 0.0, False
    while True:
        record = find(which.path)
        if record is not None and record.state == "ready":
            return record
        if record is None and (appeared or waited >= min(timeout, _RECORD_SECONDS)):
            raise MoorageError("the sandbox has ended" if appeared else which.missing())
        if waited >= timeout:
            raise MoorageError(f"the sandbox is not ready after {timeout:g} s")
        appeared = appeared or record is not None
        await aio.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS
