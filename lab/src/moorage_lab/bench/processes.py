"""Child processes of a measurement: started, watched for memory and processor time, ended.

`open_harness` starts an API server. What a measurement starts with it ends with it, the newest
first, so a measurement that fails leaves nothing behind.

Memory and processor time are read from ``/proc``; elsewhere they are left out of the report.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain
from pathlib import Path

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage_sandbox.sandbox.processes.child_process import ChildProgram

_PROC = Path("/proc")
_START_SECONDS = 120.0
_END_SECONDS = 5.0
_KIB_PER_MIB = 1024
# Below the ports that Linux (from 32768) and macOS (from 49152) give to outgoing connections.
_PORTS = range(20_000, 32_000)
# Measurements side by side begin far apart. A port counts as taken before its child listens.
_FIRST = os.getpid() * 617 % len(_PORTS)
_PORTS_LEFT = chain(_PORTS[_FIRST:], _PORTS[:_FIRST])
COMMAND = "from moorage.cli.main import main; main()"
"""Code that runs ``moorage`` in this Python: passed to ``-c`` before the arguments."""
_ENDS_WITH_ITS_PARENT = """
import os, signal, threading
def end():
    while os.read(0, 1): pass
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end, daemon=True).start()
"""
"""Comes first in a child. Its input ends when the measurement does, however that ends."""


def server_flags(kubeconfig: Path, *more: str) -> tuple[str, ...]:
    """Return the command line of an API server without nodes, pods or a scheduler.

    Parameters
    ----------
    kubeconfig
        The file that the server writes once it answers.
    more
        Further flags.
    """
    flags = ("up", "--nodes", "0", "--empty", "--no-scheduler", "--port", "0", "-o", "quiet")
    return (*flags, *more, "--kubeconfig-out", str(kubeconfig))


def free_port() -> int:
    """Return a port of this machine on which nothing listens now; no port is returned twice.

    Raises
    ------
    MoorageError
        Something listens on every port not returned before.
    """
    # The system gives no outgoing connection such a port, so none takes it before the child does.
    for port in _PORTS_LEFT:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise MoorageError(f"no port from {_PORTS.start} to {_PORTS.stop - 1} of 127.0.0.1 is free")


class Child:
    """One process of a measurement.

    Parameters
    ----------
    name
        Name in the report.
    program
        The command line after ``moorage``, or a program that reads its settings.
    log
        File for the output of the process.
    """

    def __init__(self, name: str, program: Sequence[str] | ChildProgram, *, log: Path) -> None:
        self.name = name
        self._program = program
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process."""
        program = self._program
        command: Sequence[str]
        if isinstance(program, ChildProgram):
            command = program.command
        else:
            command = (sys.executable, "-c", _ENDS_WITH_ITS_PARENT + COMMAND, *program)
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        if isinstance(program, ChildProgram):
            assert self._process.stdin is not None, "standard input is a pipe"
            self._process.stdin.write(program.first_input)

    def raise_if_ended(self) -> None:
        """Raise `MoorageError` with the end of its output when the process has ended."""
        assert self._process is not None, "started"
        if self._process.returncode is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise MoorageError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process is not None and self._process.returncode is not None

    async def ends_within(self, seconds: float) -> bool:
        """Return whether the process ends in this time."""
        assert self._process is not None, "started"
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal; nothing happens if the process has ended."""
        assert self._process is not None, "started"
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def output(self) -> str:
        """Return the output of the process so far."""
        return self._log.read_text(errors="replace")

    async def stop(self) -> None:
        """End the process as Ctrl-C would, and wait for it."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    def peak_memory_mib(self) -> float:
        """Return the greatest peak memory of the process and its children, MiB; 0 if unknown."""
        return self._most_mib("VmHWM:")

    def memory_mib(self) -> float:
        """Return the greatest memory now of the process and its children, MiB; 0 if unknown."""
        return self._most_mib("VmRSS:")

    def _most_mib(self, figure: str) -> float:
        return max((_kib(pid, figure) for pid in self._tree()), default=0) / _KIB_PER_MIB

    def processor_seconds(self) -> float:
        """Return the processor time used so far by the process and its children; 0 if unknown."""
        return sum(_processor_seconds(pid) for pid in self._tree())

    def own_processor_seconds(self) -> float:
        """Return the processor time used so far by the process alone; 0 if unknown."""
        return 0.0 if self._process is None else _processor_seconds(self._process.pid)

    def _tree(self) -> Iterator[int]:
        if self._process is None or not _PROC.is_dir():
            return
        waiting = [self._process.pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            waiting += _children(pid)


async def wait_for(path: Path, child: Child, *, seconds: float) -> None:
    """Wait until a child has written a file.

    Raises
    ------
    MoorageError
        The child ended, or the time limit passed.
    """
    try:
        async with asyncio.timeout(seconds):
            while not path.exists():  # noqa: ASYNC240 - a local stat, microseconds
                child.raise_if_ended()
                await aio.sleep(0.05)
    except TimeoutError:
        raise MoorageError(f"{child.name} did not write {path} within {seconds:.0f} s") from None


class Harness:
    """The running API server of one measurement.

    Parameters
    ----------
    server
        Its process.
    kubeconfig
        The file that leads to it; files next to it end with the harness.
    access
        What the file says.
    stack
        Ends what is handed out.

    Attributes
    ----------
    server, kubeconfig, access
        As given.
    """

    def __init__(
        self, server: Child, kubeconfig: Path, access: ServerAccess, stack: AsyncExitStack
    ) -> None:
        self.server = server
        self.kubeconfig = kubeconfig
        self.access = access
        self._stack = stack

    @property
    def folder(self) -> Path:
        """The folder of the measurement."""
        return self.kubeconfig.parent

    def child(self, name: str, arguments: Sequence[str]) -> Child:
        """Return a process that is not started yet, and ends with the harness at the latest."""
        child = Child(name, arguments, log=self.folder / f"{name}.log")
        self._stack.push_async_callback(child.stop)
        return child

    def scheduler(self, *flags: str, name: str = "scheduler") -> Child:
        """Return a scheduler of this server as `child` does; it is not started yet."""
        return self.child(name, ("run", "--kubeconfig", str(self.kubeconfig), *flags))

    def open_transport(
        self, access: ServerAccess | None = None, *, user_agent: str = "moorage-bench"
    ) -> HttpTransport:
        """Return connections to the API server, or to what else an access leads to."""
        transport = HttpTransport(access or self.access, user_agent=user_agent)
        self._stack.push_async_callback(transport.close)
        return transport


@asynccontextmanager
async def open_harness(
    clock: Clock,
    *,
    name: str = "server",
    server_program: Callable[[Path], Sequence[str] | ChildProgram] = server_flags,
) -> AsyncIterator[Harness]:
    """Start an API server for a measurement, and end it with all that the measurement started.

    Parameters
    ----------
    clock
        Time of the credentials.
    name
        The server's name in reports and errors.
    server_program
        Makes the server's program, as `Child` takes it, from the kubeconfig that it is to write.

    Raises
    ------
    MoorageError
        The server ended early, or did not write its kubeconfig in two minutes.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-")))
        kubeconfig = folder / "kubeconfig"
        server = Child(name, server_program(kubeconfig), log=folder / f"{name}.log")
        stack.push_async_callback(server.stop)
        await server.start()
        await wait_for(kubeconfig, server, seconds=_START_SECONDS)
        yield Harness(server, kubeconfig, find_access(str(kubeconfig), clock=clock), stack)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for listing in (_PROC / str(pid) / "task").glob("*/children"):
        try:
            children += [int(child) for child in listing.read_text().split()]
        except OSError:
            continue  # the thread ended meanwhile
    return children


def _kib(pid: int, figure: str) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(figure)), 0)


def _processor_seconds(pid: int) -> float:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
