"""The CEL process: evaluates expressions that may take long, with a deadline and a memory limit.

Place in the flow: the API server sets it as the place of slow expressions
(`moorage.cel.evaluators`) for calls in its thread. The bounds of cost
(`moorage.cel.budget`) come first. The deadline and the memory limit here are a second wall: an
object that exceeds them is refused in the words of kube-apiserver.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

# Deadline of the process for one object, and its memory limit.
DEADLINE_SECONDS: Final = 3.0
_MEMORY_BYTES: Final = 1536 * 1024 * 1024
# Deadline for the start of the process: the import of the runtime, on a busy machine.
_START_SECONDS: Final = 30.0
_PROGRAM: Final = f"from {__name__} import serve; serve(%d)"


class CelProcess:
    """A process that evaluates expressions; started on first use, and again after its end."""

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a function called; None where it exceeds the deadline or the limit of memory."""
        try:
            connection = self._connection()
            connection.send((function, arguments))
            return _receive(connection, DEADLINE_SECONDS)
        except (OSError, EOFError):  # TimeoutError is an OSError.
            self.close()
            return None

    def close(self) -> None:
        """End the process."""
        running, self._running = self._running, None
        if running is not None:
            process, connection = running
            process.kill()
            process.wait()
            connection.close()

    def _connection(self) -> Connection:
        if self._running is None:
            ours, its = Pipe()
            # -P: no module is taken from the directory that the server was started in.
            command = [sys.executable, "-P", "-c", _PROGRAM % its.fileno()]
            null = subprocess.DEVNULL
            process = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=null, pass_fds=[its.fileno()]
            )
            its.close()
            self._running = process, ours
            _receive(ours, _START_SECONDS)
        return self._running[1]


def _receive(connection: Connection, seconds: float) -> Any:
    if not connection.poll(seconds):
        raise TimeoutError
    return connection.recv()


def serve(descriptor: int) -> None:
    """Run the process: answer one question after the other on a connection."""
    with contextlib.suppress(OSError, ValueError):  # Not every system has this limit.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    connection = Connection(descriptor)
    connection.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))
