"""A server that does not keep to its part: what the scheduler's side takes of it, and no more."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import web

from moorage.api.node import Node
from moorage.api.resources import NODES
from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.errors import DecodeError
from moorage.base.rng import Streams
from moorage.client.handler import Handler
from moorage.client.reflector import Reflector
from moorage.client.transport import LINE_BYTES_MAX, LineSplitter
from scheduler.tests.client.test_http_transport import OVER, connected, serving
from scheduler.tests.client.test_reflector import Heard, node, node_list

PIECE = b"x" * 65_536


def test_a_line_longer_than_any_object_is_refused_and_its_memory_freed():
    splitter = LineSplitter()
    for _ in range(LINE_BYTES_MAX // len(PIECE)):
        assert splitter.feed(PIECE) == []
    with pytest.raises(DecodeError, match="a line of more than 16 MiB"):
        splitter.feed(PIECE)
    assert splitter.rest() == b""


def test_many_short_lines_do_not_reach_the_limit_of_one_line():
    splitter = LineSplitter()
    for _ in range(LINE_BYTES_MAX // len(PIECE) + 10):
        assert splitter.feed(PIECE + b"\n" + b"y") != []
        assert splitter.feed(b"\n") == [b"y"]


async def test_a_watch_with_an_endless_line_is_closed_and_the_objects_are_relisted():
    sent = [0]
    listed = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            if sent[0]:
                listed.set()
            return web.json_response(node_list(7, node("a", 1)))
        if "sendInitialEvents" in request.query:
            return web.json_response({"kind": "Status", "code": 422}, status=422)
        response = web.StreamResponse()
        await response.prepare(request)
        # The client goes, or the test is over.
        with contextlib.suppress(ConnectionError):
            while not request.app[OVER].is_set():
                await response.write(PIECE)
                sent[0] += len(PIECE)
        return response

    handler: Handler[Node] = Heard()
    tasks = TaskOwner(on_failure=lambda _name, _error: None)
    async with serving(answer) as (server, _), connected(server) as transport:
        rng = Streams(1).stream("reflector")
        reflector = Reflector(transport, NODES, Node, handler=handler, clock=SystemClock(), rng=rng)
        tasks.spawn(reflector.run(), name="reflector")
        async with asyncio.timeout(30):
            await listed.wait()
        await tasks.cancel_all()
    # What the kernel and the library hold on the way comes on top.
    assert sent[0] < 2 * LINE_BYTES_MAX
