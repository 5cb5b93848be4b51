"""The parts of a sandbox in one loop, for debugging: ``moorage up --single-process``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerReport, ServerSettings


class LoopParts:
    """All parts in the caller's loop, for debugging.

    Parameters
    ----------
    settings
        Settings of the server.
    scheduler
        Makes the scheduler's coroutine, given the callbacks for when it schedules, and for the
        address of its metrics and the login link of its page.
    clock
        Time for all parts.
    """

    def __init__(
        self,
        settings: ServerSettings,
        scheduler: Callable[[Callable[[], None], Callable[[str], None]], Coroutine[Any, Any, None]],
        *,
        clock: Clock,
    ) -> None:
        self._server = SandboxServer(settings, clock=clock)
        self._scheduler = scheduler
        self._ready = asyncio.Event()
        self._scheduling = asyncio.Event()
        self._served: asyncio.Queue[str] = asyncio.Queue()
        self._tasks = TaskOwner(on_failure=lambda _name, _error: None)
        self._watched: list[asyncio.Task[None]] = []

    async def start_server(self) -> ServerReport:
        """Start server and nodes in this loop."""
        report = await self._server.start()
        nodes = self._server.play_nodes(self._ready.set)
        self._watched.append(self._tasks.spawn(nodes, name="nodes"))
        return report

    async def nodes_ready(self) -> None:
        """Wait until the nodes are registered, or could not be registered."""
        ready = self._tasks.spawn(_wait(self._ready), name="wait for nodes")
        await asyncio.wait({ready, *self._watched}, return_when=asyncio.FIRST_COMPLETED)
        for task in self._watched:
            if task.done():
                task.result()

    async def start_scheduler(self) -> None:
        """Start the scheduler in this loop."""
        work = self._scheduler(self._scheduling.set, self._served.put_nowait)
        self._watched.append(self._tasks.spawn(work, name="scheduler"))

    async def scheduling(self) -> None:
        """Wait until the scheduler reports that it schedules."""
        await self._scheduling.wait()

    async def serving(self) -> str:
        """Wait for the address of the scheduler's metrics."""
        return await self._served.get()

    async def page(self) -> str:
        """Wait for the next login link of the scheduler's page."""
        return await self._served.get()

    async def failed(self) -> None:
        """Wait until one of the tasks ends."""
        done, _ = await asyncio.wait(self._watched, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
            raise MoorageError(f"{task.get_name()} ended by itself")

    async def stop(self) -> None:
        """End scheduler and nodes, then the server."""
        await self._tasks.cancel_all()
        await self._server.stop()

    def kill(self) -> None:
        """Nothing to do: there is no other process."""


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
