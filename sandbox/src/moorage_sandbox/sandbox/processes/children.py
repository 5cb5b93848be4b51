"""Child processes of the sandbox: start them, read their output, end them in time.

A child runs in its own session, so that Ctrl-C on the terminal reaches the parent alone and the
parent ends the parts in order. A child notices a dead parent by the end of its standard input.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError

# The time one child gets before it is killed, of the two seconds a sandbox may take to end.
_GRACE_SECONDS = 0.8
_DRAIN_SECONDS = 0.1
# A line of the server's report holds a kubeconfig: a few KiB. Never reached in practice.
_LINE_BYTES_MAX = 1 << 20


class Child:
    """One child process.

    Parameters
    ----------
    name
        For messages: ``scheduler``.
    arguments
        Program and arguments.
    on_error_line
        Gets each line the child writes to standard error.
    grace_seconds
        How long it may take to end before it is killed.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        on_error_line: Callable[[str], None],
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        self.name = name
        self._arguments = arguments
        self._on_error_line = on_error_line
        self._grace_seconds = grace_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._errors: asyncio.Task[None] | None = None
        self._tasks = TaskOwner()

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The process, once started."""
        assert self._process is not None, "the child was not started"
        return self._process

    async def start(self, first_input: bytes = b"") -> None:
        """Start the process and write to its standard input, which stays open.

        Raises
        ------
        MoorageError
            The program cannot be started.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=_LINE_BYTES_MAX,
            )
        except OSError as error:
            raise MoorageError(f"cannot start the {self.name}: {error.strerror}") from error
        self._errors = self._tasks.spawn(self._read_errors(), name=f"errors of {self.name}")
        if first_input:
            await self.send(first_input)

    async def send(self, data: bytes) -> None:
        """Write to the standard input of the process."""
        stdin = self.process.stdin
        assert stdin is not None, "standard input is a pipe"
        try:
            stdin.write(data)
            await stdin.drain()
        except ConnectionError:
            # The child has ended already; the caller reads why from its output and exit code.
            return

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of standard output until it ends."""
        stdout = self.process.stdout
        assert stdout is not None, "standard output is a pipe"
        while line := await stdout.readline():
            yield line

    async def ended(self) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        return await self.process.wait()

    async def stop(self) -> None:
        """End the process, by force if it takes too long."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._signal(force=False)
            try:
                async with asyncio.timeout(self._grace_seconds):
                    await self._process.wait()
            except TimeoutError:
                self.kill()
                await self._process.wait()
        if self._errors is not None:
            # The last lines are worth reading: the pipe has ended with the process.
            await asyncio.wait({self._errors}, timeout=_DRAIN_SECONDS)
        await self._tasks.cancel_all()

    def kill(self) -> None:
        """Kill the process at once."""
        self._signal(force=True)

    def _signal(self, *, force: bool) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        try:
            if force:
                self._process.kill()
            else:
                self._process.terminate()
        except ProcessLookupError:
            # The child has just ended.
            return

    async def _read_errors(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None, "standard error is a pipe"
        while line := await stderr.readline():
            self._on_error_line(line.decode("utf-8", "replace").rstrip())
