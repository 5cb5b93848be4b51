"""``moorage status``: which sandboxes run here, and how their pods are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from moorage.base.errors import MoorageError
from moorage.cli.which_sandbox import Which, which_options

if TYPE_CHECKING:
    from moorage.sandbox.progress import Progress
    from moorage.sandbox.running import SandboxRecord

_EPILOG = """
Exit code 1 if no sandbox runs.
"""
_SECONDS_MAX = 5.0


@click.command(epilog=_EPILOG)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@which_options
def status(*, output: Literal["text", "json"], name: str, kubeconfig: Path | None) -> None:
    """Tell which sandboxes run in this directory, and how their pods are."""
    from moorage.sandbox.process import run_loop

    which = Which(name, kubeconfig)
    records = which.found()
    if not records and output == "text":
        raise MoorageError(which.missing())
    found = [run_loop(_described(record)) for record in records]
    if output == "json":
        import json

        click.echo(json.dumps({"sandboxes": found}, indent=2))
    for number, each in enumerate(found if output == "text" else ()):
        if number:
            click.echo()
        _print(each)
    if not records:
        raise SystemExit(1)


def _print(found: dict[str, Any]) -> None:
    waiting = found.pop("waiting")
    pods = ", ".join(f"{count} {state}" for state, count in found.pop("pods").items())
    found["scheduler"] = ", ".join(found.pop("served") or ()) or "none"
    found["metrics"] = f"{found.pop('health')}/metrics"
    if not found["metrics"].startswith("https:"):
        del found["metrics"]
    for key, value in {"name": found.pop("name") or "-", **found, "pods": pods or "none"}.items():
        if value != "":
            click.echo(f"{key + ':':<12}{value}")
    for each in waiting:
        click.echo(f"  {each['pod']}  {each['state']}: {each['message'] or 'not decided yet'}")


async def _described(record: SandboxRecord) -> dict[str, Any]:
    """Return a record with the counts of pods by state, and the pods without a node."""
    import asyncio

    from moorage.base.clock import SystemClock
    from moorage.sandbox.watching import watched

    described: dict[str, Any] = {**msgspec.to_builtins(record), "pods": {}, "waiting": []}
    if not record.url:
        return described
    try:
        async with asyncio.timeout(_SECONDS_MAX):
            clock = SystemClock()
            async with watched(Path(record.kubeconfig), record.served, clock=clock) as progress:
                described |= _pods(progress)
    except TimeoutError:
        described["state"] = f"no answer within {_SECONDS_MAX:g} s"
    return described


def _pods(progress: Progress) -> dict[str, Any]:
    counts = {state.value: count for state, count in progress.counts.items() if count}
    return {"pods": dict(sorted(counts.items())), "waiting": msgspec.to_builtins(progress.waiting)}
