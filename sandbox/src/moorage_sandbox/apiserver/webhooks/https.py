"""Sends reviews to webhooks over HTTPS.

Place in the flow: `gathering` sends here. A webhook is a program of somebody else: the answer has
a time limit and a bound, redirects are not followed, and nothing but the review is sent. Mirrors
kubernetes v1.36 apiserver pkg/util/webhook/client.go.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from contextlib import suppress
from functools import lru_cache
from typing import Final

from moorage.api.bounds import BODY_LIMIT_BYTES
from moorage.base.aio import real_seconds
from moorage.base.authorities import client_context, read_when_used
from moorage_sandbox.apiserver.webhooks.answers import Endpoint, HookError, Question

with read_when_used():
    import aiohttp

_OK: Final = 200
# Upstream keeps so many clients.
_CONTEXTS_MAX: Final = 200
# The longest wait for the handshake before: it works for about 2 ms (2-core machine, 2026-11-30).
_TURN_SECONDS: Final = 0.01
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "kube-apiserver-admission",
}


class Turns:
    """Lets connections begin one after another, as a handshake of TLS works for milliseconds.

    Many that begin together would do their work in the same turn of the loop, and every other call
    would wait for all of them. A connection whose webhook hangs works no more: the next one begins
    after a short time.
    """

    def __init__(self) -> None:
        self._queue = asyncio.Lock()
        self._last = asyncio.Event()
        self._last.set()

    async def begin(self) -> asyncio.Event:
        """Wait until a connection may begin; its end has to be reported by the returned event."""
        async with self._queue:
            with suppress(TimeoutError):
                async with asyncio.timeout(real_seconds(_TURN_SECONDS)):
                    await self._last.wait()
            self._last = asyncio.Event()
            return self._last


class HttpsSender:
    """Sends each review over a connection of its own, so that no other webhook waits for it.

    Attributes
    ----------
    turns
        When connections begin.
    """

    def __init__(self) -> None:
        self.turns = Turns()

    async def send_review(self, question: Question, body: bytes, seconds: float) -> bytes:
        """Send a review, and return the body of the answer.

        Raises
        ------
        HookError
            No answer in time, a status other than 200, or a body that is too long.
        """
        endpoint = question.endpoint
        target = f"{endpoint.path}?timeout={max(1, math.ceil(seconds))}s"
        shown = f'Post "https://{endpoint.authority}{target}"'
        try:
            async with asyncio.timeout(real_seconds(seconds)):
                # Reading the machine's authorities takes long.
                tls = await asyncio.to_thread(_context, endpoint.ca_bundle)
                turn_end = await self.turns.begin()
                try:
                    return await _post(endpoint, target, body, tls, turn_end)
                finally:
                    turn_end.set()
        except TimeoutError:
            raise HookError(f"{shown}: no answer within {seconds:.3g} s") from None
        except (aiohttp.ClientError, HookError, OSError, ValueError) as error:
            raise HookError(f"{shown}: {str(error) or type(error).__name__}") from error


async def _post(
    endpoint: Endpoint, target: str, body: bytes, tls: ssl.SSLContext, turn_end: asyncio.Event
) -> bytes:
    """Send a body, and return the body of the answer; ``turn_end`` is set after the handshake."""
    trace = aiohttp.TraceConfig()

    async def tell(*_: object) -> None:
        turn_end.set()

    trace.on_connection_create_end.append(tell)
    headers = _HEADERS | {"Host": endpoint.authority}
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
            trace_configs=[trace],
            auto_decompress=False,
            # A connection whose reading pauses may lose the end of an answer (uvloop over TLS).
            read_bufsize=BODY_LIMIT_BYTES,
        ) as session,
        session.post(
            f"https://{bracketed(endpoint.host)}:{endpoint.port}{target}",
            data=body,
            headers=headers,
            server_hostname=endpoint.server_name,
            allow_redirects=False,
        ) as response,
    ):
        if response.status != _OK:
            raise HookError(f"the answer has the HTTP status {response.status}")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise HookError("the answer is compressed, and that was not asked for")
        pieces = bytearray()
        async for piece in response.content.iter_any():
            pieces += piece
            if len(pieces) > BODY_LIMIT_BYTES:
                raise HookError(f"the answer is longer than {BODY_LIMIT_BYTES} bytes")
        return bytes(pieces)


def bracketed(host: str) -> str:
    """Return a host as URLs have it."""
    return f"[{host}]" if ":" in host else host


@lru_cache(maxsize=_CONTEXTS_MAX)
def _context(ca_bundle: str) -> ssl.SSLContext:
    """Return the TLS context for webhooks whose certificates these authorities have signed."""
    return client_context(ca_bundle or None)
