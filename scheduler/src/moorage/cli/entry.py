"""The start of the process: SIGINT and SIGTERM during the imports end it as is promised.

This module imports next to nothing itself, so that the time without this protection is short.
"""

from __future__ import annotations

import os
import signal
import sys

_UNTIL_TOLD = {
    "nodes": ("shapes", "--help", "-h"),
    "run": ("--write-config-to", "--help", "-h"),
    "up": ("--exit-when-settled", "--detach", "-d", "--help", "-h"),
}
"""The commands that run until a signal ends them, and the words with which they do not."""


def main() -> None:
    """Run the command line.

    Nothing is started yet that has to be ended, so a signal may end the process at once. The loop
    of a command that runs until told to end takes the signals over (`moorage.base.process`).
    """
    until_told = _runs_until_told(sys.argv[1:])
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end if until_told else signal.SIG_DFL)
    # The first process of a container does not get a signal for which it has no handler.
    if until_told and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    # A changed file is noticed after the start (`moorage.cli.run.reloading`).
    if sys.argv[1:2] == ["run"] and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # NumPy would start a thread for each processor of the machine, and they spin while the process
    # starts; moorage multiplies no matrices. The environment may say otherwise.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from moorage.cli.main import main as run

    if not until_told:
        signal.signal(signal.SIGINT, before)
    run()


def _runs_until_told(words: list[str]) -> bool:
    command, *others = words or [""]
    if command not in _UNTIL_TOLD:
        return False
    names = {word.partition("=")[0] for word in others}
    return names.isdisjoint(_UNTIL_TOLD[command])


def _end(number: int, frame: object) -> None:
    """End at once. An exception could be lost in an import that expects errors."""
    del number, frame
    os._exit(0)
