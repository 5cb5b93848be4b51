"""A bare HTTPS connection for loading a server: the client must cost less than the server.

`moorage.client` pools connections, retries calls and renews credentials. A measurement wants none
of these, because a failed call is a result.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import msgspec

from moorage.base.errors import MoorageError, TransportError
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import tls_context

# More than the headers a server sends; bodies of any length are read whole.
_HEAD_BYTES_MAX = 1 << 16


class Connector(msgspec.Struct, frozen=True):
    """The address of a server, the certificates to trust and the client's credentials.

    Parameters
    ----------
    host, port
        Address of the server.
    tls
        None for plain HTTP.
    head
        Header lines sent with every call.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None
    head: bytes

    async def open_connection(self) -> Wire:
        """Open a connection.

        Raises
        ------
        TransportError
            The server does not answer.
        """
        try:
            reader, writer = await asyncio.open_connection(
                self.host, self.port, ssl=self.tls, limit=_HEAD_BYTES_MAX
            )
        except OSError as error:
            raise TransportError(f"{self.host}:{self.port}: {error}") from error
        return Wire(reader, writer, self.head)


async def connector_of(access: ServerAccess) -> Connector:
    """Return the connector for a server."""
    credential = await access.credentials.credential()
    parts = urlsplit(access.server)
    context = tls_context(access, credential)
    lines = [("Host", parts.netloc), ("User-Agent", "moorage-bench"), *credential.headers]
    return Connector(
        parts.hostname or "",
        parts.port or 443,
        context if isinstance(context, ssl.SSLContext) else None,
        "".join(f"{name}: {value}\r\n" for name, value in lines).encode(),
    )


class Wire:
    """One connection, for one call after the other.

    Parameters
    ----------
    reader, writer
        The two directions of the connection.
    head
        Header lines sent with every call.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    async def call(
        self, method: str, target: str, body: bytes = b"", *, accept: str = "application/json"
    ) -> bytes:
        """Make a call and return the body of the answer.

        Raises
        ------
        MoorageError
            The server refused the call, or closed the connection.
        """
        try:
            await self._ask(method, target, body, accept)
            status, headers = await self._answer_head()
            if b"content-length" in headers:
                answer = await self._reader.readexactly(int(headers[b"content-length"]))
            else:
                answer = b"".join([piece async for piece in self._chunks()])
        except (OSError, EOFError) as error:
            raise TransportError(f"{method} {target}: {error}") from error
        if status >= 300:
            text = answer.decode(errors="replace")
            raise MoorageError(f"{method} {target}: {status}: {text[:500]}")
        return answer

    async def stream(self, target: str) -> AsyncIterator[bytes]:
        """Return the pieces of an endless answer, once its head has been read.

        Raises
        ------
        MoorageError
            The server refused.
        """
        await self._ask("GET", target, b"", "application/json")
        status, _ = await self._answer_head()
        if status >= 300:
            raise MoorageError(f"GET {target}: {status}")
        return self._chunks()

    def close(self) -> None:
        """Close the connection."""
        self._writer.transport.abort()

    async def _ask(self, method: str, target: str, body: bytes, accept: str) -> None:
        lines = f"{method} {target} HTTP/1.1\r\nAccept: {accept}\r\n"
        if body:
            lines += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(lines.encode() + self._head + b"\r\n" + body)
        await self._writer.drain()

    async def _answer_head(self) -> tuple[int, dict[bytes, bytes]]:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        return int(first.split(b" ", 2)[1]), headers

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            piece = await self._reader.readexactly(size + 2)
            yield piece[:-2]
        await self._reader.readuntil(b"\r\n")
