"""A transport that answers from a script, and a sleep that costs nothing.

Used by the tests of reflector, verbs and recorder; nothing here knows their rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Call, LineStream

_real_sleep = aio.sleep


class Stream:
    """A scripted answer to `stream`: lines (values are encoded), or an exception to raise."""

    def __init__(self, *lines: Any, status: int = 200) -> None:
        self.lines = lines
        self.status = status


class _Lines:
    def __init__(self, script: Stream) -> None:
        self._script = script
        self.status = script.status
        self.headers: Mapping[str, str] = {}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._script.lines:
            if isinstance(line, Exception):
                raise line
            yield line if isinstance(line, bytes) else msgspec.json.encode(line)


class ScriptedTransport:
    """Answers each call with the next entry of its script, then hangs for ever.

    An entry is an `Answer`, a `Stream`, an exception to raise, or a function of the call that
    returns one of them.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.calls: list[Call] = []
        self.exhausted = asyncio.Event()
        self.closed = False

    async def request(self, call: Call) -> Answer:
        entry = await self._next(call)
        assert isinstance(entry, Answer), f"{call.method} {call.target} was scripted {entry!r}"
        return entry

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        entry = await self._next(call)
        assert isinstance(entry, Stream), f"{call.method} {call.target} was scripted {entry!r}"
        yield _Lines(entry)

    async def close(self) -> None:
        self.closed = True

    @property
    def targets(self) -> list[str]:
        return [f"{call.method} {call.target}" for call in self.calls]

    async def _next(self, call: Call) -> Any:
        await _real_sleep(0)
        self.calls.append(call)
        if not self.script:
            self.exhausted.set()
            await asyncio.Event().wait()
        entry = self.script.pop(0)
        if callable(entry):
            entry = entry(call)
        if isinstance(entry, Exception):
            raise entry
        return entry


def answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A whole answer with a JSON body."""
    return Answer(status, headers or {}, msgspec.json.encode(value))


def failure(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    """A Status object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


@contextmanager
def instant_sleep(clock: ManualClock) -> Iterator[list[float]]:
    """Make `aio.sleep` move the clock instead of waiting; yields the seconds slept."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:
            slept.append(seconds)
            clock.advance(seconds)
        await _real_sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aio, "sleep", sleep)
        yield slept
