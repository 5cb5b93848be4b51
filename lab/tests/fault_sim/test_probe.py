"""The look over a scheduler's shoulder: when a pod is tried again after it failed."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.base.clock import Clock, ManualClock
from moorage.state.queued_pod import QueuedPod
from moorage_lab.fault_sim import probe
from moorage_lab.fault_sim.history import History
from moorage_lab.fault_sim.invariants.while_running import WHILE_RUNNING
from moorage_lab.fault_sim.loop import SkewedClock
from moorage_lab.fault_sim.probe import Probe
from moorage_sandbox.testing.builders import pod


class Queue:
    """A queue with one pod, which is tried whenever it is asked for."""

    def __init__(self, entry: QueuedPod) -> None:
        self.entry = entry
        self.backing_off: list[Any] = []
        self.active: list[Any] = []

    def pending(self) -> Any:
        return SimpleNamespace(active=self.active, backoff=self.backing_off)

    def pop(self) -> QueuedPod:
        return self.entry

    def add_unschedulable_if_not_present(self, queued: QueuedPod) -> None:
        """Do nothing."""

    def flush_backoff(self) -> None:
        """Activate the pod."""
        self.active = [SimpleNamespace(pod=self.entry.pod)]

    def activate(self, pods: Any, *, news: bool = True) -> None:
        """Do nothing."""

    def update(self, old: Any, new: Any) -> None:
        """Do nothing."""


def probed(queue: Queue, clock: Clock) -> list[str]:
    """Look at a queue; return the list of the breaches that will be told."""
    breaches: list[str] = []
    scheduler: Any = SimpleNamespace(core=SimpleNamespace(queue=queue), schedules=True)
    probe_of(scheduler, clock, breaches)
    return breaches


def probe_of(scheduler: Any, clock: Clock, breaches: list[str]) -> Probe:
    """Look at a scheduler."""
    past: Any = SimpleNamespace(
        writes_of_others=0,
        popped_ns={},
        pops=0,
        popped_at={},
        first_popped_ns={},
        tried_after={},
        history_now_ns=0,
    )
    history: History = past
    return Probe(
        scheduler,
        clock,
        by_priority=True,
        history=history,
        on_breach=lambda name, text: breaches.append(name),
    )


def fail(queue: Queue, clock: ManualClock, *, times: int) -> None:
    """Let the attempts of the pod meet errors, each long after the one before."""
    for _ in range(times):
        clock.advance(20.0)
        queue.pop()
        queue.add_unschedulable_if_not_present(queue.entry)


@pytest.mark.parametrize(
    ("errors", "seconds", "activated", "broken"),
    [
        (1, 0.0, False, False),  # ends of backoff are aligned to seconds
        (2, 0.9, False, True),
        (2, 1.0, False, False),
        (3, 2.9, False, True),
        (3, 2.9, True, False),
        (9, 8.9, False, True),
        (9, 9.0, False, False),
    ],
)
def test_a_pod_waits_longer_after_each_error(
    errors: int, seconds: float, activated: bool, broken: bool
) -> None:
    clock, entry = ManualClock(), QueuedPod(pod("p"), 0)
    queue = Queue(entry)
    breaches = probed(queue, clock)
    fail(queue, clock, times=errors)
    if activated:
        queue.activate([entry.pod])
    clock.advance(seconds)
    queue.pop()
    assert breaches == (["backoff"] if broken else [])


def test_a_time_of_day_that_jumps_ends_a_backoff() -> None:
    base, entry = ManualClock(), QueuedPod(pod("p"), 0)
    clock, queue = SkewedClock(base), Queue(entry)
    breaches = probed(queue, clock)
    fail(queue, base, times=3)
    clock.jump(3600.0)
    queue.pop()
    assert breaches == []


@pytest.mark.parametrize(("flushed_after", "broken"), [(0.9, True), (1.0, False), (None, True)])
def test_a_time_of_day_that_jumps_back_does_not_undo_the_end_of_a_backoff(
    flushed_after: float | None, broken: bool
) -> None:
    base, entry = ManualClock(), QueuedPod(pod("p"), 0)
    clock, queue = SkewedClock(base), Queue(entry)
    breaches = probed(queue, clock)
    fail(queue, base, times=2)
    if flushed_after is not None:
        base.advance(flushed_after)
        queue.flush_backoff()
    base.advance(5.0)
    clock.jump(-30.0)
    queue.pop()
    assert breaches == (["backoff"] if broken else [])


@pytest.mark.parametrize(
    ("rejections", "seconds", "broken"),
    [
        (1, 0.0, False),
        (2, 0.9, True),
        (2, 1.0, False),
        (3, 2.9, True),
        (9, 8.9, True),
        (9, 9, False),
    ],
)
def test_the_backoff_of_a_pod_grows_with_each_rejection(
    rejections: int, seconds: float, broken: bool
) -> None:
    clock, entry = ManualClock(), QueuedPod(pod("p"), 0)
    queue = Queue(entry)
    breaches = probed(queue, clock)
    entry.unschedulable_plugins = frozenset({"NodeResourcesFit"})
    for _ in range(rejections):
        queue.add_unschedulable_if_not_present(entry)
    waits = SimpleNamespace(
        pod=entry.pod,
        unschedulable_plugins=("NodeResourcesFit",),
        since_ns=0,
        backoff_expiration_ns=round(seconds * 10**9),
    )
    queue.backing_off = [waits]
    queue.pop()
    assert breaches == (["backoff"] if broken else [])


def test_each_breach_that_is_noted_has_a_rule_that_tells_it() -> None:
    noted = re.findall(r'on_breach\(\s*"([a-z-]+)"', inspect.getsource(probe))
    assert set(noted) == {"order", "backoff", "promise-kept", "tries"}
    assert set(noted) <= {rule.name for rule in WHILE_RUNNING}
