"""Groups that a single pod preempts under 1.37, and under 1.36 next to it.

Not covered: groups that a group preempts (`scheduler/tests/engine/groups/test_victims.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.gate_table import V1_36, V1_37
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import pod
from scheduler.tests.engine.groups.test_cycle import cluster, cycle_for

GATES = {
    V1_36: ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"),
    V1_37: ("GenericWorkload",),
}
WHOLE: dict[str, Any] = {"disruptionMode": "PodGroup"}


def victims(version: str, *, own: int = 0, alone: bool = False, **group: Any) -> list[str]:
    """Return the victims of a pod of priority 5 on the first of two nodes.

    A group has a pod on each, and another pod may run on the first.
    """
    snapshot = cluster([2, 1])
    member = {"schedulingGroup": {"podGroupName": "g"}, "cpu": "1"}
    placed = [
        PodInfo(pod(f"g{row}", priority=own, node_name=f"n{row}", **member)) for row in range(2)
    ]
    if alone:
        placed.append(PodInfo(pod("alone", priority=0, node_name="n0", cpu="1")))
    cycle = cycle_for(snapshot, placed, 1, gates=GATES[version], version=version, **group)
    for each in placed:
        snapshot.table.add_pod(each, each.pod.spec.node_name)
    here = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
    preemptor = PodInfo(pod("single", priority=5, cpu="1" if alone else "2", **here))
    return sorted(each.name for each in cycle.decide(preemptor).victims)


@pytest.mark.parametrize(
    ("group", "found"),
    [
        pytest.param(WHOLE, ["g0", "g1"], id="a group that goes as a whole"),
        pytest.param({}, ["g0"], id="a group whose pods go one by one"),
    ],
)
def test_a_pod_evicts_all_pods_of_a_group_that_goes_as_a_whole(group, found):
    assert victims(V1_37, **group) == found
    assert victims(V1_36, **group) == ["g0"]


@pytest.mark.parametrize("mode", [WHOLE, {}], ids=["as a whole", "one by one"])
def test_the_priority_of_the_group_counts(mode):
    assert victims(V1_37, priority=5, **mode) == []
    assert victims(V1_37, own=9, priority=4, **mode) != []
    assert victims(V1_36, priority=5, **mode) == ["g0"]


def test_a_pod_on_its_own_goes_before_a_group_of_the_same_priority():
    assert victims(V1_37, alone=True, **WHOLE) == ["alone"]
