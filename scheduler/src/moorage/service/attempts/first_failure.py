"""The first failure of one of the scheduler's own tasks: the scheduler ends with it."""

from __future__ import annotations

import asyncio
import logging

from moorage.base.errors import LeaseLostError

_log = logging.getLogger(__name__)


class FirstFailure:
    """Keeps the first failure that the owner of the tasks reports."""

    def __init__(self) -> None:
        self._happened = asyncio.Event()
        self._problem: BaseException | None = None

    def note_failure(self, name: str, problem: BaseException) -> None:
        """Log the failure of a task, and keep it if it is the first."""
        if isinstance(problem, LeaseLostError):
            _log.error("Leaderelection lost")
        else:
            _log.error("task %s failed", name, exc_info=problem)
        if self._problem is None:
            self._problem = problem
            self._happened.set()

    async def raise_first(self) -> None:
        """Wait for the first failure, and raise it.

        Raises
        ------
        LeaseLostError
            The lease could not be renewed; another replica may be scheduling.
        Exception
            Any other failure of a task, without which the scheduler cannot go on.
        """
        await self._happened.wait()
        assert self._problem is not None
        raise self._problem
