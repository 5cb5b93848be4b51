"""``moorage report``: asks a question and writes the answer as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from moorage.base.errors import UsageError

_EPILOG = """
\b
Examples:
  moorage report --out api.html explain deployment/api
  moorage report --out drain.html what-if --drain node-03
  moorage report explain pod giant > giant.html
  moorage report --out room.html capacity --like deployment/web --from prod.json
  moorage report --out queue.html queue -n team-a

\b
QUESTION is a command with its options: explain, what-if, capacity or queue. The page has the
answer, the command line, the time and the answer as JSON. It loads nothing from elsewhere.
It shows what you may see: think of who reads it before you mail it.
Exit code: that of the command; what-if ends with 1 where something gets worse.
"""


@click.command(
    epilog=_EPILOG,
    # The options behind the first word are those of the question.
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="The file; default: standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE without asking.")
@click.argument("question", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def report(
    ctx: click.Context, /, *, out: Path | None, force: bool, question: tuple[str, ...]
) -> None:
    """Ask QUESTION, and write the answer as one HTML page that can be mailed.

    If FILE exists, a terminal is asked whether to overwrite it; without one the exit code is 2.
    """
    from moorage.cli.report.asking import ask, write

    if out is None and sys.stdout.isatty():
        raise UsageError("a page is no text for a terminal: name a file, --out FILE")
    if out is not None and out.exists() and not force:
        if not sys.stdin.isatty():
            raise UsageError(f"{out} exists: --force overwrites it")
        click.confirm(f"{out} exists. Overwrite it?", abort=True)
    answer = ask(ctx, question)
    if answer.page:
        write(answer.page, out)
    ctx.exit(answer.code)
