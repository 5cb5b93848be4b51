"""Owning tasks: none is lost, and what happens to them happens in the same order each time."""

from __future__ import annotations

import asyncio

import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner


async def test_tasks_are_cancelled_in_the_order_they_were_started():
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    tasks = TaskOwner()
    for number in range(200):
        tasks.spawn(work(number), name=f"work {number}")
    await aio.sleep(0)
    await tasks.cancel_all()
    assert ended == list(range(200))
    assert len(tasks) == 0


async def test_a_failure_is_told_with_the_name_of_the_task():
    async def fails() -> None:
        raise ValueError("broken")

    told: list[tuple[str, str]] = []
    tasks = TaskOwner(lambda name, error: told.append((name, str(error))))
    tasks.spawn(fails(), name="fragile")
    await aio.sleep(0)
    await aio.sleep(0)
    assert told == [("fragile", "broken")]


async def test_together_ends_all_with_the_first_that_fails():
    ended: list[str] = []

    async def lasts(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fails() -> None:
        await aio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await aio.together(lasts("one"), fails(), lasts("two"))
    assert ended == ["one", "two"]


async def test_together_without_coroutines_lasts_until_cancelled():
    tasks = TaskOwner()
    nothing = tasks.spawn(aio.together(), name="nothing")
    for _ in range(3):
        await aio.sleep(0)
    assert not nothing.done()
    await tasks.cancel_all()
    assert nothing.cancelled()


async def test_together_cancelled_ends_all():
    ended: list[str] = []

    async def lasts(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    tasks = TaskOwner()
    tasks.spawn(aio.together(lasts("one"), lasts("two")), name="both")
    await aio.sleep(0)
    await aio.sleep(0)
    await tasks.cancel_all()
    assert ended == ["one", "two"]
