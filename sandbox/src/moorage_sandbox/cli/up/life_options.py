"""The options of ``moorage up`` for the life of a sandbox: its name, its files, the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import click

from moorage.cli.which_sandbox import check_name


class LifeOptions(TypedDict):
    """The values that `life_options` passes to the command."""

    detach: bool
    name: str
    kubeconfig_out: Path | None
    merge_kubeconfig: bool


_OPTIONS = (
    click.option(
        "-d",
        "--detach",
        is_flag=True,
        help="Return once pods are scheduled, and leave the cluster running; `moorage down` ends "
        "it.",
    ),
    click.option(
        "--name",
        default="",
        metavar="NAME",
        help="Name of the sandbox, to run several side by side: for status, wait and down.",
    ),
    click.option(
        "--kubeconfig-out",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help="Where to write the kubeconfig. Default: .moorage/kubeconfig, with --name "
        ".moorage/NAME/kubeconfig. Without a name, only --kubeconfig FILE finds the sandbox then.",
    ),
    click.option(
        "--merge-kubeconfig",
        is_flag=True,
        help="Put a context, moorage or moorage-NAME, into ~/.kube/config, too, and take it out "
        "at the end.",
    ),
)


def life_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def kubeconfig_path(name: str, path: Path | None) -> Path:
    """Return the path of a sandbox's kubeconfig: as given, else by the sandbox's name."""
    from moorage.base.running_sandboxes import kubeconfig_of

    # `down` and the others look for the name, wherever the kubeconfig is.
    by_name = kubeconfig_of(check_name(name))
    return by_name if path is None else path


def user_kubeconfig() -> Path:
    """Return the path of the user's own kubeconfig."""
    return Path.home() / ".kube" / "config"
