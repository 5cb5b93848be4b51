"""A scheduler that answers what a test says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError
from moorage.dashboard.acts import Acts
from moorage.dashboard.doors import LinkDoor
from moorage.dashboard.server import PagePlan, PageServer, login_link
from moorage.dashboard.source import Answered
from moorage.dashboard.view import View

TIME = "2026-01-01T00:00:00.000000Z"


class FakeSource:
    """Answers the questions of the page from plain objects.

    Attributes
    ----------
    nodes, pods, decisions
        What there is.
    trouble
        Why nothing is answered; "" for nothing.
    asked
        The paths that were asked for, with their queries.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {"n1": {"allocatable": {"cpu": 1000}}}
        self.pods: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []
        self.trouble = ""
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        del body
        self.asked.append((path, dict(query)))
        if self.trouble:
            raise MoorageError(self.trouble)
        answers: dict[str, Any] = {
            "/cluster": {
                "version": "v",
                "whole": True,
                "time": TIME,
                "scheduling": True,
                "nodes": self.nodes,
            },
            "/queue": {"sizes": {"active": len(self.pods)}, "pods": self.pods, "groups": []},
            "/decisions": {"last": len(self.decisions), "decisions": self.decisions},
        }
        if path not in answers:
            return Answered(b'{"message": "there is no such question"}', 404)
        return Answered(json.dumps(answers[path]).encode())


class FakeActs:
    """Notes what is done."""

    names = ("create-pods",)

    def __init__(self) -> None:
        self.done: list[tuple[str, bytes]] = []

    async def perform(self, name: str, body: bytes) -> Answered:
        self.done.append((name, body))
        return Answered(b"{}")


@asynccontextmanager
async def serving(
    source: FakeSource, acts: Acts | None = None
) -> AsyncIterator[tuple[PageServer, list[str]]]:
    """Serve a page on loopback; yields it with the login links so far."""
    links: list[str] = []
    plan = PagePlan(title="a cluster", rights="you see what it sees")
    clock = SystemClock()
    door = LinkDoor(View(source, clock), lambda token: links.append(login_link(page, token)))
    page = PageServer(plan, door, clock=clock, acts=acts)
    await page.start()
    try:
        yield page, links
    finally:
        await page.close()
