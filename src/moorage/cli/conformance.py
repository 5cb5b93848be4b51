"""``moorage conformance``: kube-scheduler's recorded decisions against moorage's own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

_EPILOG = """
\b
Examples:
  moorage conformance tests/conformance/data
  moorage conformance noderesources.jsonl.gz taints.jsonl -o json

\b
Exit codes: 0 nothing that is supported differs, 1 something differs, 2 a file cannot be read.
"""


@click.command(epilog=_EPILOG)
@click.argument(
    "paths", nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.pass_context
def conformance(
    ctx: click.Context, *, paths: tuple[Path, ...], output: Literal["table", "json"]
) -> None:
    """Run recordings of kube-scheduler's decisions and compare field by field.

    Prints a table by family: cases, equal, different, not supported; then the first differences.
    """
    from moorage.conformance.runner import run_conformance

    ctx.exit(run_conformance(paths, output))
