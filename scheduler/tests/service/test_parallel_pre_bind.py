"""PreBind plugins that run at once, in virtual time: how long it takes, and who is called off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.service.test_binding_cycle import Binding

CANCELLED = asyncio.CancelledError()


class Parallel(Binding):
    """A binding with a PreBind plugin for each (seconds, answer); ended ones are logged."""

    def __init__(self, *works: tuple[float, Any]) -> None:
        super().__init__()
        self.ended: list[str] = []
        plugins = [self._worker(f"W{i}", *work) for i, work in enumerate(works)]
        self.profile = profile(*self._plugins(), *plugins)

    def _worker(self, name: str, seconds: float, answer: Any) -> Fake:
        async def pre_bind(*args: Any) -> Status:
            del args
            try:
                await aio.sleep(seconds)
            except asyncio.CancelledError:
                self.ended.append(f"{name} called off")
                raise
            self.ended.append(name)
            if isinstance(answer, BaseException):
                raise answer
            assert isinstance(answer, Status)
            return answer

        return Fake(name, pre_bind=pre_bind, pre_bind_parallel=True)


@pytest.mark.parametrize(
    ("works", "ended", "seconds", "message"),
    [
        pytest.param(
            [(3, SUCCESS), (2, SUCCESS)],
            ["W1", "W0"],
            3,
            None,
            id="all succeed: the duration is that of the longest",
        ),
        pytest.param(
            [(3, SUCCESS), (1, unschedulable("no"))],
            ["W1", "W0 called off"],
            1,
            "no",
            id="the first failure cancels the others",
        ),
        pytest.param(
            [(1, error("a")), (1, error("b"))],
            ["W0", "W1"],
            1,
            'running PreBind plugin "W0": a',
            id="two fail at once: the first in order counts",
        ),
        pytest.param(
            [(3, SUCCESS), (1, RuntimeError("oops"))],
            ["W1", "W0 called off"],
            1,
            'running PreBind plugin "W1": oops',
            id="one plugin raises",
        ),
        pytest.param(
            [(3, SUCCESS), (1, CANCELLED)],
            ["W1", "W0 called off"],
            1,
            "binding was cancelled by a plugin",
            id="a task that one plugin awaits is cancelled",
        ),
    ],
)
def test_neighbouring_pre_bind_plugins_run_at_once(
    works: list[tuple[float, Any]], ended: list[str], seconds: float, message: str | None
) -> None:
    world = Parallel(*works)
    clock: ManualClock = world.clock
    begin = clock.monotonic_ns()

    async def main() -> None:
        world.carry_out()
        while not (world.facts.bound or world.facts.bind_failures):
            await aio.sleep(0.01)

    run_virtual(main(), clock)
    world.validate()
    took = round((clock.monotonic_ns() - begin) / NS_PER_SECOND, 1)
    assert (world.ended, took) == (ended, seconds)
    assert world.facts.bound == (message is None)
    if message is not None:
        assert world.told[1] == message


async def test_ending_the_scheduler_ends_all_of_them() -> None:
    world = Parallel((100, SUCCESS), (100, SUCCESS))
    world.carry_out()
    for _ in range(4):
        await aio.sleep(0)
    assert world.slots.used == 0  # who prepares does not count
    await world.tasks.cancel_all()
    assert sorted(world.ended) == ["W0 called off", "W1 called off"]
    assert world.cache.is_assumed("uid-p")
