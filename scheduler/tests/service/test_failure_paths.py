"""Each way an attempt can fail, brought about through the pump and compared with the table in docs.

One case for each row of ``tools/pages/failure_paths.py``: a profile of fake plugins on one node, a
pod, and what is done so that the attempt ends as the row says. Compared is everything the row
tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from moorage.api.changes import ClusterEvent
from moorage.base import aio
from moorage.base.errors import ExtenderError
from moorage.engine.cycle import Cycle
from moorage.engine.select_node import smallest_name
from moorage.framework.extender import in_order
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.service.attempts.extended_attempts import ExtendedAttempts
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.attempts.pump import Pump
from moorage.service.binding.binding_cycle import BindingCycles
from moorage.service.binding.waiting import CallOff
from moorage.service.core import AskingCycle
from moorage.service.intake.ingest import PodIngest
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.engine.builders import filterer, scorer
from scheduler.tests.engine.extenders.test_cycle import Scripted
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.service.build import World, node, pod
from tools.pages.failure_paths import PATHS, FailurePath

UID = "uid-p"
NO = unschedulable("no")
BROKEN = error("broken")
FAILS = ExtenderError("broken")


class Attempt(World):
    """A pod, a node and a pump over fake plugins; `run` tells how the attempt ended.

    Plugins A and Z reserve, so that the order in which they take back shows; X has every method
    it is given.
    """

    def __init__(
        self, *, nodes: int = 1, extenders: tuple[Scripted, ...] = (), x: Any = None, **methods: Any
    ) -> None:
        super().__init__()
        for i in range(nodes):
            self.cache.add_node(node(f"n{i + 1}"))
        self.undone: list[str] = []
        self.moved: list[str] = []
        plugins = [
            Fake(name, reserve=lambda *_: SUCCESS, unreserve=self._undo(name)) for name in "AZ"
        ]
        plugins.append(x if x is not None else Fake("X", **methods))
        if "bind" not in methods:
            plugins.append(Fake("B", bind=lambda *_: SUCCESS))
        self.profile = profile(*plugins, snapshot=self.core.snapshot)
        self.profile.extenders = in_order(extenders)
        kind = AskingCycle if extenders else Cycle
        cycle = kind(self.profile, self.core.snapshot, smallest_name)
        self.binding_cycles = BindingCycles(
            self.core,
            failures=self.handler(),
            tasks=self.tasks,
            recorder=cast("Any", self),
            writes=cast("Any", self),
            facts=self.facts,
            slots=self.slots,
        )
        handler, cycles = self.handler(), self.binding_cycles
        outcomes = Outcomes(binding_cycles=cycles, failures=handler, evictor=None, facts=self.facts)
        extended = None
        if isinstance(cycle, AskingCycle):
            extended = ExtendedAttempts(
                {"default-scheduler": cycle}, skipping=self.skipping(), outcomes=outcomes
            )
        self.pump = Pump(
            cycles={"default-scheduler": cycle},
            queue=self.queue,
            wake=self.wake,
            slots=self.slots,
            waiting=self.core.waiting,
            skipping=self.skipping(),
            groups=None,
            extended=extended,
            outcomes=outcomes,
            facts=self.facts,
            clock=self.clock,
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
        self._note_moves()

    def _undo(self, name: str) -> Callable[..., None]:
        return lambda *_: self.undone.append(name)

    def _note_moves(self) -> None:
        real = self.queue.move_all

        def move_all(event: ClusterEvent, old: Any, new: Any, **more: Any) -> None:
            if old is not None and old.uid == UID:
                assert (event.label, old.spec.node_name) == ("AssignedPodDelete", "n1")
                told = "event FailedScheduling" in self.log
                self.moved.append("after" if told else "before")
            real(event, old, new, **more)

        setattr(self.queue, "move_all", move_all)  # noqa: B010 - mypy forbids the plain form

    def run(self, meanwhile: Callable[[Attempt], object] | None = None) -> None:
        """Try the pod; `meanwhile` happens once its binding task has begun."""

        async def main() -> None:
            queued = self.popped(pod())
            self.queue.nominator.withdraw_nomination(queued.pod)
            asking = self.pump.attempt(queued)
            if asking is not None:
                await asking
            for _ in range(4):  # the binding task reaches whatever it waits for
                await aio.sleep(0)
            if meanwhile is not None:
                meanwhile(self)
            while len(self.tasks):
                await aio.sleep(1)

        run_virtual(main(), self.clock)

    def outcome(self, path: FailurePath) -> FailurePath:
        """What the attempt came to, in the form of its row."""
        reported = [condition for _, condition, _ in self.statuses if condition is not None]
        notes = [note for note in self.notes if note.reason == "FailedScheduling"]
        if reported:
            assert [note.note for note in notes] == [reported[0].message]
            assert self.statuses[-1][2] in ("", None)
        assert self.undone in ([], ["Z", "A"])
        pending = self.queue.pending()
        ((counted, _profile),) = self.facts.attempts.results
        assert self.facts.attempts.results.total() == 1
        places = {
            place: getattr(pending, place) for place in ("active", "backoff", "unschedulable")
        }
        held = [
            (place, each) for place, pods in places.items() for each in pods if each.pod.uid == UID
        ]
        return FailurePath(
            key=path.key,
            where=path.where,
            message=notes[0].note if notes else "",
            reason=cast("Any", reported[0].reason if reported else ""),
            place=cast("Any", held[0][0] if held else ""),
            rejectors=tuple(sorted(held[0][1].unschedulable_plugins)) if held else (),
            taken_back=bool(self.undone),
            others=cast("Any", self.moved[0] if self.moved else ""),
            counted=cast("Any", counted),
        )


def says(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def waiting() -> Attempt:
    return Attempt(permit=says((Status(Code.WAIT), 30.0)))


def binding(meanwhile: Callable[[Attempt], object]) -> Callable[[], tuple[Attempt, None]]:
    """An attempt whose Bind fails after something happened."""

    def make() -> tuple[Attempt, None]:
        def bind(*_: Any) -> Status:
            meanwhile(world)
            return BROKEN

        world = Attempt(bind=bind)
        return world, None

    return make


async def _hang(*_: Any) -> Status:
    await aio.sleep(3600)
    return SUCCESS


def _recreated(world: Attempt) -> None:
    world.pods.on_delete(pod(), missed=False)
    world.pods.on_add(pod(uid="another"))


Case = Callable[[], Any]
CASES: dict[str, Case] = {
    "no nodes": lambda: Attempt(nodes=0),
    "pre_filter rejects": lambda: Attempt(pre_filter=says((None, unresolvable("no")))),
    "pre_filter fails": lambda: Attempt(pre_filter=says((None, BROKEN))),
    "filter rejects": lambda: Attempt(x=filterer("X", {"n1": NO})),
    "filter fails": lambda: Attempt(x=filterer("X", {"n1": BROKEN})),
    "post_filter fails": lambda: Attempt(
        x=filterer("X", {"n1": NO}, post_filter=says((None, BROKEN)))
    ),
    "extender rejects": lambda: Attempt(extenders=(Scripted("e", passing=((), {"n1": "no"}, {})),)),
    "extender fails": lambda: Attempt(extenders=(Scripted("e", passing=FAILS),)),
    "pre_score fails": lambda: Attempt(nodes=2, x=scorer("X", {}, pre_score=says(BROKEN))),
    "score fails": lambda: Attempt(nodes=2, x=scorer("X", {"n1": RuntimeError("broken")})),
    "assume fails": Attempt,
    "reserve rejects": lambda: Attempt(reserve=says(NO), unreserve=says(None)),
    "reserve fails": lambda: Attempt(reserve=says(BROKEN), unreserve=says(None)),
    "permit rejects": lambda: Attempt(permit=says((NO, 0.0))),
    "permit fails": lambda: Attempt(permit=says((BROKEN, 0.0))),
    "pre_flight fails": lambda: Attempt(pre_bind_pre_flight=says(BROKEN), pre_bind=says(SUCCESS)),
    "wait rejected": lambda: (waiting(), lambda w: w.core.waiting.reject(UID, "X", "no")),
    "wait timed out": waiting,
    "wait preempted": lambda: (waiting(), _called_off),
    "pre_bind rejects": lambda: Attempt(pre_bind=says(NO)),
    "pre_bind fails": lambda: Attempt(pre_bind=says(BROKEN)),
    "pre_bind called off": lambda: (Attempt(pre_bind=_hang), _called_off),
    "bind rejects": lambda: Attempt(bind=says(NO)),
    "bind fails": lambda: Attempt(bind=says(BROKEN)),
    "nobody binds": lambda: Attempt(bind=says(Status(Code.SKIP))),
    "extender does not bind": lambda: Attempt(extenders=(Scripted("e", bound=FAILS),)),
    "deleted while tried": binding(lambda w: w.pods.on_delete(pod(), missed=False)),
    "another of that name": binding(_recreated),
    "bound by another": binding(
        lambda w: w.pods.on_update(pod(), pod(version="2", node_name="n2"))
    ),
}


def _called_off(world: Attempt) -> None:
    plugins = {"default-scheduler": "DefaultPreemption"}
    call_off = CallOff(world.core.waiting, world.core.pre_binding, plugins)
    assert call_off(UID, "default-scheduler")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.key) for path in PATHS])
def test_an_attempt_fails_as_the_reference_says(path: FailurePath) -> None:
    made = CASES[path.key]()
    world, meanwhile = made if isinstance(made, tuple) else (made, None)
    if path.key == "assume fails":
        _assumed_in_between(world)
    world.run(meanwhile)
    assert world.outcome(path) == path
    world.queue.validate()
    world.cache.validate()
    assert world.slots.used == 0
    assert len(world.core.waiting) == 0
    expected = 1 if path.key in ("assume fails", "bound by another") else 0
    assert world.cache.counts().pods == expected


def _assumed_in_between(world: Attempt) -> None:
    """Let the watch show the pod on a node after it was skipped over, before it is assumed."""
    real = world.cache.assume_pod

    def assume_pod(one: Any, node_name: str) -> None:
        world.cache.add_pod(pod(node_name="n1"))
        real(one, node_name)

    setattr(world.cache, "assume_pod", assume_pod)  # noqa: B010 - mypy forbids the plain form


def test_every_case_has_a_row_and_every_row_a_case() -> None:
    assert list(CASES) == [path.key for path in PATHS]
