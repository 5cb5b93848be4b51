"""What the queue tells its observer about calls: every hint's answer, every round of PreEnqueue.

Left out: counts of pods (``test_destinations``), and how long calls take, which is the observer's.
"""

from __future__ import annotations

import pytest

from moorage.api.pod import Pod
from moorage.state.contracts import Hint, RegisteredHint
from scheduler.tests.state.build import NODE_ADD, PROFILE, World, hint, pod


def _breaks(waiting: Pod, old: object | None, new: object | None) -> Hint:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("registered", "answer"),
    [
        pytest.param(hint("P", NODE_ADD), "Queue", id="the hint answers QUEUE"),
        pytest.param(hint("P", NODE_ADD, Hint.SKIP), "QueueSkip", id="the hint answers SKIP"),
        pytest.param(hint("P", NODE_ADD, _breaks), "Error", id="the hint raises"),
        pytest.param(RegisteredHint("P", NODE_ADD), "Queue", id="an event that always helps"),
    ],
)
def test_a_hint_is_told_by_plugin_event_and_answer(registered: RegisteredHint, answer: str) -> None:
    world = World(hints=[registered, hint("Q", NODE_ADD)])
    world.waiting("a", "P")
    world.queue.move_all(NODE_ADD, None, None)
    assert dict(world.seen.hints) == {("P", "NodeAdd", answer): 1}


def test_pre_enqueue_is_told_once_for_each_time_a_pod_asks_to_come_in() -> None:
    world = World()
    world.close_gate("b")
    world.add(pod("a"), pod("b"))
    assert dict(world.seen.gated) == {PROFILE: 2}
    world.fail(world.pop(), "Fit")
    assert dict(world.seen.gated) == {PROFILE: 2}
    world.queue.move_all(NODE_ADD, None, None)
    assert dict(world.seen.gated) == {PROFILE: 3}
