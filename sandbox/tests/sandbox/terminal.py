"""A command on a terminal of its own, and what it wrote there."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

SECONDS_MAX = 30
# A job in the background of a script ignores Ctrl-C, and so would what it starts.
_OWN_THE_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A terminal whose first process is a command, as if typed there.

    Parameters
    ----------
    directory
        The directory to start in, which is also the home.
    command
        Program and arguments.
    size
        Columns and lines.
    environ
        The environment; that of the tests, with this home, unless given.
    """

    def __init__(
        self,
        directory: Path,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (80, 24),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._controller, terminal = pty.openpty()
        columns, lines = size
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_THE_TERMINAL, *command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=directory,
            env={**(environ or {**os.environ, "HOME": str(directory)}), "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._controller)

    def until(self, word: str) -> str:
        """Read until a word was written; return everything so far."""
        end = time.monotonic() + SECONDS_MAX
        while word not in self.text:
            assert time.monotonic() < end, self.text
            if not self._read(1.0):
                assert self.process.poll() is None, self.text
        return self.text

    def for_seconds(self, seconds: float) -> str:
        """Read for a time, or until the end; return everything so far."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.process.poll() is None:
            self._read(min(left, 0.1))
        return self.text

    def interrupt(self) -> None:
        """Type Ctrl-C."""
        os.write(self._controller, b"\x03")

    def ended(self) -> int:
        """Read until the process has ended; return its exit code."""
        end = time.monotonic() + SECONDS_MAX
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text
            self._read(0.1)
        while self._read(0.0):
            pass
        return self.process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the first process."""
        self.process.send_signal(number)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._controller], [], [], seconds)[0]:
            return False
        try:
            read = os.read(self._controller, 65536)
        except OSError:  # the last process that had the terminal open is gone
            return False
        self.text += read.decode(errors="replace")
        return bool(read)
