"""Plugins from outside in the binding task, where they may wait."""

from __future__ import annotations

from collections.abc import Generator
from types import coroutine
from typing import Any

import pytest

from moorage.framework.containment import OVERRAN, PluginFailedError
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import unschedulable
from scheduler.tests.framework.outside import POD, EndsAt, profile


def run(awaitable: Any) -> tuple[Any, list[Any]]:
    """Run a coroutine without a loop; return its answer and what it waited for."""
    waited = []
    answer: Any = None
    while True:
        try:
            waited.append(awaitable.send(answer))
        except StopIteration as end:
            return end.value, waited
        answer = f"{waited[-1]} came"


@coroutine
def wait_for(what: str) -> Generator[str, str, str]:
    return (yield what)


def test_an_async_plugin_waits_like_any_other() -> None:
    heard = []

    async def pre_bind(*_: object) -> Any:
        heard.append(await wait_for("volume"))
        heard.append(await wait_for("claim"))
        return "the disk is full"

    made, _ = profile(pre_bind=pre_bind)
    status, waited = run(made.pre_binds[0].pre_bind(CycleState(), POD, "a"))
    assert status == unschedulable("the disk is full")
    assert (waited, heard) == (["volume", "claim"], ["volume came", "claim came"])


def test_cancelling_reaches_the_plugin() -> None:
    seen = []

    async def pre_bind(*_: object) -> Any:
        try:
            await wait_for("volume")
        except KeyboardInterrupt as problem:
            seen.append(problem)
            raise

    made, containment = profile(pre_bind=pre_bind)
    running: Any = made.pre_binds[0].pre_bind(CycleState(), POD, "a")
    running.send(None)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt())
    assert len(seen) == 1
    assert not containment.failures


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_step_of_an_async_plugin_has_the_budget(number: int) -> None:
    async def pre_bind(*_: object) -> Any:
        await wait_for("volume")

    made, containment = profile(pre_bind=pre_bind)
    containment.budget = EndsAt(number)
    with pytest.raises(PluginFailedError, match="Mine at PreBind took too long"):
        run(made.pre_binds[0].pre_bind(CycleState(), POD, "a"))
    assert containment.failures == {("Mine", "PreBind", OVERRAN): 1}
