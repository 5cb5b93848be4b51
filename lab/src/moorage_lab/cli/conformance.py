"""``moorage conformance``: kube-scheduler's recorded decisions against moorage's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.options import emulation_options, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage conformance lab/tests/conformance/data
  moorage conformance noderesources.jsonl.gz taints.jsonl -o json
  moorage conformance lab/tests/conformance/data --emulated-version 1.37    what differs in 1.37

\b
Exit codes: 0 nothing that is supported differs, 1 something differs, 2 a file cannot be read.
"""


@click.command(epilog=_EPILOG)
@click.argument(
    "paths", nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)
)
@emulation_options
@output_option()
@click.pass_context
def conformance(
    ctx: click.Context, *, paths: tuple[Path, ...], version: str, oldest: str, output: Form
) -> None:
    """Run recordings of kube-scheduler's decisions and compare field by field.

    Prints a table by family: cases, equal, different, not supported; then the first differences.
    """
    from moorage.cli.render import show
    from moorage.config.emulation import version_of
    from moorage.config.own import LoadedConfiguration, emulating
    from moorage_lab.conformance.runner import check_recordings

    emulating(LoadedConfiguration(), version=version, oldest=oldest)
    report = check_recordings(paths, version=version_of(version), progress=sys.stderr)
    show(output, report.as_json(), text=report.as_text().removesuffix("\n"))
    if report.different:
        ctx.exit(1)
