"""Which workloads are selected by labels and names, and which feature gates can be had."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage_lab.bench.scheduler_perf.gates import gates_of
from moorage_lab.bench.scheduler_perf.selecting import NameFilter, has_labels


@pytest.mark.parametrize(
    ("text", "labels", "passes"),
    [
        pytest.param("", [], True, id="no filter"),
        pytest.param("short", ["short", "other"], True, id="a label that is there"),
        pytest.param("short", ["other"], False, id="a label that is not there"),
        pytest.param("+short", ["short"], True, id="a label after a plus"),
        pytest.param("-short", ["other"], True, id="a label that must not be there"),
        pytest.param("-short", ["short"], False, id="a label that must not be there, and is"),
        pytest.param("a, -b", ["a", "b"], False, id="two labels of which one fails"),
        pytest.param("a,,b", ["a", "b"], True, id="an empty part"),
    ],
)
def test_labels_pass_a_filter(text: str, labels: list[str], passes: bool) -> None:
    assert has_labels(text, labels) is passes


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        pytest.param("", True, id="no filter"),
        pytest.param("Basic", True, id="a part of the case's name"),
        pytest.param("^Basic", False, id="the beginning of another name"),
        pytest.param("Basic/500", True, id="a part of both names"),
        pytest.param("Basic/^500$", False, id="the whole of another workload's name"),
        pytest.param("/Nodes", True, id="the workload alone"),
    ],
)
def test_names_are_selected_by_expressions(text: str, selects: bool) -> None:
    assert NameFilter(text).selects("SchedulingBasic", "500Nodes") is selects


def test_an_expression_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--filter a\(: not a regular expression"):
        NameFilter("a(")


def test_gates_are_switched_ignored_or_refused_by_name() -> None:
    found = gates_of(
        {
            "DRAPartitionableDevices": False,
            "DRAResourceClaimDeviceStatus": True,
            "DynamicResourceAllocation": True,
            "SchedulerAsyncAPICalls": True,
            "SchedulerAsyncPreemption": True,
            "SchedulerQueueingHints": False,
            "PaintedNodes": True,
        }
    )
    assert found.switched.switched == {
        "DRAPartitionableDevices": False,
        "DynamicResourceAllocation": True,
        "SchedulerAsyncPreemption": True,
    }
    assert found.unsupported == (
        "feature gate PaintedNodes=true",
        "feature gate SchedulerQueueingHints=false",
    )
    assert found.notes == (
        "SchedulerAsyncAPICalls=true has no effect: calls are always made beside the deciding",
    )


def test_a_gate_of_the_server_is_refused_where_the_server_has_the_other_value() -> None:
    found = gates_of({"DRAResourceClaimDeviceStatus": False})
    assert found.unsupported == ("feature gate DRAResourceClaimDeviceStatus=false",)


def test_a_gate_that_needs_another_is_refused_with_the_reason() -> None:
    found = gates_of({"GangScheduling": True})
    assert found.unsupported == (
        "featureGates.GangScheduling: Invalid value: true: needs GenericWorkload=true",
    )
