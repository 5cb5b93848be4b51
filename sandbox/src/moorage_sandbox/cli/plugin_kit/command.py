"""The commands ``moorage plugin new`` and ``moorage plugin test``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from moorage.base.errors import ConfigError, UsageError
from moorage.cli.command_group import CommandGroup
from moorage.cli.options import output_option
from moorage.cli.render import Form, show
from moorage_sandbox.cli.plugin_kit.templates import SAMPLES, files_of

_EPILOG = """
\b
Examples:
  moorage plugin new keep_headroom --point filter   writes the plugin and a test of it
  moorage plugin test keep_headroom.py              asks it about random clusters
  moorage up --plugin keep_headroom.py:keep_headroom
"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@click.group(cls=CommandGroup, epilog=_EPILOG)
def plugin() -> None:
    """Begin a plugin, and test one against the contract of extension points."""


_NEW_EPILOG = """
\b
Examples:
  moorage plugin new keep_headroom --point filter
  moorage plugin new prefer_green --point score --directory plugins
"""
_TEST_EPILOG = """
\b
Examples:
  moorage plugin test keep_headroom.py
  moorage plugin test keep_headroom.py --args '{"cpuPercent": 25}' -o json
"""


@plugin.command(epilog=_NEW_EPILOG)
@click.argument("name")
@click.option(
    "--point",
    type=click.Choice([*SAMPLES], case_sensitive=False),
    required=True,
    metavar="POINT",
    help=f"The extension point that the plugin extends: {', '.join(SAMPLES)}.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the files are written; the current folder unless given.",
)
@output_option()
def new(name: str, *, point: str, directory: Path, output: Form) -> None:
    """Write a plugin NAME that works as it is, and a test of it.

    Exit code 2: a file of that name exists already, or NAME cannot be a name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a plugin: use letters, digits and underscores")
    files = files_of(name, point)
    written = {
        directory / files.plugin_name: files.plugin_text,
        directory / files.test_name: files.test_text,
    }
    existing = [str(path) for path in written if path.exists()]
    if existing:
        raise UsageError(f"{' and '.join(existing)} exists already; choose another name")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in written.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {directory}: {error.strerror}") from error
    lines = [f"wrote {path}" for path in written]
    lines.append(f"next: moorage plugin test {directory / files.plugin_name}")
    show(output, {"files": [str(path) for path in written]}, text="\n".join(lines))


@plugin.command(epilog=_TEST_EPILOG)
@click.argument("file")
@click.option("--args", "args_text", metavar="JSON", help="The plugin's arguments, as JSON.")
@click.option("--clusters", type=click.IntRange(1), default=20, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the clusters.")
@output_option()
@click.pass_context
def test(
    ctx: click.Context,
    file: str,
    *,
    args_text: str | None,
    clusters: int,
    seed: int,
    output: Form,
) -> None:
    """Ask the plugins of FILE about random clusters, and tell each breach of the contract.

    FILE is path/to/file.py, for all its plugins, or a reference as --plugin takes it. Checked are:
    allowed answers, the same answer twice, objects left unchanged, the same decisions with reused
    answers, the time of calls, and the points after a decision (Reserve to PostBind).

    Exit code 0: no breach was found. 1: the plugin breaks its contract. 2: FILE has no plugin.
    """
    from moorage.framework.loading import references_in
    from moorage_sandbox.cli.plugin_kit.reporting import arguments, lines
    from moorage_sandbox.testing.contract import ContractReport, check_contract

    references = references_in(Path(file)) if file.endswith(".py") else [file]
    given = arguments(args_text)
    reports: list[ContractReport] = []
    for reference in references:
        try:
            reports.append(check_contract(reference, args=given, clusters=clusters, seed=seed))
        except ConfigError as error:
            if args_text is not None:
                raise
            raise UsageError(f"{error}; --args gives the plugin its arguments") from error
        if output == "text":
            click.echo("\n".join(lines(reference, reports[-1])))
    if output != "text":
        show(output, reports, text="")
    if any(report.faults for report in reports):
        ctx.exit(1)
