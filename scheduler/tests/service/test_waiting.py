"""Pods held at Permit: who lets them go, who turns them away, and what becomes of them then.

The map by itself first, then the map and the binding task together, in virtual time. Not covered:
plugins that hold pods (plugins), victims that wait (`test_preemption_in_memory`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.framework.effects import WaitingPod
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.service.binding.waiting import PreBinding, WaitingPods
from moorage.state.lifecycle import PodState
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.build import pod
from scheduler.tests.service.test_binding_cycle import (
    BACK,
    DONE,
    GIVEN_BACK,
    UNDONE,
    UNSCHEDULABLE,
    Binding,
)

P = pod("p")
UID = "uid-p"
WAIT = Status(Code.WAIT, ("hold on",))

Decide = Callable[[WaitingPods], list[bool]]


def held(waits: Mapping[str, float], decide: Decide) -> tuple[list[bool], Status, float]:
    """Hold a pod, decide, and wait: the answers, the outcome, and the seconds it took."""
    clock = ManualClock()
    waiting = WaitingPods()

    async def main() -> tuple[list[bool], Status]:
        waiting.hold(P, "n1", waits)
        answers = decide(waiting)
        return answers, await waiting.outcome(UID)

    begin = clock.monotonic_ns()
    answers, status = run_virtual(main(), clock)
    assert len(waiting) == 0
    return answers, status, (clock.monotonic_ns() - begin) / NS_PER_SECOND


TIMEOUT = "rejected due to timeout after waiting {} at plugin {}"


@pytest.mark.parametrize(
    ("waits", "decide", "answers", "outcome", "seconds"),
    [
        pytest.param(
            {"A": 30},
            lambda w: [w.allow(UID, "A")],
            [True],
            SUCCESS,
            0,
            id="the only plugin allows it",
        ),
        pytest.param(
            {"A": 30, "B": 60},
            lambda w: [w.allow(UID, "B"), w.allow(UID, "A")],
            [True, True],
            SUCCESS,
            0,
            id="every plugin allows it",
        ),
        pytest.param(
            {"A": 30, "B": 90},
            lambda w: [w.allow(UID, "A")],
            [True],
            unschedulable(TIMEOUT.format("1m30s", "B")).by("B"),
            90,
            id="one plugin allows it: the timeout of the other counts",
        ),
        pytest.param(
            {"A": 30, "B": 0.5},
            lambda w: [],
            [],
            unschedulable(TIMEOUT.format("500ms", "B")).by("B"),
            0.5,
            id="no plugin allows it: the first timeout counts",
        ),
        pytest.param(
            {"A": 0},
            lambda w: [],
            [],
            unschedulable(TIMEOUT.format("0s", "A")).by("A"),
            0,
            id="a wait of 0 seconds is over at once",
        ),
        pytest.param(
            {"A": 900},
            lambda w: [],
            [],
            unschedulable(TIMEOUT.format("15m0s", "A")).by("A"),
            900,
            id="the longest wait",
        ),
        pytest.param(
            {"A": 30, "B": 60},
            lambda w: [w.reject(UID, "B", "no quorum")],
            [True],
            unschedulable("no quorum").by("B"),
            0,
            id="one rejection is enough",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.reject(UID, "C", "not you")],
            [True],
            unschedulable("not you").by("C"),
            0,
            id="a plugin that the pod does not wait for may reject it",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.allow(UID, "C"), w.allow("another", "A"), w.allow(UID, "A")],
            [False, False, True],
            SUCCESS,
            0,
            id="only a plugin that the pod waits for can allow it",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.allow(UID, "A"), w.reject(UID, "A", "late"), w.preempt(UID, "D", "late")],
            [True, False, False],
            SUCCESS,
            0,
            id="the first outcome counts: allowed",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.reject(UID, "A", "first"), w.allow(UID, "A"), w.reject(UID, "B", "late")],
            [True, False, False],
            unschedulable("first").by("A"),
            0,
            id="the first outcome counts: rejected",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.preempt(UID, "DefaultPreemption", "preempted"), w.remove(UID)],
            [True, False],
            error("waiting on permit for pod: preempted").by("DefaultPreemption"),
            0,
            id="preempted: an error, so that the pod is retried without an event",
        ),
        pytest.param(
            {"A": 30},
            lambda w: [w.remove(UID), w.remove("another")],
            [True, False],
            unschedulable("removed"),
            0,
            id="deleted: rejected without a plugin",
        ),
    ],
)
def test_the_first_outcome_counts(
    waits: dict[str, float], decide: Decide, answers: list[bool], outcome: Status, seconds: float
) -> None:
    assert held(waits, decide) == (answers, outcome, seconds)


def test_a_pod_that_no_plugin_holds_goes_on_at_once() -> None:
    assert run_virtual(WaitingPods().outcome(UID), ManualClock()) == SUCCESS


def test_waiting_pods_list_the_plugins_that_have_not_decided() -> None:
    waiting = WaitingPods()

    async def main() -> None:
        waiting.hold(P, "n1", {"B": 1, "A": 1})
        waiting.hold(pod("q"), "n2", {"A": 1})
        both = (WaitingPod(P, "n1", ("B", "A")), WaitingPod(pod("q"), "n2", ("A",)))
        assert (tuple(waiting.undecided_pods()), waiting.find(UID)) == (both, both[0])
        waiting.allow(UID, "B")
        assert waiting.find(UID) == WaitingPod(P, "n1", ("A",))
        waiting.allow(UID, "A")
        assert (waiting.find(UID), tuple(waiting.undecided_pods())) == (None, both[1:])
        assert (waiting.holds_pod(UID), len(waiting)) == (True, 2)  # its task has not seen it yet
        waiting.release("uid-q")
        await waiting.outcome(UID)
        assert (waiting.holds_pod(UID), len(waiting), tuple(waiting.undecided_pods())) == (
            False,
            0,
            (),
        )

    run_virtual(main(), ManualClock())


async def test_a_pod_that_stops_waiting_leaves_nothing_behind() -> None:
    waiting = WaitingPods()
    waiting.hold(P, "n1", {"A": 30})
    task = TaskOwner().spawn(waiting.outcome(UID), name="outcome")
    await aio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), len(waiting)) == (True, 0)


async def test_a_pre_bind_can_be_called_off_until_it_has_ended() -> None:
    async def forever() -> Status:
        await asyncio.Event().wait()
        return SUCCESS

    running = PreBinding()
    assert not running.cancel(UID, "too early")
    work = TaskOwner().spawn(forever(), name="work")
    running.begin_pod(UID, work)
    await aio.sleep(0)
    assert running.cancel(UID, "preempted")
    assert running.cancel(UID, "again")
    await asyncio.wait([work])
    assert (work.cancelled(), running.end_pod(UID)) == (True, "preempted")
    assert not running.cancel(UID, "too late")
    assert running.end_pod(UID) == ""


# --- with the binding task ----------------------------------------------------------------------


class Waiting(Binding):
    """A binding whose Permit plugin holds the pod for half a minute."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**{"permit": (WAIT, 30.0), **answers})
        self.waiting = self.core.waiting

    def log_after(self, then: Callable[[], Any]) -> list[str]:
        """Hold the pod, let something happen, and see it to its end; returns the log from there."""

        async def main() -> None:
            status = self.carry_out()
            assert (status.code, self.waiting.holds_pod(UID)) == (Code.WAIT, True)
            assert self.cache.lifecycle.state(UID) is PodState.WAITING
            await aio.sleep(0)
            assert (len(self.waiting), self.slots.used) == (1, 0)
            assert self.queue.pending().in_flight == (UID,)
            self.cache.validate()
            self.queue.validate()
            assert self.log == BEFORE
            self.log.clear()
            then()
            while len(self.tasks):
                await aio.sleep(1)

        run_virtual(main(), self.clock)
        self.validate()
        assert (len(self.waiting), self.slots.used) == (0, 0)
        return self.log


BEFORE = ["cache.assume_pod n1", "A.reserve", "B.reserve", "permit", "patch - nominated='n1'"]
BOUND = ["bind", "event Scheduled", "post", "slot free"]


def test_a_pod_that_is_allowed_is_bound() -> None:
    world = Waiting()
    assert world.log_after(lambda: world.waiting.allow(UID, "Gate")) == [
        DONE,
        "earlier writes settled",
        *BOUND,
    ]
    assert world.facts.bound == 1


def test_a_pod_that_is_allowed_before_its_task_begins_is_bound_without_more_ado() -> None:
    world = Waiting()

    async def main() -> None:
        world.carry_out()
        assert world.waiting.allow(UID, "Gate")
        await world.settle()

    run_virtual(main(), world.clock)
    world.validate()
    assert world.log == [*BEFORE[:-1], DONE, *BOUND]  # not nominated: it waits for nothing
    assert (len(world.waiting), world.slots.used) == (0, 0)


FREED = "move AssignedPodDelete p -"
ERROR = [BACK, "event FailedScheduling", "patch SchedulerError nominated=''"]
LATE = "rejected due to timeout after waiting 30s at plugin Gate"


@pytest.mark.parametrize(
    ("then", "log", "place", "told"),
    [
        pytest.param(
            lambda w: None,
            [*UNDONE, *UNSCHEDULABLE, f"{FREED} only other", GIVEN_BACK],
            "unschedulable",
            ("Unschedulable", f"0/1 nodes are available: 1 {LATE}.", ""),
            id="timeout",
        ),
        pytest.param(
            lambda w: w.waiting.reject(UID, "Gate", "no quorum"),
            [*UNDONE, *UNSCHEDULABLE, f"{FREED} only other", GIVEN_BACK],
            "unschedulable",
            ("Unschedulable", "0/1 nodes are available: 1 no quorum.", ""),
            id="rejected",
        ),
        pytest.param(
            lambda w: w.waiting.preempt(UID, "DefaultPreemption", "preempted"),
            [*UNDONE, FREED, *ERROR, GIVEN_BACK],
            "backoff",
            ("SchedulerError", "waiting on permit for pod: preempted", ""),
            id="preempted",
        ),
    ],
)
def test_a_pod_that_is_turned_away_goes_back(
    then: Callable[[Waiting], Any], log: list[str], place: str, told: tuple[str, str, str]
) -> None:
    world = Waiting()
    assert world.log_after(lambda: then(world)) == log
    assert (world.place("p"), world.told) == (place, told)
    assert world.cache.counts().pods == 0


def test_a_pod_deleted_while_it_waits_is_undone_and_forgotten() -> None:
    world = Waiting()
    log = world.log_after(world.delete)
    assert log == [FREED, *UNDONE, DONE, f"{FREED} only other", GIVEN_BACK]
    assert (world.place("p"), world.cache.counts().pods) == ("", 0)
    assert world.cache.lifecycle.state(UID) is PodState.GONE


def test_a_pod_that_begins_to_stop_while_it_waits_goes_back() -> None:
    world = Waiting()
    stopping = pod(version="2", deleted=True)
    log = world.log_after(lambda: world.pods.on_update(world.queued.pod, stopping))
    assert log == [FREED, *UNDONE, *UNSCHEDULABLE, f"{FREED} only other", GIVEN_BACK]
    assert world.told[1] == "0/1 nodes are available: 1 removed."
    assert world.place("p") == "backoff"  # nobody's event could wake it


def test_a_pod_bound_by_another_program_while_it_waited_stays_bound() -> None:
    world = Waiting()
    log = world.log_after(lambda: world.confirm("n2"))
    assert log == ["move AssignedPodAdd - p", *UNDONE, DONE, "event FailedScheduling", GIVEN_BACK]
    assert world.cache.get_pod(UID).spec.node_name == "n2"
    assert world.place("p") == ""


def test_a_pod_whose_look_before_pre_bind_fails_does_not_wait_any_more() -> None:
    world = Waiting(pre_bind=SUCCESS, pre_flight=error("broken"))

    async def main() -> None:
        world.carry_out()
        await world.settle()

    run_virtual(main(), world.clock)
    world.validate()
    assert len(world.waiting) == 0
    assert world.told[1] == 'running PreBindPreFlight "Pre": broken'
    assert world.place("p") == "backoff"


async def test_ending_the_scheduler_ends_the_wait_without_undoing_anything() -> None:
    world = Waiting()
    world.carry_out()
    await aio.sleep(0)
    await world.tasks.cancel_all()
    assert world.log == [*BEFORE]
    assert (len(world.waiting), world.slots.used) == (0, 0)
    assert world.cache.is_assumed(UID)
