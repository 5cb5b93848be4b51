"""What viewers of the page are sent: everything once, then what changed, the same for all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock, SystemClock
from moorage.dashboard.feed import Feed
from moorage.dashboard.sessions import Session, Sessions
from moorage.dashboard.view import View
from scheduler.tests.dashboard.fake import TIME, FakeSource

POD = {"uid": "u1", "queue": "active", "namespace": "default", "name": "a"}


async def change(feed: Feed, version: int) -> dict[str, Any]:
    """The one change after a version."""
    (found,) = await feed.after(version) or ()
    told: dict[str, Any] = json.loads(found)
    return told


async def test_a_viewer_gets_everything_and_then_what_changed() -> None:
    source = FakeSource()
    feed = Feed(source, SystemClock())
    whole = json.loads(await feed.whole())
    assert (whole["version"], whole["whole"], set(whole["nodes"])) == (1, True, {"n1"})
    source.nodes = {"n1": {"allocatable": {"cpu": 1000}}, "n2": {"allocatable": {"cpu": 2000}}}
    source.pods = [POD]
    await feed.look()
    told = await change(feed, 1)
    assert told["nodes"] == {"n2": {"allocatable": {"cpu": 2000}}}
    assert (told["pods"], told["sizes"]) == ({"u1": POD}, {"active": 1})
    del source.nodes["n1"]
    source.pods = []
    await feed.look()
    told = await change(feed, 2)
    assert (told["gone"], told["left"]) == (["n1"], ["u1"])
    assert "nodes" not in told


async def test_nothing_is_sent_while_nothing_changes() -> None:
    source = FakeSource()
    source.pods = [{**POD, "secondsLeft": 3.0}]
    feed = Feed(source, SystemClock())
    await feed.look()
    source.pods = [{**POD, "secondsLeft": 2.0}]
    await feed.look()
    assert feed.version == 1


async def test_viewers_hear_where_nothing_changes_and_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def passed(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)  # noqa: TID251 - lets the viewer go on

    monkeypatch.setattr("moorage.dashboard.feed.real_sleep", passed)
    feed = Feed(FakeSource(), SystemClock())
    await feed.look()
    tasks = TaskOwner()
    with feed.viewer():
        tasks.spawn(feed.beat(), name="beat")
        assert await feed.after(1) == []
        assert await feed.after(1) == []
    await tasks.cancel_all()
    assert set(slept) == {5.0}
    assert feed.time == TIME


async def test_trouble_is_told_once_and_its_end_too() -> None:
    source = FakeSource()
    feed = Feed(source, SystemClock())
    await feed.look()
    source.trouble = "connection refused"
    await feed.look()
    await feed.look()
    assert (await change(feed, 1))["trouble"] == "connection refused"
    source.trouble = ""
    await feed.look()
    assert feed.version == 3
    assert "trouble" not in await change(feed, 2)
    assert "trouble" not in json.loads(await feed.whole())


async def test_a_viewer_too_far_behind_begins_anew() -> None:
    source = FakeSource()
    feed = Feed(source, SystemClock())
    for number in range(100):
        source.nodes = {f"n{number}": {"allocatable": {}}}
        await feed.look()
    assert await feed.after(1) is None
    assert await feed.after(1000) is None
    assert len(await feed.after(feed.version - 3) or ()) == 3


async def test_decisions_are_told_again_until_their_binding_ended() -> None:
    source = FakeSource()
    feed = Feed(source, SystemClock())
    begun = {"number": 1, "outcome": "bind", "node": "n1"}
    source.decisions = [begun]
    await feed.look()
    assert source.asked[-1] == ("/decisions", {"since": "0", "limit": "200"})
    source.decisions = [{**begun, "end": "bound"}]
    await feed.look()
    assert (await change(feed, 1))["decisions"] == [{**begun, "end": "bound"}]
    await feed.look()
    assert source.asked[-1][1]["since"] == "1"


async def test_sessions_end_after_twelve_hours() -> None:
    clock = ManualClock()
    ended: list[Session] = []
    sessions = Sessions(clock, ended.append)
    session = sessions.begin(View(FakeSource(), clock))
    clock.advance(12 * 3600 - 1)
    assert sessions.find(session.key) is session
    clock.advance(1)
    assert sessions.find(session.key) is None
    assert ended == [session]


async def test_the_oldest_of_too_many_sessions_ends() -> None:
    ended: list[Session] = []
    sessions, view = Sessions(ManualClock(), ended.append), View(FakeSource(), ManualClock())
    begun = [sessions.begin(view) for _ in range(65)]
    assert ended == begun[:1]
    assert [sessions.find(each.key) for each in begun] == [None, *begun[1:]]
