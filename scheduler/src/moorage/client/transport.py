"""The seam between verbs and the wire: one call, one answer, or one stream of lines.

``requests`` builds a `Call`; a `Transport` carries it: over HTTP (``http_transport``), or inside
the process (``moorage_sandbox.testing``), so the same code runs under a virtual clock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import quote, urlencode

import msgspec

from moorage.base.errors import DecodeError

JSON = "application/json"

ANSWER_BYTES_MAX = 64 << 20
"""The longest answer that is read, unless a call says otherwise, bytes. A guess: 20 of the largest
objects, or an extender's answer about 15,000 whole nodes of 4 KB."""


class Call(msgspec.Struct, frozen=True):
    """A call to an API server, independent of how it is carried.

    Parameters
    ----------
    method
        HTTP method, upper case.
    path
        Absolute path below the server's base URL, segments already percent-encoded.
    query
        Query parameters in wire order, not yet encoded.
    body
        Request body, whole or in pieces, or None. Joining a large text that is sent again and again
        would cost more than sending it.
    content_type
        Media type of the body; sent only with a body.
    accept
        Media types accepted for the answer.
    timeout_seconds
        Limit for the whole call (`Transport.request`), or until the answer's headers
        (`Transport.stream`); None waits for ever.
    idle_seconds
        Streams only: the longest silence between two pieces of the body; None waits for ever.
    answer_bytes_max
        The longest answer that is read (`Transport.request`), decompressed, bytes.
    headers
        Further headers, names in lower case.
    pipelined
        Whether the call may share a connection with other pipelined calls of the same turn of the
        loop. They are answered in order. If the connection breaks, the outcome of all of them is
        unknown, so only callers that find out what happened may ask for this.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | tuple[bytes, ...] | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout_seconds: float | None = 30.0
    idle_seconds: float | None = None
    answer_bytes_max: int = ANSWER_BYTES_MAX
    headers: tuple[tuple[str, str], ...] = ()
    pipelined: bool = False

    @property
    def whole_body(self) -> bytes:
        """The body in one piece, empty if there is none."""
        return b"".join(self.body) if isinstance(self.body, tuple) else self.body or b""

    @property
    def target(self) -> str:
        """Path and encoded query, as in the first line of an HTTP request."""
        if not self.query:
            return self.path
        return f"{self.path}?{urlencode(self.query, quote_via=quote)}"


class Answer(msgspec.Struct, frozen=True):
    """A whole answer; headers are looked up by names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LineStream(Protocol):
    """An answer read line by line.

    Iterating yields complete lines without their line end; a last piece without a line end is
    yielded only if the server ended the body properly. Iterating raises `TransportError` when the
    connection breaks, and `DecodeError` when a line is longer than any object.
    """

    @property
    def status(self) -> int:
        """HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers, looked up by names in lower case."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the lines; only once."""
        ...


class Transport(Protocol):
    """Carries calls to one API server."""

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer, whatever its status.

        Raises
        ------
        TransportError
            No answer came; whether the server acted is unknown.
        AnswerTooLargeError
            The answer is longer than the call allows.
        """
        ...

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line inside the context.

        Raises
        ------
        TransportError
            On entering: no answer came.
        """
        ...

    async def close(self) -> None:
        """End open streams and release connections; idempotent."""
        ...


class CallListener(Protocol):
    """Receives a transport's reports of repeated calls and of waits."""

    def retried(self, method: str, code: int | None) -> None:
        """Note that a call is sent again; `code` was the answer, None if no answer came."""
        ...

    def call_delayed(self, method: str, seconds: float) -> None:
        """Note how long a call that is sent now has waited under a limit of our own."""
        ...


LINE_BYTES_MAX = 16 << 20
"""The longest line that is read, a guess: an API server takes no object above 3 MiB."""


class LineSplitter:
    """Cuts a body arriving in arbitrary pieces into lines."""

    __slots__ = ("_pending", "_pending_bytes")

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Add a piece and return the lines it completed, without line ends, empty ones dropped.

        Raises
        ------
        DecodeError
            The line under way is longer than `LINE_BYTES_MAX`.
        """
        if b"\n" not in piece:
            # Pieces of one long line are joined once, when its end arrives: joining at every
            # piece would cost the square of the line's length.
            if piece:
                self._pending.append(piece)
                self._pending_bytes += len(piece)
            if self._pending_bytes > LINE_BYTES_MAX:
                self._pending.clear()
                raise DecodeError(
                    f"the server sends a line of more than {LINE_BYTES_MAX >> 20} MiB; "
                    "no object is as large"
                )
            return []
        parts = piece.split(b"\n")
        if self._pending:
            self._pending.append(parts[0])
            parts[0] = b"".join(self._pending)
        self._pending = [parts[-1]] if parts[-1] else []
        self._pending_bytes = len(parts[-1])
        return [line for line in parts[:-1] if line]

    def rest(self) -> bytes:
        """Return what follows the last line end."""
        return b"".join(self._pending)
