"""GangScheduling's Permit: whom it lets go and whom it has tried again, by phase of the attempt.

Its texts and PreEnqueue are held by the recordings.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod_group import PodGroup
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.framework.cycle_state import CycleState
from moorage.framework.effects import NoEffects
from moorage.framework.group import CARRIED_OUT, GROUP_PHASE, ON_TRIAL
from moorage.framework.handle import Handle
from moorage.framework.status import Code, ReasonTable
from moorage.plugins.gangs.gang_scheduling import GangScheduling
from moorage.plugins.preemption.group import UnitBudgets
from moorage.plugins.preemption.victims import Unit
from moorage.snapshot.group_sources import ApiGroups
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import pod


class Effects(NoEffects):
    def __init__(self) -> None:
        self.allowed: list[str] = []

    def allow(self, uid: str, plugin: str) -> bool:
        self.allowed.append(f"{uid} by {plugin}")
        return True


@pytest.mark.parametrize(
    ("phase", "placed", "code", "allowed", "activated"),
    [
        pytest.param(None, 1, Code.WAIT, [], ["p1", "p2"], id="too few: the others are tried"),
        pytest.param(ON_TRIAL, 1, Code.WAIT, [], [], id="too few, on trial"),
        pytest.param(CARRIED_OUT, 1, Code.WAIT, [], [], id="too few yet, they come anyway"),
        pytest.param(None, 2, Code.SUCCESS, ["p0", "p1"], [], id="enough: all may go"),
        pytest.param(
            ON_TRIAL,
            2,
            Code.SUCCESS,
            [],
            [],
            id="enough members in a trial: no waiting member is allowed",
        ),
        pytest.param(CARRIED_OUT, 2, Code.SUCCESS, ["p0", "p1"], [], id="enough, for real"),
        pytest.param(CARRIED_OUT, 3, Code.SUCCESS, [], [], id="more than enough: they went"),
    ],
)
def test_permit(phase, placed, code, allowed, activated):
    snapshot, effects, state = Snapshot(), Effects(), CycleState()
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    metadata = {"namespace": "default", "name": "g"}
    snapshot.listers.pod_groups.put(from_dict(PodGroup, {"metadata": metadata, "spec": spec}))
    snapshot.groups = PodGroups(ApiGroups(snapshot.listers.pod_groups))
    pods = [pod(f"p{index}", schedulingGroup={"podGroupName": "g"}) for index in range(3)]
    for each in pods:
        snapshot.groups.put_pod(each)
    for each in pods[:placed]:
        snapshot.groups.assume(each.uid)
    if phase is not None:
        state.write(GROUP_PHASE, phase)
    handle = Handle(
        profile_name="mine",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        client=None,
        effects=effects,
    )
    plugin = GangScheduling(None, handle)
    status, seconds = plugin.permit(state, PodInfo(pods[placed - 1]), "n")
    assert status.code is code
    assert seconds == (300.0 if code is Code.WAIT else 0.0)
    assert effects.allowed == [f"uid-default-{name} by GangScheduling" for name in allowed]
    assert [each.name for each in state.pods_to_activate.values()] == activated


class Told(UnitBudgets):
    """Budgets that are told which pods they protect: by name, (index of the budget, allowed)."""

    def __init__(self, protects: dict[str, Sequence[tuple[int, int]]]) -> None:
        super().__init__(Lister())
        self.protects = protects

    def _matching(self, pod: PodInfo):
        class Budget:
            def __init__(self, index: int, allowed: int) -> None:
                self.index, self.allowed = index, allowed

        return [Budget(*each) for each in self.protects.get(pod.name, ())]


def unit(*names: str) -> Unit:
    return Unit(tuple(PodInfo(pod(name)) for name in names))


@pytest.mark.parametrize(
    ("units", "protects", "violating"),
    [
        pytest.param([("a",), ("b",)], {}, [], id="no pod is protected"),
        pytest.param(
            [("a",), ("b",)],
            {"a": [(0, 1)], "b": [(0, 1)]},
            [("b",)],
            id="the first spends what there is",
        ),
        pytest.param(
            [("a", "b"), ("c",)],
            {"a": [(0, 0)], "b": [(1, 1)], "c": [(1, 1)]},
            [("a", "b")],
            id="a unit stops at its first broken pod: the second budget is left to others",
        ),
        pytest.param(
            [("a",), ("b",)],
            {"a": [(0, 0), (1, 1)], "b": [(1, 1)]},
            [("a",)],
            id="a pod stops at its first broken budget",
        ),
    ],
)
def test_units_that_violate_a_budget(units, protects, violating):
    made = [unit(*names) for names in units]
    broken, others = Told(protects).split_units(made)
    assert [tuple(each.name for each in one.pods) for one in broken] == violating
    assert len(broken) + len(others) == len(units)


def test_a_new_pod_queues_its_group_once_the_group_is_complete():
    snapshot = Snapshot()
    snapshot.groups = PodGroups(ApiGroups(snapshot.listers.pod_groups))
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    pods = {
        name: pod(name, schedulingGroup={"podGroupName": name[:-1]})
        for name in ("whole0", "whole1", "part0", "lost0", "lost1")
    }
    for name in ("whole", "part"):
        metadata = {"namespace": "default", "name": name}
        snapshot.listers.pod_groups.put(from_dict(PodGroup, {"metadata": metadata, "spec": spec}))
    for each in pods.values():
        snapshot.groups.put_pod(each)
    handle = Handle(
        profile_name="mine",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )
    plugin = GangScheduling(None, handle)
    (came, _) = plugin.events_to_register()
    assert came.hint is not None
    assert came.concerns is not None
    for new in (*pods.values(), pod("alone")):
        named = came.concerns(None, new)
        assert isinstance(named, Sequence)
        queued = [each for each in pods.values() if came.hint(each, None, new)]
        left_out = [each for each in queued if each not in named]
        assert all(each in queued for each in named)
        assert not any(plugin.pre_enqueue(each).ok for each in left_out)
    named = came.concerns(None, pods["whole1"])
    assert isinstance(named, Sequence)
    assert [each.name for each in named] == ["whole0", "whole1"]
    assert came.concerns(None, None) is None
