"""Writes over connections of our own: answers of all forms, and connections that break.

Left out: retries, credentials and messages of failures (``test_http_transport``).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import AnswerTooLargeError, NotLeadingError, TransportError
from moorage.client import short_calls
from moorage.client.auth import Credential, FixedCredentials, ServerAccess
from moorage.client.guard import WriteGuard
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
WRITE = Call("POST", "/things", body=b'{"a":1}')

Reply = Callable[[asyncio.StreamWriter, int], None]
"""(the way to the client, number of the call on its connection)."""


class Server:
    """Answers each call with bytes; keeps what came, by connection."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.connections: list[list[bytes]] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine: list[bytes] = []
        self.connections.append(mine)
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, _, rest = head.lower().partition(b"content-length: ")
                mine.append(head + await reader.readexactly(int(rest.partition(b"\r\n")[0])))
                self._reply(writer, len(mine))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def answering(
    reply: Reply,
    *,
    connections_max: int = 4,
    headers: tuple[tuple[str, str], ...] = (),
    guard: WriteGuard | None = None,
) -> AsyncIterator[tuple[HttpTransport, Server]]:
    server = Server(reply)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/base"
    access = ServerAccess(server=server.url, credentials=FixedCredentials(Credential(headers)))
    transport = HttpTransport(access, connections_max=connections_max, guard=guard)
    try:
        yield transport, server
    finally:
        await transport.close()
        listening.close()
        for writer in server.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def always(*pieces: bytes) -> Reply:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        for piece in pieces:
            writer.write(piece)

    return reply


async def test_a_write_goes_out_as_built_and_its_connection_is_used_again() -> None:
    async with answering(always(OK), headers=(("Authorization", "Bearer t"),)) as (calls, server):
        for _ in range(2):
            answer = await calls.request(WRITE)
            assert (answer.status, answer.body) == (201, b"{}")
            told = {name: answer.headers[name] for name in ("content-type", "content-length")}
            assert told == {"content-type": "application/json", "content-length": "2"}
        more = (("traceparent", "00-1"),)
        await calls.request(Call("DELETE", "/things/a", (("dryRun", "All"),), headers=more))
    host = server.url.removeprefix("http://").removesuffix("/base")
    expected = (
        "POST /base/things HTTP/1.1\r\nAccept: application/json\r\n"
        f"Host: {host}\r\nUser-Agent: moorage\r\nAuthorization: Bearer t\r\n"
        'Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
    ).encode()
    assert len(server.connections) == 1
    assert server.connections[0][:2] == [expected, expected]
    assert server.connections[0][2].startswith(b"DELETE /base/things/a?dryRun=All HTTP/1.1\r\n")
    assert b"\r\ntraceparent: 00-1\r\n" in server.connections[0][2]


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        pytest.param((OK[:20], OK[20:]), b"{}", id="in pieces"),
        pytest.param((b"HTTP/1.1 100 Continue\r\n\r\n", OK), b"{}", id="after an interim answer"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", b"0\r\n\r\n"),
            b"{}",
            id="in chunks",
        ),
        pytest.param((b"HTTP/1.1 204 No Content\r\n\r\n",), b"", id="without a body"),
    ],
)
async def test_answers_of_all_forms_are_read_whole(pieces: tuple[bytes, ...], body: bytes) -> None:
    async with answering(always(*pieces)) as (calls, server):
        for _ in range(2):
            assert (await calls.request(WRITE)).body == body
    assert len(server.connections) == 1


async def test_a_long_answer_is_read_whole_and_one_too_long_is_refused() -> None:
    length = 300_000
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
    async with answering(always(head, b"x" * length)) as (calls, _):
        assert len((await calls.request(WRITE)).body) == length
        with pytest.raises(AnswerTooLargeError, match="longer than 1000 bytes"):
            await calls.request(Call("POST", "/things", body=b"", answer_bytes_max=1000))


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        writer.write(closing)
        writer.close()

    async with answering(reply) as (calls, server):
        for _ in range(3):
            assert (await calls.request(WRITE)).status == 201
    assert len(server.connections) == 3


async def test_an_answer_that_ends_with_its_connection_is_whole() -> None:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n{}")
        writer.close()

    async with answering(reply) as (calls, _):
        assert (await calls.request(WRITE)).body == b"{}"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="before the answer"),
        pytest.param(OK[:-1], id="within the answer"),
        pytest.param(b"nonsense\r\n\r\n", id="after something else"),
    ],
)
async def test_a_broken_connection_is_an_error_and_the_write_is_not_repeated(sent: bytes) -> None:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        writer.write(sent)
        writer.close()

    async with answering(reply) as (calls, server):
        with pytest.raises(TransportError):
            await calls.request(WRITE)
    assert [len(each) for each in server.connections] == [1]


async def test_a_call_given_up_leaves_no_answer_for_the_next_call() -> None:
    """The first call is cancelled, and its answer comes late, on a connection of its own."""
    asked = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        writers.append(writer)
        if len(writers) == 1:
            asked.set()
        else:
            writer.write(OK)

    async with answering(reply) as (calls, server):
        tasks = TaskOwner()
        tasks.spawn(calls.request(WRITE), name="first")
        await asked.wait()
        await tasks.cancel_all()
        writers[0].write(OK.replace(b"{}", b"[]"))
        assert (await calls.request(WRITE)).body == b"{}"
    assert len(server.connections) == 2


async def test_calls_wait_while_every_connection_is_in_use() -> None:
    held: list[asyncio.StreamWriter] = []

    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        held.append(writer)

    async with answering(reply, connections_max=2) as (calls, server):
        tasks = TaskOwner()
        answers = [tasks.spawn(calls.request(WRITE), name=f"{i}") for i in range(5)]
        waited = 0
        while waited < 5:
            while not held:
                await aio.sleep(0)
            held.pop(0).write(OK)
            waited += 1
        assert [(await each).status for each in answers] == [201] * 5
    assert len(server.connections) == 2


async def test_an_idle_connection_that_the_server_closed_is_replaced() -> None:
    writers: list[asyncio.StreamWriter] = []

    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        del number
        writers.append(writer)
        writer.write(OK)

    async with answering(reply) as (calls, server):
        await calls.request(WRITE)
        writers[0].close()
        await writers[0].wait_closed()
        for _ in range(20):
            await aio.sleep(0)
        assert (await calls.request(WRITE)).status == 201
    assert len(server.connections) == 2


# -- pipelined calls of one turn ----------------------------------------------------------------

PIPELINED = Call("POST", "/things", body=b'{"a":1}', pipelined=True)


def numbered(writer: asyncio.StreamWriter, number: int) -> None:
    writer.write(OK.replace(b"{}", b"%02d" % number))


def begun(calls: HttpTransport, count: int, call: Call = PIPELINED) -> list[asyncio.Task[Answer]]:
    """Calls that tasks make in the same turn of the loop."""
    owner = TaskOwner(on_failure=lambda _name, _problem: None)
    return [owner.spawn(calls.request(call), name=f"call {i}") for i in range(count)]


async def outcomes(tasks: list[asyncio.Task[Answer]]) -> list[bytes | str]:
    """The bodies of the answers, and the names of the errors."""

    def outcome(found: Answer | BaseException) -> bytes | str:
        if isinstance(found, Answer):
            return found.body
        name = type(found).__name__
        return "TransportError" if name == "_ResetError" else name

    return [outcome(each) for each in await asyncio.gather(*tasks, return_exceptions=True)]


async def test_pipelined_calls_of_one_turn_share_a_connection_and_get_their_own_answers() -> None:
    async with answering(numbered) as (calls, server):
        await calls.request(WRITE)
        assert await outcomes(begun(calls, 3)) == [b"02", b"03", b"04"]
    assert [len(each) for each in server.connections] == [4]


@pytest.mark.parametrize(
    ("before", "call", "count"),
    [
        pytest.param(1, WRITE, 2, id="calls that are not pipelined"),
        pytest.param(0, PIPELINED, 2, id="calls to a server that has not answered so far"),
        pytest.param(1, PIPELINED, 17, id="more calls than may share one"),
    ],
)
async def test_a_second_connection_is_used_for(before: int, call: Call, count: int) -> None:
    async with answering(numbered) as (calls, server):
        for _ in range(before):
            await calls.request(WRITE)
        await outcomes(begun(calls, count, call))
    assert len(server.connections) == 2


async def test_pipelined_calls_beyond_few_connections_wait_and_share_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_calls, "_CONNECTIONS_FEW", 1)
    async with answering(numbered) as (calls, server):
        await calls.request(WRITE)
        expected = [b"%02d" % number for number in range(2, 22)]
        assert await outcomes(begun(calls, 20)) == expected
        assert await outcomes(begun(calls, 2, WRITE)) == [b"22", b"01"]  # as many as there may be
    assert len(server.connections) == 2


async def test_a_slow_server_gets_one_call_at_a_time_on_each_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_calls, "_QUICK_SECONDS", 0.0)
    async with answering(numbered) as (calls, server):
        await calls.request(WRITE)
        await outcomes(begun(calls, 2))
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "third",
    [
        pytest.param(b"", id="breaks"),
        pytest.param(OK[:-1], id="breaks within an answer"),
        pytest.param(
            OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), id="is closed by an answer"
        ),
    ],
)
async def test_calls_without_an_answer_fail_when_their_shared_connection(third: bytes) -> None:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        if number < 3:
            writer.write(OK)
        elif number == 3:
            writer.write(third)
            writer.close()

    async with answering(reply) as (calls, server):
        await calls.request(WRITE)
        found = await outcomes(begun(calls, 3))
        assert found[0] == b"{}"
        assert found[1] == (b"{}" if b"close" in third else "TransportError")
        assert found[2] == "TransportError"
        assert await outcomes(begun(calls, 1)) == [b"{}"]
    assert len(server.connections) == 2


async def test_an_answer_to_no_call_ends_the_connection() -> None:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(OK if number < 3 else OK + OK)

    async with answering(reply) as (calls, server):
        await calls.request(WRITE)
        assert await outcomes(begun(calls, 2)) == [b"{}", b"{}"]
        assert await outcomes(begun(calls, 1)) == [b"{}"]
    assert len(server.connections) == 2


async def test_a_pipelined_call_given_up_leaves_the_others_their_answers() -> None:
    came = asyncio.Event()

    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 4:
            came.set()
        if number == 1:
            writer.write(OK)

    async with answering(reply) as (calls, server):
        await calls.request(WRITE)
        tasks = begun(calls, 3)
        await came.wait()
        tasks[0].cancel()
        for number in (2, 3, 4):
            numbered(server.writers[0], number)
        assert await outcomes(tasks) == ["CancelledError", b"03", b"04"]


async def test_a_pipelined_call_given_up_before_the_end_of_its_turn_is_not_sent() -> None:
    async with answering(numbered) as (calls, server):
        await calls.request(WRITE)
        tasks = begun(calls, 2)
        asyncio.get_running_loop().call_soon(tasks[0].cancel)
        assert await outcomes(tasks) == ["CancelledError", b"02"]
    assert [len(each) for each in server.connections] == [2]


async def test_pipelined_calls_end_unsent_when_the_guard_refuses_them() -> None:
    leads = True

    def check() -> None:
        if not leads:
            raise NotLeadingError("the lease is lost")

    async with answering(numbered, guard=WriteGuard(check)) as (calls, server):
        await calls.request(WRITE)
        tasks = begun(calls, 2)

        def lose() -> None:
            nonlocal leads
            leads = False

        asyncio.get_running_loop().call_soon(lose)  # after both calls have been made
        assert await outcomes(tasks) == ["NotLeadingError", "NotLeadingError"]
        leads = True
        assert await outcomes(begun(calls, 1)) == [b"02"]
    assert [len(each) for each in server.connections] == [2]


async def test_calls_that_share_a_connection_have_one_time_limit_together() -> None:
    def reply(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            writer.write(OK)

    async with answering(reply) as (calls, server):
        await calls.request(WRITE)
        limited = msgspec.structs.replace(PIPELINED, timeout_seconds=0.01)
        assert await outcomes(begun(calls, 2, limited)) == ["TransportError"] * 2
    assert [len(each) for each in server.connections] == [3]


async def test_a_server_that_is_not_there_is_told_as_before() -> None:
    access = ServerAccess(server="http://127.0.0.1:1", credentials=FixedCredentials())
    transport = HttpTransport(access)
    with pytest.raises(TransportError, match=r"POST http://127.0.0.1:1/things: no connection"):
        await transport.request(WRITE)
    await transport.close()


@contextlib.contextmanager
def silent_address() -> Iterator[tuple[str, int]]:
    """An address where connections are neither made nor refused."""
    with contextlib.ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # nobody accepts them, so further ones are not answered
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()


async def test_the_next_address_is_tried_where_the_first_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()

    async def both(host: str, port: int, **hints: object) -> list[Any]:
        stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*stream, silent), (*stream, (host, port))]

    with silent_address() as silent:
        monkeypatch.setattr(loop, "getaddrinfo", both)
        async with answering(always(OK)) as (calls, server):
            async with asyncio.timeout(20):
                assert (await calls.request(WRITE)).body == b"{}"
        assert len(server.connections) == 1


async def test_a_credential_of_two_lines_is_refused() -> None:
    async with answering(always(OK), headers=(("Authorization", "t\r\nX: y"),)) as (calls, server):
        with pytest.raises(ValueError, match="'Authorization' has more than one line"):
            await calls.request(WRITE)
    assert server.connections == []
