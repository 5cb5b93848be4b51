"""The HTTP transport asks its guard again once a call has a connection.

Left out: what the guard asks (``scheduler/tests/service/test_leader.py``).
"""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import NotLeadingError
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.guard import WriteGuard
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call
from scheduler.tests.client.test_http_transport import serving


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        pytest.param("POST", 0, id="a write is not sent"),
        pytest.param("GET", 1, id="a read is sent"),
    ],
)
async def test_the_guard_is_asked_again_once_a_call_has_its_connection(
    method: str, sent: int
) -> None:
    """The lease ends while the second call waits for the only connection."""
    leading, busy, go_on = [True], asyncio.Event(), asyncio.Event()

    def check() -> None:
        if not leading[0]:
            raise NotLeadingError("over")

    async def slow(request: web.Request) -> web.Response:
        busy.set()
        await go_on.wait()
        return web.json_response({})

    async with serving(slow) as (server, seen):
        access = ServerAccess(server=server, credentials=FixedCredentials())
        transport = HttpTransport(access, connections_max=1, guard=WriteGuard(check))
        tasks = TaskOwner(on_failure=lambda _name, _error: None)
        first = tasks.spawn(transport.request(Call(method, "/first", body=b"{}")), name="first")
        await busy.wait()
        second = tasks.spawn(transport.request(Call(method, "/second", body=b"{}")), name="second")
        for _ in range(20):  # it passes the first look, and waits for the connection
            await aio.sleep(0)
        leading[0] = False
        go_on.set()
        await first
        outcome = (await asyncio.gather(second, return_exceptions=True))[0]
        await transport.close()
    assert [request.path for request in seen] == ["/first", "/second"][: 1 + sent]
    assert isinstance(outcome, NotLeadingError) == (not sent)
