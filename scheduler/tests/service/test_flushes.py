"""The two timers beside the pump: when they look, in virtual time."""

from __future__ import annotations

import pytest

from moorage.base.aio import TaskOwner, sleep
from moorage.base.clock import ManualClock
from moorage.service.attempts.flushes import flush_backoff, flush_leftover
from moorage.state.contracts import QueueSettings
from moorage_sandbox.testing.virtual_loop import run_virtual

SECOND = 1_000_000_000


class _Queue:
    def __init__(self, clock: ManualClock, settings: QueueSettings | None = None) -> None:
        self._clock = clock
        self.settings = settings or QueueSettings()
        self.looks: list[float] = []

    def _look(self) -> None:
        self.looks.append(self._clock.monotonic_ns() / SECOND)

    flush_backoff = _look
    flush_unschedulable_leftover = _look


@pytest.mark.parametrize(
    ("start_ns", "looks"),
    [
        pytest.param(0, [1.0, 2.0, 3.0], id="started on a whole second"),
        pytest.param(SECOND * 3 // 4, [0.25, 1.25, 2.25, 3.25], id="started in between"),
    ],
)
def test_backoff_is_looked_at_on_whole_seconds_of_wall_time(
    start_ns: int, looks: list[float]
) -> None:
    clock = ManualClock(start_ns)
    queue = _Queue(clock)

    async def main() -> None:
        tasks = TaskOwner()
        tasks.spawn(flush_backoff(queue, clock), name="backoff")  # type: ignore[arg-type]
        await sleep(3.5)
        await tasks.cancel_all()

    run_virtual(main(), clock)
    assert queue.looks == pytest.approx(looks, abs=1e-6)


def test_without_windows_backoff_is_looked_at_every_second() -> None:
    clock = ManualClock(SECOND * 3 // 4)
    queue = _Queue(clock, QueueSettings(pop_from_backoff=False))

    async def main() -> None:
        tasks = TaskOwner()
        tasks.spawn(flush_backoff(queue, clock), name="backoff")  # type: ignore[arg-type]
        await sleep(3.5)
        await tasks.cancel_all()

    run_virtual(main(), clock)
    assert queue.looks == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)


def test_the_leftover_is_looked_at_at_once_and_every_30_seconds() -> None:
    clock = ManualClock()
    queue = _Queue(clock)

    async def main() -> None:
        tasks = TaskOwner()
        tasks.spawn(flush_leftover(queue), name="leftover")  # type: ignore[arg-type]
        await sleep(61)
        await tasks.cancel_all()

    run_virtual(main(), clock)
    assert queue.looks == pytest.approx([0.0, 30.0, 60.0], abs=1e-6)
