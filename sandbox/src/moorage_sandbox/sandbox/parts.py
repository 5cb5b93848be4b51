"""The parts of a sandbox and their start as two processes (`loop_parts`: all in one)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError, UsageError
from moorage_sandbox.sandbox.children import Child
from moorage_sandbox.sandbox.settings import ServerReport, ServerSettings

_SERVER_COMMAND = (sys.executable, "-P", "-m", "moorage_sandbox.sandbox.server_process")
EXIT_BAD_INPUT = 2
_HUNG = (
    "the scheduler ended: a plugin hangs where it cannot be interrupted, the stack above says where"
)


class Parts(Protocol):
    """Server, nodes and scheduler, wherever they run."""

    async def start_server(self) -> ServerReport:
        """Start server and nodes; return where it listens.

        Raises
        ------
        MoorageError
            The server does not start.
        """
        ...

    async def nodes_ready(self) -> None:
        """Wait until every node is registered."""
        ...

    async def start_scheduler(self) -> None:
        """Start the scheduler; the kubeconfig it reads has been written."""
        ...

    async def scheduling(self) -> None:
        """Wait until the scheduler places pods; waits for ever if the scheduler ends before."""
        ...

    async def serving(self) -> str:
        """Wait for the address of the scheduler's metrics and health checks; "" for none."""
        ...

    async def page(self) -> str:
        """Wait, after `serving`, for the login link of the scheduler's page."""
        ...

    async def failed(self) -> None:
        """Wait for a part that ends without being asked to, and raise the reason.

        Raises
        ------
        MoorageError
            The failure of the part.
        """
        ...

    async def stop(self) -> None:
        """End everything, the scheduler first; idempotent."""
        ...

    def kill(self) -> None:
        """Kill all parts at once."""
        ...


class ProcessParts:
    """Parts in separate processes, so that neither can stall the other.

    Parameters
    ----------
    settings
        Settings of the server.
    scheduler_command
        Program and arguments that run the scheduler; empty to run none. The scheduler begins when
        it receives a line. It writes a line when it schedules, then the address of its metrics, and
        then, with a page, the page's login link.
    autoscaler_command
        Program and arguments that add and remove nodes; empty to keep the nodes there are.
    on_message
        Gets the standard error of the processes.
    """

    def __init__(
        self,
        settings: ServerSettings,
        scheduler_command: Sequence[str],
        *,
        autoscaler_command: Sequence[str] = (),
        on_message: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._server = Child("API server", _SERVER_COMMAND, on_error_line=on_message)
        self._scheduler_command = tuple(scheduler_command)
        self._last_words = ""
        self._on_message = on_message
        self._scheduler = Child(
            "scheduler", scheduler_command, on_error_line=self._scheduler_message
        )
        self._scales = bool(autoscaler_command)
        self._autoscaler = Child("autoscaler", autoscaler_command, on_error_line=on_message)
        self._reports: asyncio.Queue[ServerReport] = asyncio.Queue()
        self._tasks = TaskOwner(on_failure=lambda _name, _error: None)
        self._watched: list[asyncio.Task[None]] = []

    async def start_server(self) -> ServerReport:
        """Start the server process and wait for its first report.

        The scheduler's process is started, too, and imports what it needs meanwhile.
        """
        await self._server.start(msgspec.json.encode(self._settings) + b"\n")
        if self._scheduler_command:
            await self._scheduler.start()
        self._watched.append(self._tasks.spawn(self._follow_server(), name="reports of the server"))
        return await self._report()

    async def nodes_ready(self) -> None:
        """Wait for the server's report that all nodes are registered; start the autoscaler."""
        await self._report()
        if self._scales:
            await self._autoscaler.start()
            ended = self._follow_autoscaler()
            self._watched.append(self._tasks.spawn(ended, name="wait for the autoscaler's end"))

    async def start_scheduler(self) -> None:
        """Tell the scheduler's process to begin."""
        await self._scheduler.send(b"\n")
        self._watched.append(
            self._tasks.spawn(self._follow_scheduler(), name="wait for the scheduler's end")
        )

    async def scheduling(self) -> None:
        """Wait for the scheduler's line that it places pods."""
        async for _line in self._scheduler.lines():
            return
        await asyncio.Event().wait()

    async def serving(self) -> str:
        """Wait for the scheduler's line that says where it serves."""
        async for line in self._scheduler.lines():
            return line.decode().strip()
        return ""

    async def page(self) -> str:
        """Wait for the scheduler's line with the login link of its page."""
        return await self.serving()

    async def failed(self) -> None:
        """Wait until one of the processes ends."""
        done, _ = await asyncio.wait(self._watched, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """End autoscaler and scheduler, then the server."""
        await self._tasks.cancel_all()
        await asyncio.gather(self._autoscaler.stop(), self._scheduler.stop())
        await self._server.stop()

    def kill(self) -> None:
        """Kill all."""
        self._autoscaler.kill()
        self._scheduler.kill()
        self._server.kill()

    async def _follow_server(self) -> None:
        """Pass the server's reports on until it ends; raise the reason of its end."""
        report = ServerReport()
        async for line in self._server.lines():
            report = msgspec.json.decode(line, type=ServerReport)
            self._reports.put_nowait(report)
        code = await self._server.ended()
        if not report.error:
            report = ServerReport(error=_ended(self._server, code))
            self._reports.put_nowait(report)
        raise _failure(report.error, bad_input=report.bad_input)

    async def _report(self) -> ServerReport:
        report = await self._reports.get()
        if report.error:
            raise _failure(report.error, bad_input=report.bad_input)
        return report

    async def _follow_scheduler(self) -> None:
        """Wait for the scheduler's end; raise an error with its last message."""
        code = await self._scheduler.ended()
        if code == -signal.SIGALRM:
            raise MoorageError(_HUNG)
        text = self._last_words.removeprefix("error: ")
        raise _failure(text or _ended(self._scheduler, code), bad_input=code == EXIT_BAD_INPUT)

    async def _follow_autoscaler(self) -> None:
        """Wait for the autoscaler's end, which is a failure."""
        code = await self._autoscaler.ended()
        raise MoorageError(_ended(self._autoscaler, code))

    def _scheduler_message(self, line: str) -> None:
        self._last_words = line
        self._on_message(line)


def _failure(text: str, *, bad_input: bool) -> MoorageError:
    return UsageError(text) if bad_input else MoorageError(text)


def _ended(child: Child, code: int) -> str:
    return f"the {child.name} ended by itself, with code {code}"
