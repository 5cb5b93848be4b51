"""Webhooks of many calls share the loop: few connections begin, and few calls go on, in a turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from moorage.base.aio import TaskOwner, sleep
from moorage.base.clock import ManualClock
from moorage_sandbox.apiserver.webhooks.answers import Endpoint, HookError, Question
from moorage_sandbox.apiserver.webhooks.gathering import LoopTurns
from moorage_sandbox.apiserver.webhooks.https import HttpsSender, Turns
from sandbox.tests.apiserver.harness import CONFIG_MAPS, config_map, run_virtual
from sandbox.tests.apiserver.test_webhooks_https import program
from sandbox.tests.apiserver.webhooks import (
    VALIDATING,
    Programs,
    allow,
    cluster_with,
    configuration,
    hook,
)


def test_a_connection_begins_when_the_one_before_it_is_made():
    async def play() -> int:
        turns, under_way, most = Turns(), 0, 0

        async def connect() -> None:
            nonlocal under_way, most
            made = await turns.begin()
            under_way += 1
            most = max(most, under_way)
            await sleep(0.002)
            under_way -= 1
            made.set()

        await asyncio.gather(*(connect() for _ in range(20)))
        return most

    assert run_virtual(play()) == 1


def test_a_connection_that_hangs_holds_up_the_next_one_for_a_short_time_only():
    async def play() -> list[float]:
        turns, began = Turns(), []
        for _ in range(3):
            await turns.begin()
            began.append(round(asyncio.get_running_loop().time(), 3))
        return began

    first, second, third = run_virtual(play())
    assert (second - first, third - second) == (0.01, 0.01)


def test_a_caller_that_gives_up_keeps_nobody_from_a_turn():
    async def play() -> None:
        turns = Turns()
        await turns.begin()
        tasks = TaskOwner()
        waiting = [tasks.spawn(turns.begin(), name="waiting") for _ in range(3)]
        await sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        assert not (await waiting[2]).is_set()

    run_virtual(play())


async def test_the_turn_of_a_webhook_that_hangs_ends_with_its_handshake():
    async with program() as found:
        sender = HttpsSender()
        question = Question(
            about="a",
            endpoint=Endpoint(
                host="127.0.0.1",
                port=found.port,
                path="/",
                authority="a",
                server_name="127.0.0.1",
                ca_bundle=found.authority.certificate.decode(),
            ),
            timeout_seconds=60,
            review={},
        )
        made: list[asyncio.Event] = []
        begin: Callable[[], Any] = sender.turns.begin

        async def noted() -> asyncio.Event:
            made.append(await begin())
            return made[-1]

        sender.turns.begin = noted  # type: ignore[method-assign]
        silent = b'{"request": {"uid": "u", "object": {"data": {"fault": "silent"}}}}'
        tasks = TaskOwner()
        asked = tasks.spawn(sender.send_review(question, silent, 60), name="asked")
        async with asyncio.timeout(60):
            while not made:
                await sleep(0)
            await made[0].wait()
        assert not asked.done()
        await tasks.cancel_all()


async def test_the_turn_of_a_webhook_that_refuses_the_connection_ends():
    sender = HttpsSender()
    nobody = Endpoint(host="127.0.0.1", port=1, path="/", authority="a", server_name="a")
    question = Question(about="a", endpoint=nobody, timeout_seconds=60, review={})
    for _ in range(2):
        with pytest.raises(HookError):
            await sender.send_review(question, b"", 60)
    assert not (await sender.turns.begin()).is_set()


def test_calls_go_on_for_a_short_time_in_each_turn_of_the_loop():
    """Each call works for 1 ms, so the third one ends the 2 ms of a turn."""

    async def play() -> list[int]:
        clock, number, began = ManualClock(), 0, []
        turns = LoopTurns(clock)

        async def count() -> None:
            nonlocal number
            while True:
                await sleep(0)
                number += 1

        async def call() -> None:
            await turns.wait()
            began.append(number)
            clock.advance(0.001)

        tasks = TaskOwner()
        tasks.spawn(count(), name="turns of the loop")
        await asyncio.gather(*(call() for _ in range(10)))
        await tasks.cancel_all()
        return began

    began = run_virtual(play())
    assert max(Counter(began).values()) == 2
    assert len(began) == 10


async def test_a_call_is_answered_in_its_turn():
    cluster = cluster_with(Programs(a=allow))
    await cluster.ok("POST", VALIDATING, configuration(hook()))
    await asyncio.gather(
        *(cluster.ok("POST", CONFIG_MAPS, config_map(f"c{each}")) for each in range(20))
    )
    assert len(await cluster.names(CONFIG_MAPS)) >= 20
