"""``moorage snapshot``: save a cluster's objects to a file, and load a file into a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.base.errors import UsageError
from moorage.cli.command_group import CommandGroup
from moorage.cli.options import kubeconfig_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage snapshot save mine.json                          the sandbox, or any cluster
  moorage snapshot save prod.json --kubeconfig prod.yaml
  moorage snapshot load prod.json                          into a running `moorage up --empty`
  kubectl get nodes,pods,pv,pvc,sc -A -o json > prod.json  does as well
"""


_SAVE_EPILOG = """
\b
Examples:
  moorage snapshot save mine.json
  moorage snapshot save mine.json --force
  moorage snapshot save prod.json --kubeconfig prod.yaml
  moorage snapshot save - | gzip > mine.json.gz
"""
_LOAD_EPILOG = """
\b
Examples:
  moorage snapshot load prod.json
  moorage snapshot load prod.json --dry-run -o json
"""


@click.group(cls=CommandGroup, epilog=_EPILOG)
def snapshot() -> None:
    """Save a cluster's objects to a file, and load such a file into a sandbox."""


@snapshot.command(epilog=_SAVE_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite FILE without asking.")
@output_option()
@kubeconfig_option
def save(*, file: Path, force: bool, output: Form, kubeconfig: str, context: str) -> None:
    """Write every object of a cluster to FILE, as one JSON List; - writes standard output.

    Events are left out. Secrets are not, so the file is readable by its owner alone. Where FILE
    exists, a terminal is asked whether to overwrite it; without one the exit code is 2.
    """
    from moorage.cli.render import show, show_note
    from moorage.cli.session import run_session
    from moorage_sandbox.cli.snapshot.transfer import save_snapshot, saved_report, saved_text

    to_stdout = str(file) == "-"
    if to_stdout and output != "text":
        raise UsageError(f"--output {output}: standard output has the objects; name a FILE")
    if not (force or to_stdout):
        _check_overwriting(file)
    saved = run_session(
        lambda session: save_snapshot(session.transport, session.client, file),
        kubeconfig=kubeconfig,
        context=context,
    )
    if to_stdout:
        show_note(saved_text(saved, Path("standard output")))
        return
    show(output, saved_report(saved, file), text=saved_text(saved, file))


def _check_overwriting(file: Path) -> None:
    """Ask before a file is overwritten; refuse it where nobody can be asked.

    A device or a pipe, such as /dev/stdout, is written to and loses nothing.
    """
    if not file.is_file():
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{file} exists: --force overwrites it")
    if not click.confirm(f"{file} exists. Overwrite it?", err=True):
        raise UsageError(f"{file} stays as it is")


@snapshot.command(epilog=_LOAD_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Check everything, store nothing.")
@output_option()
@kubeconfig_option
@click.pass_context
def load(
    ctx: click.Context,
    *,
    file: Path,
    dry_run: bool,
    output: Form,
    kubeconfig: str,
    context: str,
) -> None:
    """Bring the objects of FILE into a sandbox, as they are; - reads standard input.

    FILE is what `snapshot save` or `kubectl get ... -A -o json` writes: a List, an array, or one
    object. Objects keep their uid, status and node; nodes are played by the sandbox's agents;
    namespaces that are missing are made; references to owners that are not in FILE are dropped.
    Objects that are there already stay as they are. A sandbox that is starting is waited for. The
    exit code is 1 when objects were refused; the others are loaded.
    """
    from moorage.cli.render import show, show_error
    from moorage.cli.session import run_session
    from moorage_sandbox.cli.snapshot.transfer import (
        fault_lines,
        load_snapshot,
        loaded_text,
        read_snapshot,
    )

    content = read_snapshot(file)
    loaded = run_session(
        lambda session: load_snapshot(session.transport, content, dry_run=dry_run),
        kubeconfig=kubeconfig,
        context=context,
        waits=True,
        writes=True,
    )
    for line in fault_lines(loaded):
        show_error(line)
    show(output, loaded, text=loaded_text(loaded, dry_run=dry_run))
    if loaded.faults:
        ctx.exit(1)
