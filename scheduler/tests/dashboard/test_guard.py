"""Who gets an answer from the page: login links, cookies, names, origins and acts."""

from __future__ import annotations

import asyncio
import contextlib
import re
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from moorage.base import served_calls
from scheduler.tests.dashboard.fake import FakeActs, FakeSource, serving

PATHS = (
    *("/", "/cluster", "/queue", "/pod/default/a", "/static/page.css", "/static/js/main.js"),
    *("/page/v1/about", "/page/v1/state", "/page/v1/changes", "/moorage/v1/queue", "/nowhere"),
)


def browser() -> aiohttp.ClientSession:
    """A client that keeps cookies, as a browser does."""
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_answered_without_a_cookie(path: str) -> None:
    source = FakeSource()
    async with serving(source) as (page, _), browser() as http, http.get(page.url + path) as answer:
        assert answer.status == 401
        assert "login link" in await answer.text()
    assert source.asked == []


async def test_a_login_link_works_once_and_the_next_one_is_told() -> None:
    async with serving(FakeSource()) as (page, links), browser() as http, browser() as other:
        async with http.get(links[0]) as answer:
            assert answer.status == 200
            cookie = answer.headers["Set-Cookie"]
            assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        async with other.get(links[0]) as answer:
            assert answer.status == 401
            assert "Set-Cookie" not in answer.headers
        async with http.get(f"{page.url}/page/v1/about") as answer:
            assert (await answer.json())["title"] == "a cluster"
        assert len(links) == 2
        async with other.get(links[1]) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("token", ["", "wrong", "é", "a" * 10_000])
async def test_another_token_opens_nothing(token: str) -> None:
    async with (
        serving(FakeSource()) as (page, links),
        browser() as http,
        http.get(f"{page.url}/login", params={"token": token}) as answer,
    ):
        assert answer.status in (400, 401)
        assert len(links) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="the page's own address"),
        pytest.param({"Host": "evil.example:80"}, 421, id="another name that leads here"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="a call from another page"),
        pytest.param({"Origin": "null"}, 403, id="a call from a page without an address"),
    ],
)
async def test_the_page_is_read_by_its_own_address_only(
    headers: dict[str, str], status: int
) -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        # Cookies are given by hand: they belong to the address, whatever the header says.
        cookies = "; ".join(f"{each.key}={each.value}" for each in http.cookie_jar)
        async with http.get(
            f"{page.url}/page/v1/state", headers={"Cookie": cookies, **headers}
        ) as answer:
            assert answer.status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "["}, 400, id="a bracket for a host"),
        pytest.param({"Host": "[::1"}, 400, id="half of an address"),
        pytest.param({"Host": "localhost:99999"}, 400, id="a port that is none"),
        pytest.param({"Host": "localhost:x"}, 400, id="a port that is no number"),
        pytest.param({"Origin": "http://["}, 403, id="an origin without an end"),
    ],
)
async def test_malformed_headers_of_strangers_are_refused(
    headers: dict[str, str], status: int
) -> None:
    async with (
        serving(FakeSource()) as (page, _),
        browser() as http,
        http.get(f"{page.url}/page/v1/state", headers=headers) as answer,
    ):
        assert answer.status == status


async def test_a_position_of_5000_digits_begins_anew() -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        changes = f"{page.url}/page/v1/changes"
        number = "9" * 5000
        for headers, query in (({}, {"since": number}), ({"Last-Event-ID": number}, {})):
            async with http.get(changes, headers=headers, params=query) as answer:
                assert (answer.status, await answer.text()) == (200, "event: anew\ndata: {}\n\n")


async def test_connections_with_half_of_a_call_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_calls, "HEADERS_SECONDS", 0.05)
    async with serving(FakeSource()) as (page, _):
        host = urlsplit(page.url)
        reader, writer = await asyncio.open_connection(host.hostname, host.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: local")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param({}, 200, id="from the page"),
        pytest.param({"X-Moorage-Csrf": "guessed"}, 403, id="with another token"),
        pytest.param({"X-Moorage-Csrf": None}, 403, id="without a token"),
        pytest.param({"Origin": None}, 403, id="without an origin"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="from another page"),
    ],
)
async def test_acts_are_done_for_the_page_alone(change: dict[str, Any], status: int) -> None:
    acts = FakeActs()
    async with serving(FakeSource(), acts) as (page, links), browser() as http:
        await http.get(links[0])
        async with http.get(f"{page.url}/page/v1/about") as answer:
            csrf = (await answer.json())["csrf"]
        given = {"X-Moorage-Csrf": csrf, "Origin": page.url, **change}
        headers = {name: each for name, each in given.items() if each is not None}
        async with http.post(
            f"{page.url}/page/v1/acts/create-pods", headers=headers, data=b"{}"
        ) as answer:
            assert answer.status == status
    assert acts.done == ([("create-pods", b"{}")] if status == 200 else [])


@pytest.mark.parametrize(
    ("text", "status", "answer"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {}}\n",
            200,
            {
                "manifests": [
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
                    {"apiVersion": "v1", "kind": "Node", "metadata": {}},
                ]
            },
            id="objects",
        ),
        pytest.param(
            "kind: Pod",
            400,
            "text: document 1: Pod without apiVersion; a Pod has apiVersion: v1",
            id="no version",
        ),
    ],
)
async def test_manifests_are_read_for_the_page(text: str, status: int, answer: Any) -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        async with http.get(f"{page.url}/page/v1/about") as about:
            csrf = (await about.json())["csrf"]
        headers = {"X-Moorage-Csrf": csrf, "Origin": page.url}
        address = f"{page.url}/page/v1/manifests"
        async with http.post(address, headers=headers, data=text.encode()) as reply:
            body = await reply.json()
            assert (reply.status, body if status == 200 else body["message"]) == (status, answer)


async def test_every_view_that_the_page_lists_has_an_address() -> None:
    script = (files("moorage.dashboard") / "static" / "js" / "main.js").read_text()
    views = re.findall(r'^  "?([a-z-]+)"?: \{ title: ', script, flags=re.MULTILINE)
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        for view in views:
            async with http.get(f"{page.url}/{view}") as reply:
                assert (view, reply.status) == (view, 200)
    assert {"cluster", "overview", "workloads", "what-if"} <= set(views)


async def test_a_page_without_acts_changes_nothing() -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        async with http.get(f"{page.url}/page/v1/about") as answer:
            about = await answer.json()
        headers = {"X-Moorage-Csrf": about["csrf"], "Origin": page.url}
        async with http.post(f"{page.url}/page/v1/acts/create-pods", headers=headers) as answer:
            assert (about["acts"], answer.status) == ([], 404)


@pytest.mark.parametrize("path", ["/cluster", "/static/js/main.js", "/page/v1/state", "/nowhere"])
async def test_answers_forbid_to_load_or_frame_anything(path: str) -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        async with http.get(page.url + path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(
                policy.split("; ")
            )
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_files_outside_the_page_are_not_served() -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static/js"):
            async with http.get(page.url + path) as answer:
                assert answer.status == 404


async def test_an_address_that_is_no_view_gets_the_page_which_lists_the_views() -> None:
    async with serving(FakeSource()) as (page, links), browser() as http:
        await http.get(links[0])
        async with http.get(f"{page.url}/clusters") as answer:
            assert answer.status == 404
            assert "/static/js/main.js" in await answer.text()
