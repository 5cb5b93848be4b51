"""``moorage up -d``: the command returns when the sandbox is ready, which goes on by itself.

The process forks before it has started or imported anything. The child leads a session of its own
and keeps the terminal for its messages until `Detached.let_go`; then they go to a log file.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from moorage.base.errors import UsageError

_READY = b"1"


class Detached:
    """The child's side.

    Parameters
    ----------
    pipe
        Written to when the parent may return.
    log
        Open file for the later messages.
    """

    def __init__(self, pipe: int, log: int) -> None:
        self._pipe = pipe
        self._log = log

    def let_go(self) -> None:
        """Let the parent return; whatever is printed from now on goes to the log. Idempotent."""
        if self._pipe < 0:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(self._log, stream.fileno())
        os.write(self._pipe, _READY)
        os.close(self._pipe)
        self._pipe = -1


def detach(log: Path) -> Detached | int:
    """Fork; in the parent wait until the child is ready or has ended.

    Returns
    -------
    Detached or int
        In the child its side; in the parent the exit code: 0, or the code of the child that ended.

    Raises
    ------
    UsageError
        The log file cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write the log {log}: {error.strerror}") from error
    reading, writing = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    child = os.fork()
    if child:
        os.close(file)
        os.close(writing)
        return _wait(child, reading)
    os.close(reading)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Detached(writing, file)


def _wait(child: int, reading: int) -> int:
    try:
        if os.read(reading, 1) == _READY:
            return 0
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        # The child has a session of its own, so that Ctrl-C did not reach it.
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
