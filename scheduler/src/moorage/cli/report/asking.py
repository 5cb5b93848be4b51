"""Runs the command of a question and makes the page of its answer."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

import click
import msgspec

from moorage.base.clock import SystemClock, rfc3339
from moorage.base.errors import UsageError
from moorage.cli.report.document import COMMANDS, document_of
from moorage.cli.report.page import page

_NOTE: Final = "note: "
_ENDLESS: Final = frozenset({"-w", "--watch"})


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """The end of a command.

    Parameters
    ----------
    page
        The page; "" where the command gave no answer.
    code
        The command's exit code.
    """

    page: str
    code: int


def ask(ctx: click.Context, question: Sequence[str]) -> AnsweredQuestion:
    """Run the command of a question, and return its answer as a page.

    Parameters
    ----------
    ctx
        The context of `report`, whose root knows all commands.
    question
        The words of the command line.

    Raises
    ------
    UsageError
        The question is none of a command that a page can show.
    """
    command = question[0]
    if command not in COMMANDS:
        raise UsageError(f"report {command}: choose a question of {', '.join(COMMANDS)}")
    if command == "queue" and not _ENDLESS.isdisjoint(question):
        raise UsageError("report queue: --watch never ends; ask without it")
    time = rfc3339(SystemClock().now_ns())
    output, notes = io.StringIO(), _Copy(sys.stderr)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(notes):
        code = _run(ctx, [*question, "-o", "json"])
    text = output.getvalue()
    if not text:
        return AnsweredQuestion("", code)
    lines = [line.removeprefix(_NOTE) for line in notes.getvalue().splitlines()]
    html = page(
        document_of(command, json.loads(text)),
        question=shlex.join(["moorage", *question]),
        time=time,
        notes=lines,
        answer=text,
    )
    return AnsweredQuestion(html, code)


def write(text: str, file: Path | None) -> None:
    """Write a page into a file, or on standard output where there is none.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error


def _run(ctx: click.Context, words: list[str]) -> int:
    root = ctx.find_root()
    try:
        with root.command.make_context(root.info_name, words) as inner:
            root.command.invoke(inner)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


class _Copy(io.StringIO):
    """Passes what is written on, and keeps it as well."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._stream.flush()
