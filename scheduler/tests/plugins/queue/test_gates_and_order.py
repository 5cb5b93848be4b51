"""SchedulingGates, PrioritySort and QOSSort: which pods enter the queue, and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.pod import Pod
from moorage.framework.status import SUCCESS, Code, Status
from scheduler.tests.plugins.builders import make, pod


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


BOTH = {"cpu": "1", "memory": "1Gi"}


def of_class(name: str, **status: str) -> Pod:
    resources = {
        "Guaranteed": {"requests": BOTH, "limits": BOTH},
        "Burstable": {"requests": {"cpu": "1"}},
        "BestEffort": {},
    }
    return pod(name, container={"resources": resources[name]}, status=status)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((1, 9, "BestEffort"), (0, 1, "Guaranteed"), id="priority comes before class"),
        pytest.param((0, 9, "Guaranteed"), (0, 1, "Burstable"), id="Guaranteed before Burstable"),
        pytest.param((0, 9, "Burstable"), (0, 1, "BestEffort"), id="Burstable before BestEffort"),
        pytest.param((0, 9, "Guaranteed"), (0, 1, "BestEffort"), id="Guaranteed before BestEffort"),
        pytest.param(
            (0, 1, "Burstable"),
            (0, 2, "Burstable"),
            id="at equal priority and class the longest waiting pod first",
        ),
        pytest.param(
            (-1, 1, "Burstable"),
            (-2, 1, "Burstable"),
            id="negative priorities are compared as numbers",
        ),
    ],
)
def test_order_by_quality_of_service(first, second):
    plugin, _ = make("QOSSort")
    keys = [plugin.sort_key(priority, t, of_class(name)) for priority, t, name in (first, second)]
    assert keys[0] < keys[1]


def test_the_qos_class_in_the_status_takes_precedence():
    plugin, _ = make("QOSSort")
    told = of_class("BestEffort", qosClass="Guaranteed")
    assert plugin.sort_key(0, 1, told) == plugin.sort_key(0, 1, of_class("Guaranteed"))


def before_upstream(a: tuple[int, int, str], b: tuple[int, int, str]) -> bool:
    """scheduler-plugins pkg/qos, which is true both ways for equal pods."""
    if a[0] != b[0]:
        return a[0] > b[0]
    if a[2] == "Guaranteed":
        return True
    return b[2] == "BestEffort" or (a[2] == "Burstable" and b[2] != "Guaranteed")


CLASSES = st.sampled_from(["Guaranteed", "Burstable", "BestEffort"])
WAITING = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 5), CLASSES), min_size=2, max_size=12
)


@given(WAITING)
def test_the_order_is_one_that_upstream_allows(waiting):
    plugin, _ = make("QOSSort")
    ordered = sorted(waiting, key=lambda each: plugin.sort_key(*each[:2], of_class(each[2])))
    for index, one in enumerate(ordered):
        assert all(before_upstream(one, later) for later in ordered[index + 1 :])
