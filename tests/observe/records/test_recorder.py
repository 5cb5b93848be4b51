"""The recorder: what it counts of an attempt, and when."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.engine.decision import Decision, Outcome
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import unschedulable
from moorage.observe.records.recorder import Recorder
from moorage.state.history import Histories
from moorage.state.queued_pod import QueuedPod
from tests.snapshot.builders import pod


def test_the_message_of_every_rejection_is_counted_whenever_its_record_is_filed() -> None:
    clock = ManualClock()
    recorder, histories = Recorder(clock), Histories(clock)
    for number in range(100):
        queued = QueuedPod(pod(f"p{number}"), 0)
        status = unschedulable("no room " * 100)
        decision = Decision(
            outcome=Outcome.REJECT, pod=queued.info, state=CycleState(), status=status
        )
        recorder.decided(queued, decision, histories)
    assert recorder.ring.nbytes == sum(each.own_bytes for each in recorder.ring)
