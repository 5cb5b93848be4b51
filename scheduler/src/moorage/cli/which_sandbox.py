"""Finds the sandboxes of a command: by directory, by name, or by kubeconfig."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from moorage.base.errors import UsageError
from moorage.base.running_sandboxes import SandboxRecord, find, find_all, kubeconfig_of

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Which(msgspec.Struct, frozen=True):
    """The choice of a user: a name, a kubeconfig, or neither."""

    name: str = ""
    kubeconfig: Path | None = None

    @property
    def path(self) -> Path:
        """The kubeconfig of the one sandbox that is meant; a path that is no file is refused."""
        if self.kubeconfig is not None and not self.kubeconfig.name:
            raise UsageError(f"--kubeconfig {str(self.kubeconfig)!r}: it names no file")
        return self.kubeconfig or kubeconfig_of(check_name(self.name))

    @property
    def is_explicit(self) -> bool:
        """Whether the user says which."""
        return bool(self.name or self.kubeconfig)

    def missing(self) -> str:
        """Return the message that there is no such sandbox."""
        where = f"with the kubeconfig {self.kubeconfig}" if self.kubeconfig else "in this directory"
        what = f"no sandbox {self.name}" if self.name else "no sandbox"
        named = f" --name {self.name}" if self.name else ""
        return f"{what} runs {where}; `moorage up -d{named}` starts one"

    def running_sandboxes(self) -> Sequence[SandboxRecord]:
        """Return the running sandboxes: the selected sandbox, or all of this directory."""
        if not self.is_explicit:
            return find_all()
        record = find(self.path)
        return [] if record is None else [record]


def which_options(function: F) -> F:
    """Add ``--name`` and ``--kubeconfig``."""
    function = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help="The sandbox that was started with --kubeconfig-out FILE.",
    )(function)
    return click.option(
        "--name", default="", metavar="NAME", help="The sandbox that was started with --name NAME."
    )(function)


def check_name(name: str) -> str:
    """Return the name of a sandbox.

    Raises
    ------
    UsageError
        It cannot be one.
    """
    if name and not _NAME.fullmatch(name):
        raise UsageError(f"--name {name}: write lower case letters, digits and dashes")
    return name
