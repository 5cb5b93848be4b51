"""The recorder: what it counts of an attempt, and when."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.engine.decision import Decision, Outcome
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SUCCESS, unschedulable
from moorage.observe.records.record import AttemptRecord, End
from moorage.observe.records.recorder import Recorder
from moorage.state.history import Histories
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.snapshot.builders import pod


def placement(queued: QueuedPod) -> Decision:
    return Decision(
        outcome=Outcome.BIND,
        pod=queued.info,
        state=CycleState(),
        status=SUCCESS,
        node_name="n1",
    )


def rejection(queued: QueuedPod, text: str) -> Decision:
    return Decision(
        outcome=Outcome.REJECT,
        pod=queued.info,
        state=CycleState(),
        status=unschedulable(text),
    )


@pytest.mark.parametrize("held", range(4))
def test_a_record_tells_all_that_happened_to_the_pod_since_its_last_attempt(held: int) -> None:
    clock = ManualClock()
    recorder, histories = Recorder(clock), Histories(clock)
    queued = QueuedPod(pod("p"), 0)
    began = 0
    for attempt in (1, 2):
        queued.attempts = attempt
        for number in range(held):
            histories.add_entry(queued.uid, queued.key, f"-> place {number}", cause="an event")
        histories.add_entry(queued.uid, queued.key, "-> in-flight", cause="pop")
        recorder.decided(queued, rejection(queued, "no room"), histories)
        newest = recorder.ring.of_pod(queued.key)[-1]
        assert tuple(newest.before) == histories.history_of(queued.uid)[began:]
        assert len(newest.before) == held + 1
        assert newest.own_bytes == newest.size
        began = len(histories.history_of(queued.uid))


def test_the_message_of_every_rejection_is_counted_whenever_its_record_is_filed() -> None:
    clock = ManualClock()
    recorder, histories = Recorder(clock), Histories(clock)
    for number in range(100):
        queued = QueuedPod(pod(f"p{number}"), 0)
        recorder.decided(queued, rejection(queued, "no room " * 100), histories)
    assert recorder.ring.nbytes == sum(each.own_bytes for each in recorder.ring)


def test_the_end_of_an_attempt_is_told_though_its_record_was_dropped() -> None:
    clock = ManualClock()
    ended: list[AttemptRecord] = []
    recorder, histories = Recorder(clock, bytes_max=8192, on_end=ended.append), Histories(clock)
    ends: tuple[End, ...] = ("bound", "requeued")
    for name, end in zip("ab", ends, strict=True):
        queued = QueuedPod(pod(name), 0)
        recorder.decided(queued, placement(queued), histories)
        for number in range(8):
            other = QueuedPod(pod(f"after-{name}-{number}"), 0)
            recorder.decided(other, rejection(other, "no room"), histories)
        recorder.ring.validate()
        assert recorder.ring.of_pod(queued.key) == []
        recorder.ended(queued.uid, end)
        recorder.ended(queued.uid, end)
    assert [(each.key[1], each.end) for each in ended if each.node] == [
        ("a", "bound"),
        ("b", "requeued"),
    ]
    recorder.ring.validate()
    assert set(recorder.ring.unbound) == {each.uid for each in recorder.ring}


def test_a_pod_that_is_tried_again_after_its_binding_failed_has_one_last_record() -> None:
    clock = ManualClock()
    recorder, histories = Recorder(clock), Histories(clock)
    queued = QueuedPod(pod("p"), 0)
    queued.attempts = 1
    recorder.decided(queued, placement(queued), histories)
    recorder.ended(queued.uid, "requeued", "refused")
    queued.attempts = 2
    recorder.decided(queued, placement(queued), histories)
    recorder.ended(queued.uid, "bound")
    recorder.ring.validate()
    found = recorder.ring.of_pod(queued.key)
    assert [(each.end, each.failure.message, each.is_last) for each in found] == [
        ("requeued", "refused", False),
        ("bound", "", True),
    ]
    assert recorder.ring.unbound == {}
