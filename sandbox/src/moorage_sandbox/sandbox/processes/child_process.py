"""A child process, from inside: settings come on standard input, reports go to the parent.

The parent writes the settings as one line to standard input and keeps that open; its end ends the
process. Reports are lines on standard output. A field of a report says what has happened, so no
order of the lines matters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.process import Ending, Pace, run_loop, until_ended
from moorage_sandbox.sandbox.settings import ChildReport


class _Settings(Protocol):
    """The settings of any child process."""

    @property
    def pace(self) -> Pace: ...


S = TypeVar("S", bound=_Settings)
T = TypeVar("T")
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


class ChildProgram(msgspec.Struct, frozen=True):
    """A child process to start: program and arguments, and its settings."""

    command: tuple[str, ...]
    settings: msgspec.Struct

    @property
    def first_input(self) -> bytes:
        """The line with the settings, for standard input."""
        return encode_settings(self.settings)


def program_of(module: str, settings: msgspec.Struct) -> ChildProgram:
    """Return the program of a module that calls `run_child`."""
    # -P: modules of the working directory do not hide installed ones.
    return ChildProgram((sys.executable, "-P", "-m", module), settings)


def encode_settings(settings: msgspec.Struct) -> bytes:
    """Return the line that a parent writes."""
    return msgspec.json.encode(settings, enc_hook=str) + b"\n"


def decode_settings(line: bytes, settings_type: type[T]) -> T:
    """Return the settings of the line."""
    return msgspec.json.decode(line, type=settings_type, dec_hook=_decode_path)


def run_child(
    settings_type: type[S],
    work: Callable[[S, Clock], Coroutine[Any, Any, None]],
    *,
    name: str,
    explain: Callable[[MoorageError], str] = str,
) -> int:
    """Read the settings, work until the process should end, and return the exit code.

    Without settings there is nothing to do: the parent has ended before it wrote them.

    Parameters
    ----------
    settings_type
        The struct that the parent has encoded.
    work
        The work, given settings and clock; normally it runs for ever.
    name
        Name of the task.
    explain
        Returns the message of a failure.
    """
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    settings = decode_settings(line, settings_type)
    clock = settings.pace.clock()

    async def main() -> None:
        ending = Ending(clock=clock)
        ending.listen()
        await until_ended(work(settings, clock), ending, name=name, child=True)

    try:
        run_loop(main(), settings.pace, clock)
    except MoorageError as error:
        bad_input = isinstance(error, UsageError)
        send_report(ChildReport(error=explain(error), bad_input=bad_input))
        return EXIT_BAD_INPUT if bad_input else EXIT_FAILED
    return 0


def send_report(report: ChildReport) -> None:
    """Write a report to the parent."""
    try:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The parent has gone; standard input ends as well, which ends this process.
        return


def _decode_path(type_: type, value: Any) -> Any:
    return Path(value) if type_ is Path else value  # plain values are any object
