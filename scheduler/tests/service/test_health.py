"""The HTTPS port: health checks and pages.

Left out: who may read them (``scheduler/tests/service/serving``), what metrics say.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from multidict import MultiDict

from moorage.base import aio, served_calls
from moorage.base.errors import UsageError
from moorage.observe.slis import HealthFacts
from moorage.service.process import health as health_port
from moorage.service.process.health import HealthServer, Listening, Page, health
from moorage.service.questions.answering import WAITING_MOST
from moorage.service.serving.rights import Rights
from moorage.service.serving.tls import TlsRules
from scheduler.tests.service.serving.guards import open_access

CHECKS = [("ping", lambda: True), ("shutdown", lambda: True), ("sync", lambda: False)]


@pytest.mark.parametrize(
    ("path", "checks", "name", "query", "expected"),
    [
        pytest.param("livez", CHECKS[:2], "", {}, (200, "ok"), id="all checks pass"),
        pytest.param(
            "livez",
            CHECKS[:2],
            "",
            {"verbose": ""},
            (200, "[+]ping ok\n[+]shutdown ok\nlivez check passed\n"),
            id="all checks pass, listed one by one",
        ),
        pytest.param(
            "readyz",
            CHECKS,
            "",
            {},
            (
                500,
                "[+]ping ok\n[+]shutdown ok\n[-]sync failed: reason withheld\n"
                "readyz check failed\n",
            ),
            id="one check fails",
        ),
        pytest.param(
            "readyz",
            CHECKS,
            "",
            {"exclude": "sync"},
            (200, "ok"),
            id="the failing check is excluded",
        ),
        pytest.param(
            "readyz",
            CHECKS[:1],
            "",
            {"exclude": "x", "verbose": ""},
            (
                200,
                "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "
                '"x"\nreadyz check passed\n',
            ),
            id="an unknown check is excluded",
        ),
        pytest.param("readyz", CHECKS, "ping", {}, (200, "ok"), id="one check by name"),
        pytest.param(
            "readyz",
            CHECKS,
            "nosuch",
            {},
            (404, "404 page not found\n"),
            id="an unknown check by name",
        ),
    ],
)
def test_health_paths_answer_by_the_state_of_their_checks(
    path, checks, name, query, expected
) -> None:
    answer = health(path, checks, name, MultiDict(query))
    assert (answer.status, answer.text) == expected


async def hello(accept: str) -> Page:
    del accept
    return Page(b"hello")


def server(*paths: str, port: int = 0, rules: TlsRules | None = None) -> HealthServer:
    listening = Listening(address="127.0.0.1", port=port, free_port=not port)
    pages = {"/hello": hello, "/secret": hello}
    access = open_access(*paths, rules=rules)
    return HealthServer(listening, access, checks={"healthz": CHECKS[:1]}, pages=pages)


@pytest.fixture
async def served() -> AsyncIterator[str]:
    running = server("/healthz", "/hello", "/nosuch")
    await running.start()
    yield f"https://127.0.0.1:{running.port}"
    await running.close()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/healthz", (200, "ok"), id="health"),
        pytest.param("/hello", (200, "hello"), id="an open page"),
        pytest.param("/nosuch", (404, "404 page not found\n"), id="no such page"),
        pytest.param("/secret", (403, None), id="a page that is not open"),
    ],
)
async def test_the_port_answers_over_tls(served: str, path: str, expected) -> None:
    forbidden = f'forbidden: User "system:anonymous" cannot get path "{path}"'
    status, body = expected
    async with (
        aiohttp.ClientSession() as session,
        session.get(served + path, ssl=False) as answer,
    ):
        assert answer.status == status
        if body is None:
            assert (await answer.json())["message"] == forbidden
        else:
            assert await answer.text() == body


async def test_results_of_checks_are_counted_when_a_check_is_called() -> None:
    told = HealthFacts()
    running = HealthServer(
        Listening(address="127.0.0.1", free_port=True),
        open_access("/livez", "/readyz*"),
        checks={"livez": CHECKS[:1], "readyz": CHECKS[1:]},
        pages={},
        facts=told,
    )
    await running.start()
    try:
        async with aiohttp.ClientSession() as session:
            for path in ("/livez", "/readyz", "/readyz/shutdown"):
                await session.get(f"https://127.0.0.1:{running.port}{path}", ssl=False)
    finally:
        await running.close()
    assert told.last == {
        ("ping", "livez"): True,
        ("shutdown", "readyz"): True,
        ("sync", "readyz"): False,
    }
    assert told.checks == {
        ("ping", "livez", "success"): 1,
        ("shutdown", "readyz", "success"): 2,
        ("sync", "readyz", "error"): 1,
    }


async def test_a_body_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def echo(body: bytes, rights: Rights | None = None) -> Page:
        del rights
        return Page(body)

    monkeypatch.setattr(served_calls, "BODY_SECONDS", 0.05)
    running = HealthServer(
        Listening(address="127.0.0.1", free_port=True),
        open_access("/ask"),
        checks={},
        pages={},
        bodies={"/ask": echo},
    )
    await running.start()
    try:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port, ssl=context)
        writer.write(b"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        writer.close()
    finally:
        await running.close()


async def test_bodies_that_are_too_large_together_are_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirty callers with 63 MB each took 2 GB of the scheduler."""
    going_on = asyncio.Event()
    arrived: list[int] = []

    async def wait(body: bytes, rights: Rights | None = None) -> Page:
        del rights
        arrived.append(len(body))
        await going_on.wait()
        return Page(b"answered")

    monkeypatch.setattr(health_port, "_BODIES_BYTES_MOST", 2500)
    running = HealthServer(
        Listening(address="127.0.0.1", free_port=True),
        open_access("/ask"),
        checks={},
        pages={},
        bodies={"/ask": wait},
    )
    await running.start()
    url = f"https://127.0.0.1:{running.port}/ask"
    tasks = aio.TaskOwner()

    async def ask(session: aiohttp.ClientSession, length: int) -> int:
        async with session.post(url, data=b"x" * length, ssl=False) as answer:
            return answer.status

    try:
        async with aiohttp.ClientSession() as session:
            first = [tasks.spawn(ask(session, 1000), name="ask") for _ in range(2)]
            while len(arrived) < 2:
                await aio.sleep(0.01)
            assert await ask(session, 1000) == 429
            small = tasks.spawn(ask(session, 100), name="ask")
            while len(arrived) < 3:
                await aio.sleep(0.01)
            going_on.set()
            assert await asyncio.gather(*first, small) == [200, 200, 200]
            assert await ask(session, 1000) == 200
    finally:
        await running.close()
    assert arrived == [1000, 1000, 100, 1000]


async def test_a_question_too_many_is_refused_before_its_body_is_read() -> None:
    """The limit of waiting questions counted only after each body was read."""
    going_on = asyncio.Event()
    arrived: list[bytes] = []

    async def wait(body: bytes, rights: Rights | None = None) -> Page:
        del rights
        arrived.append(body)
        await going_on.wait()
        return Page(b"answered")

    running = HealthServer(
        Listening(address="127.0.0.1", free_port=True),
        open_access("/ask"),
        checks={},
        pages={},
        bodies={"/ask": wait},
    )
    await running.start()
    url = f"https://127.0.0.1:{running.port}/ask"
    tasks = aio.TaskOwner()

    async def ask(session: aiohttp.ClientSession) -> int:
        async with session.post(url, data=b"small", ssl=False) as answer:
            return answer.status

    try:
        async with aiohttp.ClientSession() as session:
            first = [tasks.spawn(ask(session), name="ask") for _ in range(1 + WAITING_MOST)]
            while len(arrived) < len(first):
                await aio.sleep(0.01)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port, ssl=context)
            writer.write(b"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 429 ")
            writer.close()
            going_on.set()
            assert await asyncio.gather(*first) == [200] * len(first)
            assert await ask(session) == 200
    finally:
        await running.close()


async def test_connections_with_half_of_a_call_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_calls, "HEADERS_SECONDS", 0.05)
    running = server("/healthz")
    await running.start()
    try:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port, ssl=context)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: local")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    finally:
        await running.close()


async def test_old_versions_of_tls_are_refused() -> None:
    running = server(rules=TlsRules(ssl.TLSVersion.TLSv1_3))
    await running.start()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"https://127.0.0.1:{running.port}/healthz", ssl=context)
    finally:
        await running.close()


async def test_a_taken_port_is_reported_with_a_remedy() -> None:
    running = server()
    await running.start()
    with pytest.raises(UsageError, match="choose another --secure-port, or 0 not to serve"):
        await server(port=running.port).start()
    await running.close()


async def test_several_processes_listen_on_one_port_if_that_is_permitted() -> None:
    listening = Listening(address="127.0.0.1", free_port=True, share_port=True)
    first = HealthServer(listening, open_access(), checks={}, pages={})
    await first.start()
    listening = Listening(address="127.0.0.1", port=first.port, share_port=True)
    second = HealthServer(listening, open_access(), checks={}, pages={})
    try:
        await second.start()
        assert second.port == first.port
    finally:
        await first.close()
        await second.close()


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param("GET", (200, "hello"), id="a read"),
        pytest.param("HEAD", (200, ""), id="a read of the headers"),
        pytest.param("POST", (405, "405 method not allowed\n"), id="a write"),
    ],
)
async def test_only_reading_is_served_and_nothing_is_kept_by_caches(
    served: str, method: str, expected: tuple[int, str]
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, served + "/hello", ssl=False) as answer,
    ):
        assert (answer.status, await answer.text()) == expected
        assert answer.headers["Cache-Control"] == "no-cache, private"
