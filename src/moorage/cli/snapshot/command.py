"""``moorage snapshot``: save a cluster's objects to a file, and load a file into a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from moorage.cli.options import kubeconfig_option

_EPILOG = """
\b
Examples:
  moorage snapshot save mine.json                          the sandbox, or any cluster
  moorage snapshot save prod.json --kubeconfig prod.yaml
  moorage snapshot load prod.json                          into a running `moorage up --empty`
  kubectl get nodes,pods,pv,pvc,sc -A -o json > prod.json  does as well
"""

_output = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")


@click.group(epilog=_EPILOG)
def snapshot() -> None:
    """Save a cluster's objects to a file, and load such a file into a sandbox."""


@snapshot.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_output
@kubeconfig_option
def save(*, file: Path, output: Literal["text", "json"], kubeconfig: str, context: str) -> None:
    """Write every object of a cluster to FILE, as one JSON List.

    Events are left out. Secrets are not, so the file is readable by its owner alone.
    """
    from moorage.cli.session import run_session
    from moorage.cli.snapshot.transfer import save_snapshot, tell_saved

    saved = run_session(
        lambda session: save_snapshot(session.transport, session.client, file),
        kubeconfig=kubeconfig,
        context=context,
    )
    click.echo(tell_saved(saved, file, as_json=output == "json"))


@snapshot.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Check everything, store nothing.")
@_output
@kubeconfig_option
@click.pass_context
def load(
    ctx: click.Context,
    *,
    file: Path,
    dry_run: bool,
    output: Literal["text", "json"],
    kubeconfig: str,
    context: str,
) -> None:
    """Bring the objects of FILE into a sandbox, as they are.

    FILE is what `snapshot save` or `kubectl get ... -A -o json` writes: a List, an array, or one
    object. Objects keep their uid, status and node; nodes are played by the sandbox's agents;
    namespaces that are missing are made; references to owners that are not in FILE are dropped.
    Objects that are there already stay as they are. A sandbox that is starting is waited for. The
    exit code is 1 when objects were refused; the others are loaded.
    """
    from moorage.cli.session import run_session
    from moorage.cli.snapshot.transfer import load_snapshot, read_snapshot, tell_faults, tell_loaded

    content = read_snapshot(file)
    loaded = run_session(
        lambda session: load_snapshot(session.transport, content, dry_run=dry_run),
        kubeconfig=kubeconfig,
        context=context,
        waits=True,
    )
    for line in tell_faults(loaded):
        click.echo(line, err=True)
    click.echo(tell_loaded(loaded, dry_run=dry_run, as_json=output == "json"))
    if loaded.faults:
        ctx.exit(1)
