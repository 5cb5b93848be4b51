"""A process that answers questions about the scheduler, so that the scheduler's loop goes on.

The process has a copy of the scheduler's state and is started with the first question. Before each
question it gets what has changed since the one before. One question is answered at a time.

Frames go over pipes: eight bytes of length, then the bytes. An empty frame ends the updates of one
question; the frame after it is the question, and one frame comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from moorage.base import aio
from moorage.base.errors import ApiError, TooManyRequestsError

HEAD_BYTES: Final = 8
_STEP_BACK: Final = "import os; os.setpgid(0, 0); os.nice(19); "
"""The first code of the process: it leaves scarce processors to scheduler and API server.

The process makes a process group of its own: Ctrl-C is for the scheduler, which ends the process.
It stays in the session. Linux may share processors out by sessions first (sched_autogroup), and
then heeds niceness only among the processes of one.
"""
WAITING_MOST: Final = 8
"""Questions that wait for the one before; a further one is refused with 429."""
ANSWER_SECONDS_MOST: Final = 60.0
"""Longest time of one question; then the process is ended."""
_IDLE_SECONDS: Final = 600.0
"""The process is ended when nothing was asked for so long: it has as much memory as the cluster."""
_RETRY_SECONDS: Final = 2.0
_BUFFER_BYTES: Final = 256 * 1024 * 1024


class Mirrored(Protocol):
    """The state that the process has a copy of."""

    def first(self) -> bytes:
        """Return the frame with which a new process begins; it knows nothing yet."""
        ...

    def updates(self) -> Iterable[bytes]:
        """Yield what has changed since the last call, as of the first frame that is taken."""
        ...


class AnsweringProcess:
    """Asks the process, starts it, ends it.

    Parameters
    ----------
    code
        Python code that the process runs.
    mirrored
        The state of the scheduler.
    answer_seconds_most
        Longest time of one question, from its turn to its answer.
    """

    def __init__(
        self,
        code: str,
        mirrored: Mirrored,
        *,
        answer_seconds_most: float = ANSWER_SECONDS_MOST,
    ) -> None:
        self._code = code
        self._mirrored = mirrored
        self._seconds_most = answer_seconds_most
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._tasks = aio.TaskOwner()

    @property
    def pid(self) -> int | None:
        """The process that is there, None before the first question."""
        return None if self._process is None else self._process.pid

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        """Return the frame that answers a question.

        Parameters
        ----------
        question
            Makes the question's frame when its turn has come.

        Raises
        ------
        TooManyRequestsError
            Too many questions wait already.
        ApiError
            503: the answer took too long, or the process ended.
        """
        if self._waiting > WAITING_MOST:
            raise TooManyRequestsError(
                429,
                "TooManyRequests",
                f"{self._waiting} questions wait to be answered one after another; ask again later",
                retry_after_seconds=_RETRY_SECONDS,
            )
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answered(question)
        finally:
            self._waiting -= 1

    def renew(self) -> None:
        """Answer later questions by a new process, whose copy begins anew."""
        if self._process is not None:
            self._end_idle()

    async def close(self) -> None:
        """End the process; idempotent."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # it may have no group yet
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()
        await self._tasks.cancel_all()

    async def _answered(self, question: Callable[[], bytes]) -> bytes:
        """Send updates and the question, and wait for the answer."""
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._seconds_most):
                answer = await self._exchange(question)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            what = (
                f"the answer took longer than {self._seconds_most:.0f} s"
                if isinstance(error, TimeoutError)
                else "the process that answers has ended"
            )
            raise ApiError(
                503, "ServiceUnavailable", f"{what}; ask again", retry_after_seconds=_RETRY_SECONDS
            ) from error
        except BaseException:
            await self.close()  # nobody reads the answer of a caller that has gone
            raise
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(_IDLE_SECONDS, self._end_idle)
        return answer

    def _end_idle(self) -> None:
        self._tasks.spawn(self._close_between(), name="end the process that answers")

    async def _close_between(self) -> None:
        async with self._turn:
            process, self._process = self._process, None
            if process is not None and process.stdin is not None:
                process.stdin.close()  # it ends with its input
                await process.wait()

    async def _exchange(self, question: Callable[[], bytes]) -> bytes:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await self._started()
        assert process.stdin is not None, "a pipe"
        assert process.stdout is not None, "a pipe"
        for frame in self._mirrored.updates():
            await _send(process.stdin, frame)
        asked = question()
        await _send(process.stdin, b"")
        await _send(process.stdin, asked)
        head = await process.stdout.readexactly(HEAD_BYTES)
        return await process.stdout.readexactly(int.from_bytes(head))

    async def _started(self) -> asyncio.subprocess.Process:
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _STEP_BACK + self._code,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_BUFFER_BYTES,
            env={**os.environ, **threads},
        )
        assert process.stdin is not None, "a pipe"
        await _send(process.stdin, self._mirrored.first())
        return process


async def _send(pipe: asyncio.StreamWriter, frame: bytes) -> None:
    """Send a frame; the loop gets a turn after each."""
    pipe.write(len(frame).to_bytes(HEAD_BYTES))
    pipe.write(frame)
    await pipe.drain()
    await aio.sleep(0)
