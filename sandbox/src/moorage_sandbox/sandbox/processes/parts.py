"""The parts of a sandbox and their start as two processes (`loop_parts`: all in one)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeVar

import msgspec

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError, UsageError
from moorage_sandbox.sandbox.processes.child_process import ChildProgram, encode_settings
from moorage_sandbox.sandbox.processes.children import Child
from moorage_sandbox.sandbox.settings import (
    ChildReport,
    SchedulerReport,
    ServerReport,
    ServerSettings,
)

R = TypeVar("R", bound=ChildReport)

_SERVER_COMMAND = (sys.executable, "-P", "-m", "moorage_sandbox.sandbox.processes.server_process")
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
        """Wait, after `serving`, for the next login link of the scheduler's page."""
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
    scheduler
        The scheduler, which writes `SchedulerReport`; None to run none.
    autoscaler
        Adds and removes nodes; None to keep the nodes there are.
    on_message
        Gets the standard error of the processes.
    """

    def __init__(
        self,
        settings: ServerSettings,
        scheduler: ChildProgram | None,
        *,
        autoscaler: ChildProgram | None = None,
        on_message: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._server = Child("API server", _SERVER_COMMAND, on_error_line=on_message)
        self._programs = {"scheduler": scheduler, "autoscaler": autoscaler}
        self._scheduler, self._autoscaler = (
            Child(name, () if program is None else program.command, on_error_line=on_message)
            for name, program in self._programs.items()
        )
        self._scheduling = asyncio.Event()
        self._served: asyncio.Queue[str] = asyncio.Queue()
        self._pages: asyncio.Queue[str] = asyncio.Queue()
        self._reports: asyncio.Queue[ServerReport] = asyncio.Queue()
        self._tasks = TaskOwner(on_failure=lambda _name, _error: None)
        self._watched: list[asyncio.Task[None]] = []

    async def start_server(self) -> ServerReport:
        """Start the server process and wait for its first report.

        The scheduler's process is started, too, and imports what it needs meanwhile.
        """
        await self._server.start(encode_settings(self._settings))
        if self._programs["scheduler"] is not None:
            await self._scheduler.start()
        self._watched.append(self._tasks.spawn(self._follow_server(), name="reports of the server"))
        return await self._report()

    async def nodes_ready(self) -> None:
        """Wait for the server's report that all nodes are registered; start the autoscaler."""
        await self._report()
        program = self._programs["autoscaler"]
        if program is not None:
            await self._autoscaler.start(program.first_input)
            self._watched.append(
                self._tasks.spawn(
                    _follow(self._autoscaler, ChildReport, _ignore),
                    name="reports of the autoscaler",
                )
            )

    async def start_scheduler(self) -> None:
        """Send the scheduler's process its settings, with which it begins."""
        program = self._programs["scheduler"]
        assert program is not None, "without a program nobody starts a scheduler"
        await self._scheduler.send(program.first_input)
        self._watched.append(
            self._tasks.spawn(
                _follow(self._scheduler, SchedulerReport, self._take_report),
                name="reports of the scheduler",
            )
        )

    async def scheduling(self) -> None:
        """Wait for the scheduler's report that it places pods."""
        await self._scheduling.wait()

    async def serving(self) -> str:
        """Wait for the scheduler's report of its address."""
        return await self._served.get()

    async def page(self) -> str:
        """Wait for the scheduler's next report of a login link of its page."""
        return await self._pages.get()

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
        try:
            await _follow(self._server, ServerReport, self._reports.put_nowait)
        except MoorageError as error:
            bad_input = isinstance(error, UsageError)
            self._reports.put_nowait(ServerReport(error=str(error), bad_input=bad_input))
            raise

    async def _report(self) -> ServerReport:
        report = await self._reports.get()
        if report.error:
            raise _failure(report)
        return report

    def _take_report(self, report: SchedulerReport) -> None:
        if report.ready:
            self._scheduling.set()
        if report.serving:
            self._served.put_nowait(report.serving)
        if report.page:
            self._pages.put_nowait(report.page)


async def _follow(child: Child, report_type: type[R], take: Callable[[R], None]) -> NoReturn:
    """Pass the reports of a process on until it ends; raise the reason of its end.

    Raises
    ------
    MoorageError
        The error of the last report, or how the process ended.
    """
    failure: MoorageError | None = None
    async for line in child.lines():
        report = msgspec.json.decode(line, type=report_type)
        if report.error:
            failure = _failure(report)
        else:
            take(report)
    code = await child.ended()
    if failure is not None:
        raise failure
    if code == -signal.SIGALRM:
        raise MoorageError(_HUNG)
    raise MoorageError(f"the {child.name} ended by itself, with code {code}")


def _ignore(report: ChildReport) -> None:
    del report


def _failure(report: ChildReport) -> MoorageError:
    return UsageError(report.error) if report.bad_input else MoorageError(report.error)
