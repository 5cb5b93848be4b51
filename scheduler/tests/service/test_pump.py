"""The pump: which pods get an attempt, how many at once, and that no wake-up is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from moorage.base import aio
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Nomination, Outcome
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import SUCCESS, unschedulable
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.pump import Pump
from moorage.service.binding.waiting import WaitingPods
from moorage.snapshot.pod_info import PodInfo
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.service.build import World, node, pod

Decide = Callable[[PodInfo], Decision]


def bind(info: PodInfo) -> Decision:
    return Decision(
        outcome=Outcome.BIND, pod=info, state=CycleState(), status=SUCCESS, node_name="n1"
    )


def reject(info: PodInfo) -> Decision:
    return Decision(
        outcome=Outcome.REJECT,
        pod=info,
        state=CycleState(),
        status=unschedulable("full"),
        diagnosis=Diagnosis(1, {"full": 1}, frozenset({"NodeResourcesFit"})),
        nomination=Nomination("n1"),
        victims=(pod("victim"),),
    )


class Pumping(World):
    """A world with a pump whose decisions are given; what is done with them is logged."""

    def __init__(self, decide: Decide = bind) -> None:
        super().__init__()
        self.waiting = WaitingPods()
        self.profile: Any = object()
        self.decided: list[str] = []
        self._decide = decide
        mine = cast("Any", self)
        self.pump = Pump(
            cycles={"default-scheduler": mine},
            queue=self.queue,
            wake=self.wake,
            slots=self.slots,
            waiting=self.waiting,
            skipping=self.skipping(),
            groups=None,
            outcomes=Outcomes(
                binding_cycles=mine, failures=self.handler(), evictor=mine, facts=self.facts
            ),
            facts=self.facts,
            clock=self.clock,
        )

    def add(self, *names: str, **fields: Any) -> None:
        for name in names:
            one = pod(name, **fields)
            self.store.put_pod(one)
            self.queue.add(one)

    def decide(self, info: PodInfo) -> Decision:
        self.decided.append(info.name)
        return self._decide(info)

    def carry_out(self, profile: object, queued: QueuedPod, decision: Decision) -> None:
        assert profile is self.profile
        self.log.append(f"bind {queued.pod.name} to {decision.node_name}")
        self.slots.take_slot()
        self.queue.end_in_flight(queued.uid)

    def start(self, decision: Decision) -> None:
        self.log.append(f"evict {' '.join(victim.name for victim in decision.victims)}")

    async def turns(self, count: int) -> list[int]:
        """Let the pump run, and return how many pods were decided after each turn of the loop."""
        seen: list[int] = []
        for _ in range(count):
            await aio.sleep(0)
            seen.append(len(self.decided))
        return seen


def test_a_chosen_node_goes_to_the_effects() -> None:
    world = Pumping()
    world.add("p")
    queued = world.queue.pop()
    assert queued is not None
    world.pump.attempt(queued)
    assert world.log == ["bind p to n1"]
    assert (world.facts.decisions, world.facts.rejected, world.facts.errors) == (1, 0, 0)


def test_a_rejection_evicts_before_the_pod_goes_back() -> None:
    world = Pumping(reject)
    world.add("p")
    world.watch_queue("add_unschedulable_if_not_present")
    queued = world.queue.pop()
    assert queued is not None
    world.pump.attempt(queued)
    assert world.log == [
        "evict victim",
        "queue.add_unschedulable_if_not_present p",
        "event FailedScheduling",
        "patch Unschedulable nominated='n1'",
    ]
    assert world.place("p") == "unschedulable"
    assert (world.facts.decisions, world.facts.rejected, world.facts.errors) == (1, 1, 0)


@pytest.mark.parametrize(
    ("fields", "assumed", "noted"),
    [
        pytest.param(
            {"deleted": True},
            False,
            "skip schedule deleting pod: default/p",
            id="a pod being deleted",
        ),
        pytest.param({}, True, "", id="a pod assumed already"),
        pytest.param({"schedulerName": "unheard-of"}, False, "", id="a pod of an unknown profile"),
    ],
)
def test_some_pods_get_no_attempt(
    fields: dict[str, Any], assumed: bool, noted: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Pumping()
    world.cache.add_node(node())
    one = pod(**fields)
    if assumed:
        world.cache.assume_pod(one, "n1")
    queued = QueuedPod(one, 0)
    if not assumed and not noted:
        world.pump.attempt(queued)
        assert "profile not found for scheduler name 'unheard-of'" in caplog.text
    else:
        world.add("p", **fields)
        popped = world.queue.pop()
        assert popped is not None
        world.pump.attempt(popped)
    assert world.decided == []
    assert [note.note for note in world.notes] == ([noted] if noted else [])
    assert world.queue.pending().in_flight == ()
    world.validate()


def test_an_attempt_that_breaks_is_retried_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def breaks_for_p(info: PodInfo) -> Decision:
        if info.name == "p":
            raise RuntimeError("oops")
        return bind(info)

    world = Pumping(breaks_for_p)
    world.add("p", "q")
    for _ in range(2):
        queued = world.queue.pop()
        assert queued is not None
        world.pump.attempt(queued)
    assert world.log == [
        "event FailedScheduling",
        "patch SchedulerError nominated=''",
        "bind q to n1",
    ]
    assert world.place("p") == "backoff"
    assert world.facts.errors == 1
    assert "attempt for pod default/p broke" in caplog.text
    ((_, condition, nominated),) = world.statuses
    assert condition is not None
    assert (condition.message, nominated) == ("oops", CLEAR_NOMINATION.node_name)


async def test_the_pump_yields_after_a_batch() -> None:
    world = Pumping()
    world.add(*[f"p{i:02}" for i in range(40)])
    world.tasks.spawn(world.pump.run(), name="pump")
    assert await world.turns(5) == [16, 32, 40, 40, 40]
    await world.tasks.cancel_all()


async def test_the_pump_waits_for_a_free_slot() -> None:
    world = Pumping()
    world.slots.used = 511
    world.add("a", "b", "c")
    world.tasks.spawn(world.pump.run(), name="pump")
    assert await world.turns(3) == [1, 1, 1]
    world.slots.free()
    assert await world.turns(3) == [2, 2, 2]
    world.slots.free()
    world.slots.free()
    assert await world.turns(3) == [3, 3, 3]
    await world.tasks.cancel_all()


@pytest.mark.parametrize(
    ("took_ms", "seen"),
    [
        pytest.param(0.0, [16, 20], id="quick decisions come in batches"),
        pytest.param(0.5, [4, 8], id="a batch ends after two milliseconds"),
        pytest.param(30.0, [1, 2], id="a slow decision is a batch of its own"),
    ],
)
async def test_other_tasks_have_a_turn_when_decisions_take_long(
    took_ms: float, seen: list[int]
) -> None:
    def decide(info: PodInfo) -> Decision:
        world.clock.advance_ns(round(took_ms * 1_000_000))
        return bind(info)

    world = Pumping(decide)
    world.add(*(f"p{number}" for number in range(20)))
    world.tasks.spawn(world.pump.run(), name="pump")
    assert await world.turns(2) == seen
    await world.tasks.cancel_all()


async def test_the_pump_wakes_when_a_pod_arrives() -> None:
    world = Pumping()
    world.tasks.spawn(world.pump.run(), name="pump")
    assert await world.turns(2) == [0, 0]
    world.add("p")
    assert await world.turns(2) == [1, 1]
    world.add("q")
    assert await world.turns(2) == [2, 2]
    await world.tasks.cancel_all()


async def test_a_pod_that_arrives_between_the_look_and_the_wait_is_not_missed() -> None:
    world = Pumping()
    looks = 0
    real = world.queue.pop

    def pop() -> QueuedPod | None:
        nonlocal looks
        found = real()
        looks += 1
        if looks == 1:
            world.add("p")  # its wake-up is cleared right after this look
        return found

    setattr(world.queue, "pop", pop)  # noqa: B010 - mypy forbids the plain form
    world.tasks.spawn(world.pump.run(), name="pump")
    await world.turns(2)
    assert world.decided == ["p"]
    await world.tasks.cancel_all()
