"""Sends reviews to webhooks over HTTPS.

Place in the flow: `gathering` sends here. A webhook is a program of somebody else: the answer has
a time limit and a bound, redirects are not followed, and nothing but the review is sent. Mirrors
kubernetes v1.36 apiserver pkg/util/webhook/client.go.
"""

from __future__ import annotations

import asyncio
import math
import ssl
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
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "kube-apiserver-admission",
}


class HttpsSender:
    """Sends each review over a connection of its own, so that no other webhook waits for it."""

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
                return await _post(endpoint, target, body, tls)
        except TimeoutError:
            raise HookError(f"{shown}: no answer within {seconds:.3g} s") from None
        except (aiohttp.ClientError, HookError, OSError, ValueError) as error:
            raise HookError(f"{shown}: {str(error) or type(error).__name__}") from error


async def _post(endpoint: Endpoint, target: str, body: bytes, tls: ssl.SSLContext) -> bytes:
    """Send a body, and return the body of the answer."""
    headers = _HEADERS | {"Host": endpoint.authority}
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
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
