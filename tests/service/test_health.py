"""The HTTPS port: health checks and who may read what. Left out: what metrics say."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from multidict import MultiDict

from moorage.apiserver.certs import Authority
from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.observe.slis import HealthFacts
from moorage.service.health import HealthServer, Page, Serving, health

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


@pytest.mark.parametrize(
    ("open_paths", "path", "is_open"),
    [
        pytest.param(None, "/healthz", True, id="health is open"),
        pytest.param(None, "/readyz/ping", True, id="each health check is open"),
        pytest.param(None, "/metrics", False, id="metrics are not open"),
        pytest.param(("/metrics",), "/metrics", True, id="metrics are open if configured"),
        pytest.param(
            ("/metrics",), "/metrics/resources", False, id="only configured paths are open"
        ),
        pytest.param(("/metrics*",), "/metrics/resources", True, id="a star stands for any rest"),
        pytest.param(("/metrics",), "/healthz", False, id="a list replaces the default one"),
    ],
)
def test_the_open_paths_are_read_without_credentials(open_paths, path, is_open) -> None:
    serving = Serving() if open_paths is None else Serving(open_paths=open_paths)
    assert serving.is_open(path) is is_open


def own() -> tuple[bytes, bytes]:
    pair = Authority(SystemClock()).server_pair()
    return pair.certificate, pair.key


async def hello(accept: str) -> Page:
    del accept
    return Page(b"hello")


def server(serving: Serving) -> HealthServer:
    pages = {"/hello": hello, "/secret": hello}
    return HealthServer(serving, own, checks={"healthz": CHECKS[:1]}, pages=pages)


@pytest.fixture
async def served() -> AsyncIterator[str]:
    running = server(Serving(port=0, open_paths=("/healthz", "/hello", "/nosuch")))
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
        Serving(port=0, open_paths=("/livez", "/readyz")),
        own,
        checks={"livez": CHECKS[:1], "readyz": CHECKS[1:]},
        pages={},
        told=told,
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


async def test_old_versions_of_tls_are_refused() -> None:
    running = server(Serving(port=0, tls_version_min=ssl.TLSVersion.TLSv1_3))
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
    running = server(Serving(port=0))
    await running.start()
    with pytest.raises(UsageError, match="choose another --secure-port, or 0 not to serve"):
        await server(Serving(port=running.port)).start()
    await running.close()


async def test_a_certificate_that_cannot_be_read_is_told() -> None:
    serving = Serving(port=0, certificate_file="nosuch.crt", key_file="nosuch.key")
    with pytest.raises(UsageError, match=r"--tls-cert-file nosuch\.crt, .*No such file"):
        await server(serving).start()
