"""SchedulingGates and PrioritySort: who enters the queue, and who leaves it first."""

from __future__ import annotations

import pytest

from moorage.framework.status import SUCCESS, Code, Status
from tests.plugins.builders import make, pod


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param([], SUCCESS, id="a pod without gates enters"),
        pytest.param(
            ["one"],
            Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("waiting for scheduling gates: [one]",)),
            id="one gate is named",
        ),
        pytest.param(
            ["z", "a"],
            Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("waiting for scheduling gates: [z a]",)),
            id="gates are named in the order of the spec",
        ),
    ],
)
def test_gates(gates, expected):
    plugin, _ = make("SchedulingGates")
    assert plugin.pre_enqueue(pod(schedulingGates=[{"name": gate} for gate in gates])) == expected


def test_higher_priority_first_then_earlier_time():
    plugin, _ = make("PrioritySort")
    waiting = [("late", 0, 30), ("early", 0, 10), ("high", 5, 99), ("low", -7, 1)]
    keyed = sorted((plugin.sort_key(priority, t, pod(name)), name) for name, priority, t in waiting)
    assert [name for _, name in keyed] == ["high", "early", "late", "low"]
