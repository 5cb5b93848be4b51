"""Questions that come as a body: served with POST, described, refused with the time to wait."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest

from moorage.base.errors import ApiError, TooManyRequestsError, UsageError
from moorage.service.process.health import HealthServer, Listening
from moorage.service.questions.pages import OPENAPI_PATH, body_pages, question_pages
from moorage.service.questions.question import Answer, BodyQuestion, Readable
from scheduler.tests.service.serving.guards import open_access


class Load(msgspec.Struct, frozen=True):
    """Things to carry.

    Parameters
    ----------
    things
        Their names.
    """

    things: tuple[str, ...]


class CarriedAnswer(Answer, frozen=True, kw_only=True):
    """What could be carried."""

    kind: str = "Carried"


async def carry(body: bytes) -> bytes:
    (thing,) = json.loads(body)["things"]
    if thing == "anvil":
        raise UsageError("an anvil is too heavy")
    if thing == "queue":
        raise TooManyRequestsError(429, "TooManyRequests", "many wait", retry_after_seconds=1.5)
    if thing == "slow":
        raise ApiError(503, "ServiceUnavailable", "it takes long", retry_after_seconds=2)
    return b'{"kind":"Carried"}'


async def nothing(body: bytes) -> list[Readable]:
    del body
    return []


QUESTION = BodyQuestion(
    path="/carry",
    summary="Can it be carried?",
    body=Load,
    answer=CarriedAnswer,
    ask=carry,
    names=nothing,
)
CARRY = "/moorage/v1/carry"


@asynccontextmanager
async def serving(question: BodyQuestion) -> AsyncIterator[str]:
    closed = []

    async def close() -> None:
        closed.append(True)

    running = HealthServer(
        Listening(address="127.0.0.1", free_port=True),
        open_access("/moorage/v1/*"),
        checks={},
        pages={},
        queries=question_pages([], [question]),
        bodies=body_pages([question]),
        on_close=close,
    )
    await running.start()
    yield f"https://127.0.0.1:{running.port}"
    await running.close()
    assert closed == [True]


@pytest.fixture
async def served() -> AsyncIterator[str]:
    async with serving(QUESTION) as url:
        yield url


@pytest.mark.parametrize(
    ("method", "path", "thing", "expected"),
    [
        pytest.param("POST", CARRY, "brick", (200, "", None), id="an answer"),
        pytest.param("POST", CARRY, "anvil", (400, "BadRequest", None), id="a bad question"),
        pytest.param("POST", CARRY, "queue", (429, "TooManyRequests", "2"), id="too many"),
        pytest.param("POST", CARRY, "slow", (503, "ServiceUnavailable", "2"), id="too slow"),
        pytest.param("GET", CARRY, "brick", (405, "", None), id="without POST"),
        pytest.param("POST", OPENAPI_PATH, "brick", (405, "", None), id="POST to a page"),
        pytest.param("POST", "/other", "brick", (403, "Forbidden", None), id="a closed path"),
    ],
)
async def test_a_body_is_answered_or_refused(
    served: str, method: str, path: str, thing: str, expected: tuple[int, str, str | None]
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{served}{path}", json={"things": [thing]}, ssl=False) as answer,
    ):
        text = await answer.text()
        reason = json.loads(text).get("reason", "") if text[:1] == "{" else ""
        assert (answer.status, reason, answer.headers.get("Retry-After")) == expected


async def call(
    url: str, body: bytes, header: str, length: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a call with one more header over a connection of its own."""
    host, port = url.removeprefix("https://").split(":")
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    head = f"POST {CARRY} HTTP/1.1\r\nHost: {host}\r\n{header}\r\nContent-Length: {length}\r\n\r\n"
    writer.write(head.encode() + body)
    return reader, writer


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        pytest.param("gzip", gzip.compress(b'{"things":["brick"]}'), 415, id="a compressed body"),
        pytest.param("gzip", b'{"things":["brick"]}', 415, id="a plain body that is called gzip"),
        pytest.param("deflate", b"5", 415, id="a plain body that is called deflate"),
        pytest.param("br", b"{", 415, id="a plain body that is called brotli"),
        pytest.param("x", b"{", 415, id="an unknown encoding"),
        pytest.param("Identity", b'{"things":["brick"]}', 200, id="a body that is not encoded"),
    ],
)
async def test_an_encoded_body_is_refused(
    served: str, encoding: str, body: bytes, status: int
) -> None:
    reader, writer = await call(served, body, f"Content-Encoding: {encoding}", len(body))
    assert (await reader.readline()).split()[1] == str(status).encode()
    writer.close()


async def test_a_caller_may_hang_up_in_the_middle_of_a_body(
    served: str, caplog: pytest.LogCaptureFixture
) -> None:
    _reader, stopped = await call(served, b"{", "Accept: */*", length=2)
    for hang_up in (stopped.transport.abort, stopped.close):
        # The answer to a later call shows that the server has seen what came before.
        reader, writer = await call(served, b'{"things":["brick"]}', "Accept: */*", length=20)
        assert (await reader.readline()).split()[1] == b"200"
        writer.close()
        hang_up()
    assert [each.message for each in caplog.records] == []


async def test_an_answer_is_given_up_when_its_caller_hangs_up() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def without_end(body: bytes) -> bytes:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return body

    question = msgspec.structs.replace(QUESTION, ask=without_end)
    async with serving(question) as url:
        _reader, writer = await call(url, b"{}", "Accept: */*", length=2)
        await began.wait()
        writer.transport.abort()
        await ended.wait()  # the test's timeout is the bound


async def test_the_document_describes_the_body_and_each_error() -> None:
    document = json.loads((await question_pages([], [QUESTION])[OPENAPI_PATH]({})).body)
    operation = document["paths"][CARRY]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Load"}
    assert document["components"]["schemas"]["Load"]["properties"]["things"]["description"] == (
        "Their names."
    )
    assert sorted(operation["responses"]) == ["200", "400", "401", "403", "413", "429", "503"]
