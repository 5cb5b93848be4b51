"""Long answers of a server, or a proxy, that closes the connection after each of them."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from sandbox.tests.apiserver.test_webhooks_https import MEGABYTE, closing_program


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_long_answer_arrives_whole_though_the_server_closes_the_connection(method: str):
    async def lengths(access: ServerAccess) -> set[int]:
        transport, found = HttpTransport(access), set()
        body = b"{}" if method == "POST" else None
        for _ in range(4):
            calls = (transport.request(Call(method=method, path="/", body=body)) for _ in range(6))
            found |= {len(answer.body) for answer in await asyncio.gather(*calls)}
        await transport.close()
        return found

    # The loop of a scheduler drops the end of an answer where reading pauses as the peer closes.
    with closing_program() as end, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        url, authority = f"https://127.0.0.1:{end.port}", end.ca_bundle.encode()
        access = ServerAccess(url, FixedCredentials(), ca_pem=authority)
        assert runner.run(lengths(access)) == {MEGABYTE}
