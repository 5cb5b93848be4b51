"""``moorage conformance``: kube-scheduler's recorded decisions against moorage's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

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
@output_option()
@click.pass_context
def conformance(ctx: click.Context, *, paths: tuple[Path, ...], output: Form) -> None:
    """Run recordings of kube-scheduler's decisions and compare field by field.

    Prints a table by family: cases, equal, different, not supported; then the first differences.
    """
    from moorage.cli.render import show
    from moorage.conformance.runner import check_recordings

    report = check_recordings(paths, progress=sys.stderr)
    show(output, report.as_json(), text=report.as_text().removesuffix("\n"))
    if report.different:
        ctx.exit(1)
