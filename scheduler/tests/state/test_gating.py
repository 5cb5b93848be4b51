"""PreEnqueue: when it is asked, what a rejection leaves behind, what opens a gate."""

from collections.abc import Sequence

import pytest

from moorage.api.pod import Pod
from moorage.state.contracts import GateResult, PreEnqueueFn, QueueSettings, RegisteredHint
from moorage.state.hints import HintIndex
from moorage.state.pre_enqueue import PreEnqueueGates
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.state.build import NODE_ADD, POD_DELETE, PROFILE, PVC_ADD, World, hint, pod

CLOSED = ("Unschedulable", ("closed",))


class Plugins:
    """PreEnqueue plugins with switches."""

    def __init__(self, *names: str, closed: Sequence[str] = ()) -> None:
        self.closed: dict[str, GateResult] = dict.fromkeys(closed, CLOSED)
        self.asked: list[str] = []
        self.map = {PROFILE: [(name, self._plugin(name)) for name in names]}

    def _plugin(self, name: str) -> PreEnqueueFn:
        def ask(waiting: Pod) -> GateResult | None:
            self.asked.append(name)
            return self.closed.get(name)

        return ask

    def run(self, queued: QueuedPod, hints: Sequence[RegisteredHint] = ()) -> list[str]:
        self.asked.clear()
        PreEnqueueGates(self.map, HintIndex({PROFILE: list(hints)})).run(queued)
        return self.asked


def test_plugins_are_asked_in_order_until_one_refuses():
    plugins = Plugins("A", "B", "C", closed=["B"])
    queued = QueuedPod(pod(), 0)
    assert plugins.run(queued, [hint("B", NODE_ADD), hint("C", PVC_ADD)]) == ["A", "B"]
    assert queued.gating_plugin == "B"
    assert queued.gating_result == CLOSED
    assert queued.gating_events == (NODE_ADD,)
    assert queued.unschedulable_plugins == {"B"}


def test_the_gating_plugin_is_asked_first_and_may_hand_over():
    plugins = Plugins("A", "B", "C", closed=["B"])
    queued = QueuedPod(pod(), 0)
    plugins.run(queued)
    assert plugins.run(queued) == ["B"]
    plugins.closed = {"C": CLOSED}
    assert plugins.run(queued) == ["B", "A", "C"]
    assert queued.gating_plugin == "C"
    assert queued.unschedulable_plugins == {"B", "C"}
    plugins.closed = {}
    assert plugins.run(queued) == ["C", "A", "B"]
    assert (queued.gated, queued.gating_result, queued.gating_events) == (False, None, ())
    assert queued.unschedulable_plugins == {"B", "C"}


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        pytest.param(("Error", ("no",)), "Unexpected error", id="a plugin that answers Error"),
        pytest.param(ZeroDivisionError("no"), "broke", id="a plugin that raises"),
        pytest.param(("Pending", ("no",)), "", id="a plugin that answers Pending"),
    ],
)
def test_anything_but_success_gates(answer, logged, caplog):
    def ask(waiting):
        if isinstance(answer, Exception):
            raise answer
        return answer

    queued = QueuedPod(pod(), 0)
    PreEnqueueGates({PROFILE: [("A", ask)]}, HintIndex({})).run(queued)
    assert queued.gating_plugin == "A"
    assert queued.unschedulable_plugins == {"A"}
    assert queued.pending_plugins == set()
    assert logged in caplog.text
    assert bool(caplog.text) == bool(logged)


def test_profiles_have_their_own_gates():
    queued = QueuedPod(pod(profile="other"), 0)
    assert Plugins("A", closed=["A"]).run(queued) == []
    assert not queued.gated


class TestWhenPreEnqueueRuns:
    def test_plugins_are_asked_before_a_pod_becomes_active(self):
        world = World()
        world.add(pod())
        assert world.gate_calls == ["a"]

    def test_plugins_are_asked_before_backoff_and_not_again_after_it(self):
        world = World()
        world.add(pod())
        world.fail(world.pop())
        assert world.gate_calls == ["a", "a"]
        world.at(2)
        world.queue.flush_backoff()
        assert world.places() == {"a": "active"}
        assert world.gate_calls == ["a", "a"]

    def test_plugins_are_asked_after_backoff_if_pods_are_not_popped_early(self):
        world = World(settings=QueueSettings(pop_from_backoff=False))
        world.add(pod())
        world.fail(world.pop())
        assert world.gate_calls == ["a"]
        world.at(2)
        world.close_gate("a")
        world.queue.flush_backoff()
        assert world.places() == {"a": "gated"}
        assert world.gate_calls == ["a", "a"]

    def test_plugins_are_not_asked_about_a_pod_that_keeps_waiting(self):
        world = World()
        world.waiting()
        world.queue.move_all(PVC_ADD, None, None)
        assert world.gate_calls == ["a"]

    def test_plugins_are_not_asked_after_another_plugins_event(self):
        world = World()
        world.close_gate("a")
        world.add(pod())
        world.queue.move_all(NODE_ADD, None, None)
        assert world.gate_calls == ["a"]
        world.queue.move_all(POD_DELETE, None, None)
        assert world.gate_calls == ["a", "a"]


def test_a_failed_pod_may_be_gated_on_return():
    world = World()
    world.add(pod())
    queued = world.pop()
    world.close_gate("a")
    world.fail(queued)
    assert world.places() == {"a": "gated"}
    assert queued.rejectors == {"Gate"}
    assert world.seen.now() == {"gated": 1}


def test_gated_time_is_not_part_of_the_first_attempt():
    world = World()
    world.close_gate("a")
    world.add(pod())
    world.at(100)
    world.gates.clear()
    world.queue.move_all(POD_DELETE, None, None)
    queued = world.pop()
    assert queued.initial_attempt_ns is not None
    assert world.seconds(queued.initial_attempt_ns) == 100
    assert world.seconds(queued.timestamp_ns) == 0


def test_the_gate_is_shown():
    world = World()
    world.close_gate("a")
    world.add(pod())
    (gated,) = world.queue.pending().gated
    assert (gated.gating_plugin, gated.gating_reasons) == ("Gate", ("closed",))


def test_a_gated_second_copy_leaves_the_queued_pod_alone():
    world = World()
    world.add(pod())
    world.close_gate("a")
    world.add(pod(labels={"x": "y"}))
    assert world.places() == {"a": "active"}
    assert world.pop().pod == pod()
    assert not +world.seen.rejected
