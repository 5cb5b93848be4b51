"""Waiting for a settled cluster from another process: when it ends, and what it says in vain."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import MoorageError
from moorage_sandbox.sandbox.progress import Progress
from moorage_sandbox.sandbox.watching import settled_within
from sandbox.tests.sandbox.test_progress import refused, with_status


def progress_of(clock: ManualClock, *pods: object) -> Progress:
    progress = Progress(clock, lambda _change: None)
    for each in pods:
        progress.pod_seen(each)  # type: ignore[arg-type]
    return progress


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        pytest.param("Running", 1.0, id="a moment after every pod was decided"),
        pytest.param("Pending", 10.0, id="later if a pod with a node does not start"),
    ],
)
async def test_the_wait_ends(phase: str, seconds: float) -> None:
    clock = ManualClock()
    progress = progress_of(clock, refused("a"), with_status("b", node_name="n", phase=phase))
    await settled_within(progress, 60, check=lambda: clock.advance(0.5))
    assert progress.settled_seconds() == seconds


async def test_a_pod_that_starts_late_is_no_fault_at_the_timeout() -> None:
    clock = ManualClock()
    progress = progress_of(clock, with_status("b", node_name="n", phase="Pending"))
    clock.advance(1)
    await settled_within(progress, 0)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param(["b", "a"], "default/a, default/b", id="two pods"),
        pytest.param(
            ["a", "b", "c", "d", "e", "f", "g"],
            "default/a, default/b, default/c, default/d, default/e and 2 more",
            id="more pods than are named",
        ),
    ],
)
async def test_pods_without_a_decision_are_named(names: list[str], told: str) -> None:
    progress = progress_of(ManualClock(), *[with_status(name) for name in names])
    with pytest.raises(MoorageError) as vain:
        await settled_within(progress, 0)
    assert str(vain.value) == (
        f"the time is over, and these pods are neither bound nor explained: {told}"
    )


async def test_recently_decided_pods_are_not_named_at_the_timeout() -> None:
    with pytest.raises(MoorageError, match="the time is over, and pods still change"):
        await settled_within(progress_of(ManualClock(), refused()), 0)


async def test_a_sandbox_that_has_ended_is_not_waited_for() -> None:
    def ended() -> None:
        raise MoorageError("it has ended")

    with pytest.raises(MoorageError, match="it has ended"):
        await settled_within(progress_of(ManualClock(), with_status()), 60, check=ended)
