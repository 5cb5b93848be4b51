"""What plugins may answer with besides statuses: told to the queue, the waiting pods, the recorder.

The waiting pods themselves are in `test_waiting`.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.effects import NoEffects, WaitingPod
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.service.attempts.plugin_effects import ApiEffects, LivePluginEffects
from moorage.service.binding.waiting import WaitingPods
from moorage.state.activations import Activations
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.build import World, pod
from scheduler.tests.service.test_binding_cycle import Binding
from scheduler.tests.service.test_waiting import WAIT


def failed(world: World, *names: str) -> None:
    """Bring pods into backoff: each was tried once and failed with an error."""
    for name in names:
        queued = world.popped(pod(name))
        queued.rejected_by(())
        world.queue.add_unschedulable_if_not_present(queued)
        assert world.place(name) == "backoff"


def test_activated_pods_are_tried_at_once_and_unknown_ones_ignored() -> None:
    world = World()
    for one in (pod("a"), pod("b")):
        world.store.put_pod(one)
    queued = [world.popped(pod(name)) for name in ("a", "b")]
    for each in queued:
        each.rejected_by(["NodeAffinity"])
        world.queue.add_unschedulable_if_not_present(each)
    world.core.effects.activate([pod("a"), pod("unknown")])
    assert world.wake.is_set()
    taken = [world.queue.pop(), world.queue.pop()]
    assert [each.pod.name for each in taken if each is not None] == ["a"]
    assert world.place("b") == "unschedulable"
    world.validate()


def test_an_event_is_recorded_in_the_name_of_the_pods_profile() -> None:
    world = World()
    api = ApiEffects(record=world.record_event, spawn=world.tasks.spawn, ready=lambda: True)
    effects = LivePluginEffects(WaitingPods(), Activations(), api)
    effects.emit(pod("a"), kind="Warning", reason="Short", action="Counting", note="2 of 3 \udcff")
    (note,) = world.notes
    assert (note.regarding.name, note.regarding.uid, note.controller) == (
        *("a", "uid-a"),
        "default-scheduler",
    )
    assert (note.type, note.reason, note.action, note.note) == (
        *("Warning", "Short", "Counting"),
        "2 of 3 ?",
    )


@pytest.mark.parametrize(
    "ready", [pytest.param(False, id="before"), pytest.param(True, id="after")]
)
def test_plugins_write_to_the_api_only_once_scheduling_has_started(ready: bool) -> None:
    world = World()
    done: list[str] = []

    async def write() -> None:
        done.append("written")

    async def main() -> None:
        api = ApiEffects(record=world.record_event, spawn=world.tasks.spawn, ready=lambda: ready)
        effects = LivePluginEffects(WaitingPods(), Activations(), api)
        effects.emit(pod("a"), kind="Normal", reason="R", action="A", note="n")
        effects.in_background("write", write)
        await world.settle()

    run_virtual(main(), world.clock)
    assert (world.log, done) == ((["event R"], ["written"]) if ready else ([], []))


def test_no_effects_ignores_every_call_of_a_plugin() -> None:
    nothing = NoEffects()
    nothing.activate([pod("a")])
    nothing.emit(pod("a"), kind="Normal", reason="R", action="A", note="n")
    assert (nothing.waiting_pods(), nothing.waiting_pod("uid-a")) == ((), None)
    assert (nothing.allow("uid-a", "P"), nothing.reject("uid-a", "P", "no")) == (False, False)


def test_a_plugin_sees_and_decides_through_its_handle() -> None:
    world = Binding(permit=(WAIT, 30.0))
    effects = world.core.profiles["default-scheduler"].handle.effects

    async def main() -> None:
        world.carry_out()
        held = WaitingPod(world.queued.pod, "n1", ("Gate",))
        assert (tuple(effects.waiting_pods()), effects.waiting_pod("uid-p")) == ((held,), held)
        assert effects.allow("uid-p", "Gate")
        assert (tuple(effects.waiting_pods()), effects.waiting_pod("uid-p")) == ((), None)
        assert not effects.reject("uid-p", "Gate", "too late")
        await world.settle()

    run_virtual(main(), world.clock)
    assert world.facts.bound == 1


# --- pods to activate ---------------------------------------------------------------------------


class Activating(Binding):
    """A binding whose plugins ask at some point that a pod in backoff be tried again."""

    def __init__(self, at: str, **answers: Any) -> None:
        super().__init__(**answers)
        self._at = at
        failed(self, "sibling")

    def _says(self, plugin: str, point: str, otherwise: Any = SUCCESS) -> Any:
        real = super()._says(plugin, point, otherwise)

        def method(state: Any, *args: Any) -> Any:
            answer = real(state, *args)
            if point == self._at:
                state.copy().pods_to_activate["uid-sibling"] = pod("sibling")
            return answer

        return method


@pytest.mark.parametrize(
    ("at", "answers", "then", "at_last"),
    [
        pytest.param(
            "reserve", {}, "active", "active", id="when the scheduling cycle ended well: at once"
        ),
        pytest.param(
            "permit",
            {"permit": (Status(Code.WAIT), 30.0)},
            "active",
            "active",
            id="when the pod waits at Permit: at once",
        ),
        pytest.param(
            "reserve",
            {"B.reserve": unschedulable("no")},
            "backoff",
            "backoff",
            id="not activated when Reserve rejected the pod",
        ),
        pytest.param(
            "permit",
            {"permit": (error("broken"), 0.0)},
            "backoff",
            "backoff",
            id="not activated when Permit failed",
        ),
        pytest.param("bind", {}, "backoff", "active", id="pods added later: after the binding"),
        pytest.param(
            "post", {}, "backoff", "active", id="pods that PostBind adds: after the binding"
        ),
        pytest.param(
            "bind",
            {"bind": error("refused")},
            "backoff",
            "backoff",
            id="not activated when the binding failed",
        ),
    ],
)
def test_pods_to_activate_are_moved_by_the_outcome_of_the_attempt(
    at: str, answers: dict[str, Any], then: str, at_last: str
) -> None:
    world = Activating(at, **answers)

    async def main() -> None:
        world.carry_out()
        assert world.place("sibling") == then
        world.core.waiting.allow("uid-p", "Gate")
        await world.settle()

    run_virtual(main(), world.clock)
    assert world.place("sibling") == at_last
    world.validate()


def test_withheld_effects_are_not_carried_out() -> None:
    """Questions are asked between attempts; the waiting pods can still be looked at."""
    world = World()
    api = ApiEffects(record=world.record_event, spawn=world.tasks.spawn, ready=lambda: True)
    effects = LivePluginEffects(WaitingPods(), Activations(), api)

    async def write() -> None:
        raise AssertionError("nothing is written")

    with effects.withheld(), effects.withheld():
        effects.emit(pod("a"), kind="Normal", reason="R", action="A", note="n")
        effects.in_background("write", write)
        effects.activate([pod("a")])
        assert not effects.allow("uid-a", "P")
        assert not effects.reject("uid-a", "P", "no")
        assert list(effects.waiting_pods()) == []
    assert world.notes == []
    effects.emit(pod("a"), kind="Normal", reason="R", action="A", note="n")
    assert len(world.notes) == 1
