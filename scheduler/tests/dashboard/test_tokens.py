"""Viewers who log in with tokens of the cluster: each sees what its own token may see."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError, UnauthorizedError
from moorage.dashboard.doors import TokenDoor
from moorage.dashboard.server import PagePlan, PageServer
from moorage.dashboard.source import Answered, Source
from scheduler.tests.dashboard.fake import FakeSource
from scheduler.tests.dashboard.test_guard import browser


class Scheduler:
    """A scheduler that knows two tokens; each may see a node of its own."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.away = ""
        self.refusal: UnauthorizedError | None = None

    @asynccontextmanager
    async def source(self, token: str) -> AsyncIterator[Source]:
        self.open.append(token)
        try:
            yield _OfToken(self, token)
        finally:
            self.open.remove(token)


class _OfToken(FakeSource):
    def __init__(self, scheduler: Scheduler, token: str) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._token = token
        self.nodes = {f"node-of-{token}": {}}

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        if self._scheduler.away:
            raise MoorageError(self._scheduler.away) from self._scheduler.refusal
        if self._token not in {"alice", "bob"}:
            return Answered(b'{"message": "<b>Unauthorized</b>"}', 401)
        return await super().ask(path, query, body)


@asynccontextmanager
async def serving(scheduler: Scheduler) -> AsyncIterator[PageServer]:
    clock = SystemClock()
    page = PageServer(PagePlan(title="c"), TokenDoor(scheduler.source, clock), clock=clock)
    await page.start()
    try:
        yield page
    finally:
        await page.close()


def login(
    page: PageServer, http: aiohttp.ClientSession, token: str, *, origin: str | None = None
) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
    headers = {"Origin": page.url if origin is None else origin}
    return http.post(f"{page.url}/login", data={"token": token}, headers=headers)


async def test_whoever_has_not_logged_in_is_led_to_the_form() -> None:
    scheduler = Scheduler()
    async with serving(scheduler) as page, browser() as http:
        for path in ("/", "/cluster", "/pod/default/a"):
            async with http.get(page.url + path, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/login")
        for path in ("/static/page.css", "/page/v1/state", "/moorage/v1/queue"):
            async with http.get(page.url + path, allow_redirects=False) as answer:
                assert answer.status == 401
        async with http.get(f"{page.url}/login") as answer:
            assert 'type="password"' in await answer.text()
            assert "form-action 'self'" in answer.headers["Content-Security-Policy"]
    assert scheduler.open == []


async def test_each_viewer_sees_what_its_token_may_see() -> None:
    scheduler = Scheduler()
    async with serving(scheduler) as page, browser() as alice, browser() as bob:
        for http, name in ((alice, "alice"), (bob, "bob")):
            async with login(page, http, name) as answer:
                assert answer.status == 200
        for http, name in ((alice, "alice"), (bob, "bob")):
            async with http.get(f"{page.url}/page/v1/state") as answer:
                assert list((await answer.json())["nodes"]) == [f"node-of-{name}"]
        assert scheduler.open == ["alice", "bob"]
    assert scheduler.open == [], "the end of the page closes what viewers saw"


@pytest.mark.parametrize("token", ["eve", "", " ", "é", "a\tb", "a" * 20_000])
async def test_another_token_opens_nothing_and_the_form_says_why(token: str) -> None:
    scheduler = Scheduler()
    async with serving(scheduler) as page, browser() as http:
        async with login(page, http, token) as answer:
            assert answer.status == 401
            text = await answer.text()
            assert 'role="alert"' in text
            assert "<b>" not in text, "what the scheduler says is text"
            assert "Set-Cookie" not in answer.headers
        async with http.get(f"{page.url}/page/v1/state") as answer:
            assert answer.status == 401
        assert scheduler.open == []


async def test_a_scheduler_that_is_away_is_no_wrong_token() -> None:
    scheduler = Scheduler()
    scheduler.away = "no scheduler to ask"
    async with serving(scheduler) as page, browser() as http, login(page, http, "bob") as answer:
        assert answer.status == 502
        assert "no scheduler to ask" in await answer.text()
        assert scheduler.open == []


async def test_a_token_that_may_not_read_the_lease_is_a_wrong_token() -> None:
    scheduler = Scheduler()
    scheduler.away = "no scheduler to ask"
    scheduler.refusal = UnauthorizedError(403, "Forbidden", "leases is forbidden")
    async with serving(scheduler) as page, browser() as http, login(page, http, "bob") as answer:
        assert answer.status == 401
        assert "The API server refuses this token: leases is forbidden" in await answer.text()
        assert scheduler.open == []


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
async def test_no_other_page_logs_a_browser_in(origin: str) -> None:
    scheduler = Scheduler()
    async with serving(scheduler) as page, browser() as http:
        async with login(page, http, "bob", origin=origin) as answer:
            assert answer.status == 403
        async with http.post(f"{page.url}/login", data={"token": "bob"}) as answer:
            assert answer.status == 403
    assert scheduler.open == []


async def test_a_link_opens_nothing_here() -> None:
    scheduler = Scheduler()
    async with (
        serving(scheduler) as page,
        browser() as http,
        http.get(f"{page.url}/login", params={"token": "bob"}) as answer,
    ):
        assert "Set-Cookie" not in answer.headers
    assert scheduler.open == []
