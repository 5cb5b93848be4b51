"""Options of the commands that work on a cluster in memory: where its objects come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from moorage.cli.options import dump_option, kubeconfig_option, namespace_option
from moorage.cli.question_target import scheduler_options

F = TypeVar("F", bound=Callable[..., Any])


def source_options(function: F) -> F:
    """Add every option that `moorage.cli.what_if.source.source_of` takes."""
    for option in (kubeconfig_option, scheduler_options, namespace_option):
        function = option(function)
    function = click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=None,
        metavar="NUMBER",
        help="Seed of the draws among equally good nodes. Default: a running scheduler continues "
        "its own draws; otherwise 0.",
    )(function)
    function = click.option(
        "--running-config",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="The configuration that the scheduler has now. Default: it is asked for it.",
    )(function)
    return dump_option(function)
