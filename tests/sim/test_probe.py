"""The look over a scheduler's shoulder: when a pod is tried again after errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.sim.history import History
from moorage.sim.probe import Probe
from moorage.state.queued_pod import QueuedPod
from moorage.testing.builders import pod


class Queue:
    """A queue with one pod, which is tried whenever it is asked for."""

    def __init__(self, entry: QueuedPod) -> None:
        self.entry = entry

    def pending(self) -> Any:
        return SimpleNamespace(active=[])

    def pop(self) -> QueuedPod:
        return self.entry

    def add_unschedulable_if_not_present(self, queued: QueuedPod) -> None:
        """Do nothing."""

    def activate(self, pods: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("errors", "seconds", "activated", "told"),
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
    errors: int, seconds: float, activated: bool, told: bool
) -> None:
    clock, breaches = ManualClock(), list[str]()
    entry = QueuedPod(pod("p"), 0)
    queue = Queue(entry)
    scheduler: Any = SimpleNamespace(core=SimpleNamespace(queue=queue))
    past: Any = SimpleNamespace(writes_of_others=0, popped_ns={}, first_popped_ns={})
    history: History = past
    Probe(
        scheduler,
        clock,
        by_priority=True,
        history=history,
        on_breach=lambda name, text: breaches.append(name),
    )
    for _ in range(errors):
        clock.advance(20.0)
        queue.pop()
        queue.add_unschedulable_if_not_present(entry)
    if activated:
        queue.activate([entry.pod])
    clock.advance(seconds)
    queue.pop()
    assert breaches == (["backoff"] if told else [])
