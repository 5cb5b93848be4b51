"""Programs that tests run to fetch other programs: quiet ones, which say only why they failed."""

from __future__ import annotations

import subprocess


class ProgramError(Exception):
    """A program failed; the message is the last line of what it said."""


def run_quietly(command: list[str], *, seconds: float) -> None:
    """Run a program without input to its end.

    Raises
    ------
    ProgramError
        The program cannot be started, takes longer than that, or fails.
    """
    try:
        outcome = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"it took longer than {seconds:.0f} s") from error
    except OSError as error:
        raise ProgramError(str(error)) from error
    if outcome.returncode:
        said = outcome.stderr.strip().splitlines() or [f"exit code {outcome.returncode}"]
        raise ProgramError(said[-1])
