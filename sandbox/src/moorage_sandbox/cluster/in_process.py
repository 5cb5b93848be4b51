"""The twin of the HTTP transport: calls go straight into an API server of the same process.

With this transport client, agents and scheduler run unchanged under a virtual clock. The node
agents and controllers of a sandbox share a process with the server, and need no TLS to call it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import unquote

from moorage.base import aio
from moorage.base.errors import TransportError
from moorage.client.transport import Answer, Call, LineSplitter, LineStream
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User

ADMIN = User("kubernetes-admin", ("system:masters",))


class Handling(Protocol):
    """Answers calls; an `ApiServer` does, or what stands before one."""

    async def handle(self, request: Request) -> Reply:
        """Answer one call."""
        ...


class InProcessTransport:
    """Carries calls to a server in this process.

    Parameters
    ----------
    server
        The server that answers.
    user
        The user that calls.
    latency_seconds
        Delay of a call each way, in the time of the loop; so calls overlap as on a network.
    user_agent
        Value of the ``User-Agent`` header.
    """

    def __init__(
        self,
        server: Handling,
        *,
        user: User = ADMIN,
        latency_seconds: float = 0.001,
        user_agent: str = "",
    ) -> None:
        self._headers = {"user-agent": user_agent} if user_agent else {}
        self._server = server
        self._user = user
        self._latency_seconds = latency_seconds
        self._closed = False

    async def request(self, call: Call) -> Answer:
        """Send a call and return the whole answer.

        Raises
        ------
        TransportError
            The transport has been closed.
        """
        reply = await self._handle(call)
        if isinstance(reply.body, bytes):
            body = reply.body
        else:
            body = b"".join([chunk async for chunk in reply.body])
        await aio.sleep(self._latency_seconds)
        return Answer(reply.status, _headers(reply), body)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line inside the context."""
        return self._stream(call)

    async def close(self) -> None:
        """Refuse further calls; idempotent."""
        self._closed = True

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        reply = await self._handle(call)
        if isinstance(reply.body, bytes):
            yield _Lines(reply, _once(reply.body))
            return
        chunks: Any = reply.body
        async with aclosing(chunks):
            yield _Lines(reply, chunks)

    async def _handle(self, call: Call) -> Reply:
        if self._closed:
            raise TransportError("the transport is closed")
        await aio.sleep(self._latency_seconds)
        headers = {"accept": call.accept, **self._headers, **dict(call.headers)}
        if call.body is not None:
            headers["content-type"] = call.content_type
        request = Request(
            method=call.method,
            path=unquote(call.path),
            query=call.query,
            headers=headers,
            body=call.whole_body,
            user=self._user,
        )
        return await self._server.handle(request)


class _Lines:
    """The lines of one answer."""

    def __init__(self, reply: Reply, chunks: AsyncIterator[bytes]) -> None:
        self.status = reply.status
        self.headers: Mapping[str, str] = _headers(reply)
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        async for chunk in self._chunks:
            for line in splitter.feed(chunk):
                yield line
        if rest := splitter.rest():
            yield rest


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _headers(reply: Reply) -> dict[str, str]:
    headers = {name.lower(): value for name, value in reply.headers}
    return {**headers, "content-type": reply.content_type}
