"""From a decision to a binding, and every way it can fail: what is undone, told and requeued.

Not covered: the verbs of the binding client (`test_binding_verbs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from moorage.api.changes import ClusterEvent
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.errors import TransportError
from moorage.engine.decision import Decision, Outcome
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.service.binding.binding_cycle import BindingCycles
from moorage.service.binding.slots import BindingSlots
from moorage.service.intake.ingest import PodIngest
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.service.build import World, node, pod

NO = unschedulable("no room")
SKIP = Status(Code.SKIP)
PENDING = Status(Code.PENDING, ("not yet",))
DONE = "queue.end_in_flight uid-p"
BACK = "queue.add_unschedulable_if_not_present p"
FREED = "move AssignedPodDelete p -"
GIVEN_BACK = "move ReservationDelete p - only other"
UNDONE = ["B.unreserve", "A.unreserve", "cache.forget_pod p"]


class LoggedSlots(BindingSlots):
    """Slots that log when one becomes free."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(asyncio.Event())
        self._log = log

    def free(self) -> None:
        super().free()
        self._log.append("slot free")


class Binding(World):
    """A world whose profile has three fake plugins that answer as they are told."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers = answers
        self.slots = LoggedSlots(self.log)
        self.binding_cycles = BindingCycles(
            self.core,
            failures=self.handler(),
            tasks=self.tasks,
            recorder=cast("Any", self),
            writes=cast("Any", self),
            facts=self.facts,
            slots=self.slots,
        )
        self.pods = PodIngest(
            self.cache,
            self.queue,
            self.store,
            profiles=["default-scheduler"],
            writes=None,
            facts=self.facts,
            waiting=self.core.waiting,
        )
        self.profile = profile(*self._plugins())
        self.onlookers = (pod("p"), pod("other"))
        self.cache.add_node(node())
        self.queued = self.popped(pod())
        self.watch_cache("assume_pod", "forget_pod")
        self.watch_queue("end_in_flight", "add_unschedulable_if_not_present")

    def _plugins(self) -> list[Fake]:
        made: list[Fake] = []
        for name in ("A", "B"):
            methods = {
                "reserve": self._says(name, "reserve"),
                "unreserve": self._says(name, "unreserve"),
            }
            made.append(Fake(name, **methods))
        made.append(Fake("Binder", bind=self._says("", "bind"), post_bind=self._says("", "post")))
        if "permit" in self.answers:
            made.append(Fake("Gate", permit=self._says("", "permit", (SUCCESS, 0.0))))
        if "pre_bind" in self.answers:
            asked = self._says("", "pre_flight")
            work = self._says("", "pre_bind")
            made.append(Fake("Pre", pre_bind_pre_flight=asked, pre_bind=work))
        return made

    def _says(self, plugin: str, point: str, otherwise: Any = SUCCESS) -> Callable[..., Any]:
        name = f"{plugin}.{point}" if plugin else point

        def method(*args: Any) -> Any:
            del args
            self.log.append(name)
            answer = self.answers.get(name, otherwise)
            if callable(answer):
                answer = answer(self)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return method

    def carry_out(self, node_name: str = "n1") -> Status:
        decision = Decision(
            outcome=Outcome.BIND,
            pod=PodInfo(self.queued.pod),
            state=CycleState(),
            status=SUCCESS,
            node_name=node_name,
        )
        return self.binding_cycles.carry_out(self.profile, self.queued, decision)

    async def bind(self) -> list[str]:
        """Carry out a decision to the end; returns the log without its sure beginning."""
        self.carry_out()
        await self.settle()
        self.validate()
        assert self.slots.used == 0
        assert self.log[0] == "cache.assume_pod n1"
        return self.log[1:]

    @property
    def told(self) -> tuple[str, str, str | None]:
        """Reason, message and nomination of the one status written at failure."""
        ((_, condition, nominated),) = [each for each in self.statuses if each[1] is not None]
        assert condition is not None
        return condition.reason, condition.message, nominated

    # --- what the watch may tell meanwhile --------------------------------------------------

    def confirm(self, node_name: str = "n1") -> Pod:
        bound = pod(version="2", node_name=node_name)
        self.pods.on_update(self.queued.pod, bound)
        return bound

    def delete(self) -> None:
        self.pods.on_delete(self.queued.pod, missed=False)


async def test_a_successful_binding_reserves_binds_and_records_an_event() -> None:
    world = Binding(permit=(SUCCESS, 0.0))
    assert await world.bind() == [
        "A.reserve",
        "B.reserve",
        "permit",
        DONE,
        "bind",
        "event Scheduled",
        "post",
        "slot free",
    ]
    (note,) = world.notes
    assert (note.type, note.action, note.note, note.controller, note.regarding.uid) == (
        "Normal",
        "Binding",
        "Successfully assigned default/p to n1",
        "default-scheduler",
        "uid-p",
    )
    assert world.facts.bound == 1
    assert world.cache.is_assumed("uid-p")  # only the watch confirms
    world.confirm()
    assert not world.cache.is_assumed("uid-p")
    world.validate()


async def test_a_pod_with_work_before_binding_is_nominated_first() -> None:
    world = Binding(pre_bind=SUCCESS)
    assert await world.bind() == [
        "A.reserve",
        "B.reserve",
        "pre_flight",
        "patch - nominated='n1'",
        DONE,
        "slot free",
        "pre_bind",
        "earlier writes settled",
        "bind",
        "event Scheduled",
        "post",
        "slot free",
    ]


async def test_a_pod_without_work_before_binding_is_not_nominated() -> None:
    world = Binding(pre_bind=SUCCESS, pre_flight=SKIP)
    assert await world.bind() == [
        "A.reserve",
        "B.reserve",
        "pre_flight",
        DONE,
        "bind",
        "event Scheduled",
        "post",
        "slot free",
    ]


UNSCHEDULABLE = [BACK, "event FailedScheduling", "patch Unschedulable nominated=''"]
ERROR = [BACK, "event FailedScheduling", "patch SchedulerError nominated=''"]
MEANWHILE = ["A.reserve", "B.reserve", DONE, "bind"]


@pytest.mark.parametrize(
    ("answers", "log", "place", "told"),
    [
        pytest.param(
            {"A.reserve": NO},
            ["A.reserve", *UNDONE, *UNSCHEDULABLE],
            "unschedulable",
            ("Unschedulable", "0/1 nodes are available: 1 no room.", ""),
            id="Reserve rejects: Unreserve runs for every plugin, reached or not",
        ),
        pytest.param(
            {"B.reserve": error("broken")},
            ["A.reserve", "B.reserve", *UNDONE, *ERROR],
            "backoff",
            ("SchedulerError", 'running Reserve plugin "B": broken', ""),
            id="Reserve fails",
        ),
        pytest.param(
            {"B.reserve": PENDING},
            ["A.reserve", "B.reserve", *UNDONE, *UNSCHEDULABLE],
            "unschedulable",
            ("Unschedulable", "0/1 nodes are available: 1 not yet.", ""),
            id="Reserve is pending",
        ),
        pytest.param(
            {"permit": (NO, 0.0)},
            ["A.reserve", "B.reserve", "permit", *UNDONE, *UNSCHEDULABLE],
            "unschedulable",
            ("Unschedulable", "0/1 nodes are available: 1 no room.", ""),
            id="Permit rejects",
        ),
        pytest.param(
            {"permit": RuntimeError("oops")},
            ["A.reserve", "B.reserve", "permit", *UNDONE, *ERROR],
            "backoff",
            ("SchedulerError", 'running Permit plugin "Gate": oops', ""),
            id="Permit raises",
        ),
        pytest.param(
            {"pre_bind": SUCCESS, "pre_flight": error("broken")},
            [
                "A.reserve",
                "B.reserve",
                "pre_flight",
                *UNDONE,
                FREED,
                *ERROR,
                GIVEN_BACK,
                "slot free",
            ],
            "backoff",
            ("SchedulerError", 'running PreBindPreFlight "Pre": broken', ""),
            id="the PreBind pre-flight fails",
        ),
        pytest.param(
            {"pre_bind": error("broken")},
            [
                *["A.reserve", "B.reserve", "pre_flight", "patch - nominated='n1'", DONE],
                *["slot free", "pre_bind", *UNDONE, FREED, *ERROR, GIVEN_BACK, "slot free"],
            ],
            "backoff",
            ("SchedulerError", 'running PreBind plugin "Pre": broken', ""),
            id="PreBind fails",
        ),
        pytest.param(
            {"pre_bind": NO},
            [
                *["A.reserve", "B.reserve", "pre_flight", "patch - nominated='n1'", DONE],
                *[
                    "slot free",
                    "pre_bind",
                    *UNDONE,
                    *UNSCHEDULABLE,
                    f"{FREED} only other",
                    GIVEN_BACK,
                    "slot free",
                ],
            ],
            "backoff",
            ("Unschedulable", "no room", ""),
            id="PreBind rejects: backoff, and other pods are woken afterwards",
        ),
        pytest.param(
            {"bind": error("refused")},
            [*MEANWHILE, *UNDONE, FREED, *ERROR, GIVEN_BACK, "slot free"],
            "backoff",
            ("SchedulerError", 'running Bind plugin "Binder": refused', ""),
            id="Bind fails",
        ),
        pytest.param(
            {"bind": NO},
            [*MEANWHILE, *UNDONE, *UNSCHEDULABLE, f"{FREED} only other", GIVEN_BACK, "slot free"],
            "backoff",
            ("Unschedulable", "no room", ""),
            id="Bind rejects",
        ),
        pytest.param(
            {"bind": SKIP},
            [*MEANWHILE, *UNDONE, FREED, *ERROR, GIVEN_BACK, "slot free"],
            "backoff",
            ("SchedulerError", "", ""),
            id="every Bind plugin skips",
        ),
        pytest.param(
            {"bind": TransportError("no answer")},
            [*MEANWHILE, *UNDONE, FREED, *ERROR, GIVEN_BACK, "slot free"],
            "backoff",
            ("SchedulerError", 'running Bind plugin "Binder": no answer', ""),
            id="the answer to Bind is lost",
        ),
        pytest.param(
            {"bind": asyncio.CancelledError()},
            [*MEANWHILE, *UNDONE, FREED, *ERROR, GIVEN_BACK, "slot free"],
            "backoff",
            ("SchedulerError", "binding was cancelled by a plugin", ""),
            id="a task that a plugin awaits is cancelled",
        ),
    ],
)
async def test_a_failed_step_undoes_reports_and_requeues(
    answers: dict[str, Any], log: list[str], place: str, told: tuple[str, str, str]
) -> None:
    world = Binding(**answers)
    assert await world.bind() == log
    assert world.place("p") == place
    assert world.told == told
    assert world.cache.counts().pods == 0
    assert world.facts.bound == 0


@pytest.mark.parametrize(
    "reply", [pytest.param(NO, id="rejected"), pytest.param(error("refused"), id="failed")]
)
async def test_a_failed_binding_wakes_pods_for_the_node_that_has_room_again(reply: Status) -> None:
    world = Binding(bind=reply)
    told: list[tuple[str, str, str]] = []
    real = world.queue.move_all

    def move_all(event: ClusterEvent, old: Any, new: Any, **precheck: Any) -> None:
        told.append((event.label, old.name, old.spec.node_name))
        real(event, old, new, **precheck)

    setattr(world.queue, "move_all", move_all)  # noqa: B010 - mypy forbids the plain form
    await world.bind()
    assert told == [("AssignedPodDelete", "p", "n1"), ("ReservationDelete", "p", "")]


async def test_a_pod_the_cache_holds_already_is_retried_and_keeps_its_place() -> None:
    world = Binding()
    world.cache.add_pod(pod(uid="uid-p", node_name="n1"))
    world.carry_out()
    assert world.log == ["cache.assume_pod n1", *ERROR]
    assert world.told == (
        "SchedulerError",
        "pod uid-p(default/p) is in the cache, so can't be assumed",
        "",
    )
    assert world.slots.used == 0


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        pytest.param(
            SUCCESS,
            ["event Scheduled", "post", "slot free"],
            id="the watch confirms, then the server answers success",
        ),
        pytest.param(
            error("no answer"),
            [
                *["B.unreserve", "A.unreserve", "cache.forget_pod p", DONE],
                *["event FailedScheduling", GIVEN_BACK, "slot free"],
            ],
            id="the watch confirms, then the server answers an error: the pod stays bound",
        ),
    ],
)
async def test_the_watch_confirms_before_the_reply(reply: Status, rest: list[str]) -> None:
    def confirmed(world: Binding) -> Status:
        world.confirm()
        world.log.clear()
        return reply

    world = Binding(bind=confirmed)
    world.carry_out()
    await world.settle()
    assert world.log == rest
    assert world.place("p") == ""
    assert world.cache.get_pod("uid-p").spec.node_name == "n1"
    assert not world.cache.is_assumed("uid-p")
    world.validate()


async def test_a_pod_bound_by_another_scheduler_first_leaves_the_queue() -> None:
    def beaten(world: Binding) -> Status:
        world.confirm("n2")
        return error('pod p is already assigned to node "n2"')

    world = Binding(bind=beaten)
    await world.bind()
    assert world.place("p") == ""
    assert world.cache.get_pod("uid-p").spec.node_name == "n2"
    assert [condition for _, condition, _ in world.statuses] == []


async def test_a_pod_deleted_while_being_bound_is_dropped() -> None:
    def gone(world: Binding) -> Status:
        world.delete()
        return error('pods "p" not found')

    world = Binding(bind=gone)
    await world.bind()
    assert world.place("p") == ""
    assert world.cache.counts().pods == 0
    assert world.statuses == []
    assert len(world.core.cache.lifecycle) == 0


async def test_a_pod_deleted_while_its_binding_succeeds_leaves_nothing_behind() -> None:
    def bound_and_gone(world: Binding) -> Status:
        world.delete()  # a new list, on which the pod is missing, came before the reply
        return SUCCESS

    world = Binding(bind=bound_and_gone)
    await world.bind()
    assert world.cache.counts().pods == 0
    assert len(world.core.cache.lifecycle) == 0


async def test_a_pod_deleted_before_its_binding_task_starts_is_not_nominated() -> None:
    world = Binding(pre_bind=SUCCESS, bind=error("gone"))
    world.carry_out()
    world.delete()
    await world.settle()
    assert world.statuses == []
    assert world.place("p") == ""
    assert len(world.core.cache.lifecycle) == 0
    world.validate()


async def test_a_pod_that_begins_to_stop_while_being_bound_goes_back() -> None:
    def stopping(world: Binding) -> Status:
        world.pods.on_update(world.queued.pod, pod(version="2", deleted=True))
        return error("pod p is being deleted, cannot be assigned to a host")

    world = Binding(bind=stopping)
    await world.bind()
    assert world.place("p") == "backoff"
    assert world.cache.counts().pods == 0


async def test_ending_the_scheduler_ends_bindings_without_undoing_them() -> None:
    async def hangs() -> Status:
        await asyncio.Event().wait()
        return SUCCESS

    world = Binding(bind=lambda world: hangs())
    world.carry_out()
    await aio.sleep(0)
    assert world.slots.used == 1
    await world.tasks.cancel_all()
    assert world.log[-2:] == ["bind", "slot free"]
    assert world.cache.is_assumed("uid-p")
    assert world.slots.used == 0
