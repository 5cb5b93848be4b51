"""``moorage down``: end sandboxes that run in the background, or in another terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.base.errors import MoorageError
from moorage.cli.options import output_option
from moorage.cli.render import Form, show, show_note
from moorage.cli.which_sandbox import Which, which_options

if TYPE_CHECKING:
    from moorage.base.running_sandboxes import SandboxRecord

_EPILOG = """
\b
Examples:
  moorage down
  moorage down --name blue
  moorage down --all

Nothing to end is no failure, unless --name or --kubeconfig says what to end: then the exit code is
1.
"""
# A sandbox ends within two seconds, with a second signal at once.
_PATIENCE_SECONDS = 10.0
_LOOK_SECONDS = 0.05


@click.command(epilog=_EPILOG)
@click.option("--all", "every", is_flag=True, help="End every sandbox of this directory.")
@output_option("name")
@which_options
def down(*, every: bool, output: Form, name: str, kubeconfig: Path | None) -> None:
    """End the sandbox of this directory, wherever it was started.

    Without --name and --all, the sandbox without a name ends.
    """
    from moorage.base.process import run_loop
    from moorage.base.running_sandboxes import find, find_all, remove_dead

    which = Which(name, kubeconfig)
    record = find(which.path)
    records = find_all() if every else [record] if record is not None else []
    dead = remove_dead(which.path) if not (records or every) else False
    if dead:
        show_note("the sandbox had ended already: its record is removed")
    if not records and which.is_explicit and not dead:
        show(output, {"ended": []}, text="")
        raise MoorageError(which.missing())
    if not records and not dead:
        others = ", ".join(each.name for each in find_all())
        told = f"these run: {others}; name one with --name, or all with --all" if others else ""
        show_note(f"no sandbox to end{': ' if told else ''}{told}")
    run_loop(_end(records))
    text = "\n".join(f"ended: {each.title} at {each.url or each.kubeconfig}" for each in records)
    names = [f"sandbox/{each.name}" if each.name else "sandbox" for each in records]
    show(output, {"ended": records}, text=text, names=names)


async def _end(records: Sequence[SandboxRecord]) -> None:
    from moorage.base import aio
    from moorage.base.running_sandboxes import find

    for each in records:
        _signal(each)
    waited = 0.0
    while left := [each for each in records if find(Path(each.kubeconfig)) is not None]:
        if waited >= _PATIENCE_SECONDS:
            for each in left:
                # A second signal ends everything at once.
                _signal(each)
        if waited >= 2 * _PATIENCE_SECONDS:
            raise MoorageError(f"process {left[0].process} does not end; kill -9 {left[0].process}")
        await aio.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS


def _signal(record: SandboxRecord) -> None:
    try:
        os.kill(record.process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise MoorageError(f"process {record.process} belongs to another user") from error
