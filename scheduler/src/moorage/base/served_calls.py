"""Limits of the calls that the page and the scheduler's port answer.

The API server has the same limits (`moorage_sandbox.apiserver.wire.connection`). Without limits of
time anybody who reaches a port could hold all files of the process with calls that are sent by
half. No body is inflated: none that is asked for is large, and the limits count what is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from aiohttp import web

from moorage.base.aio import TaskOwner, real_seconds

T = TypeVar("T")

HEADERS_SECONDS: Final = 32.0
"""For the first headers of a connection: kube-apiserver's ReadHeaderTimeout."""
BODY_SECONDS: Final = 60.0
"""For the body of a call: kube-apiserver's --request-timeout."""
IDLE_SECONDS: Final = 75.0
"""How long a connection without a call, or with further headers by half, stays open."""
LOOK_SECONDS: Final = 0.25
"""How often to look whether the caller of a long answer has hung up."""


class _Connection(web.RequestHandler):
    """A connection that is closed when its first headers do not arrive."""

    __slots__ = ("_waiting",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the headers."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(real_seconds(HEADERS_SECONDS), self._end)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the time limit."""
        self._waiting.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a call; from its last header on the library limits idle times."""
        super().data_received(data)
        if self._messages:
            self._waiting.cancel()

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Listener(web.Server):
    """Makes the protocol object of each new connection."""

    def __call__(self) -> web.RequestHandler:
        """Return the protocol object of a new connection."""
        return _Connection(self, loop=self._loop, **self._kwargs)


class TimedRunner(web.AppRunner):
    """Runs an application whose connections have time limits.

    Parameters
    ----------
    app
        The application.
    shutdown_seconds
        How long calls under way may take at the end.
    """

    def __init__(self, app: web.Application, *, shutdown_seconds: float) -> None:
        idle = real_seconds(IDLE_SECONDS)
        super().__init__(
            app,
            access_log=None,
            shutdown_timeout=shutdown_seconds,
            keepalive_timeout=idle,
            auto_decompress=False,  # `whole_body` refuses an encoding
        )

    async def _make_server(self) -> Any:
        made = await super()._make_server()
        # The library has no place where one could name another class of connections.
        made.__class__ = _Listener
        return made


async def whole_body(request: web.BaseRequest) -> bytes:
    """Return the body of a call.

    Raises
    ------
    aiohttp.web.HTTPRequestTimeout
        It did not arrive in time.
    aiohttp.web.HTTPUnsupportedMediaType
        It is encoded.
    aiohttp.web.HTTPBadRequest
        The caller hung up in its middle; nobody reads this.
    """
    if request.headers.get("Content-Encoding", "").lower() not in ("", "identity"):
        raise web.HTTPUnsupportedMediaType(text="send the body without Content-Encoding\n")
    try:
        async with asyncio.timeout(real_seconds(BODY_SECONDS)):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the body did not arrive in time\n") from None
    except ConnectionError:
        raise web.HTTPBadRequest(text="the caller has hung up\n") from None


async def while_connected(request: web.BaseRequest, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, which is cancelled when the caller hangs up.

    The library could cancel every call at once. But calls share looks at credentials, and a caller
    who hangs up must not end these for the others.

    Raises
    ------
    aiohttp.web.HTTPBadRequest
        The caller has hung up; nobody reads this.
    """
    tasks = TaskOwner(on_failure=lambda _name, _error: None)
    task = tasks.spawn(work, name=f"answer {request.path}")
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=real_seconds(LOOK_SECONDS))
            if request.transport is None and not task.done():
                raise web.HTTPBadRequest(text="the caller has hung up\n")
        result: T = task.result()
        return result
    finally:
        await tasks.cancel_all()
