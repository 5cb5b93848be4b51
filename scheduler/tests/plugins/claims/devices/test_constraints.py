"""Taints of devices and constraints of claims: the devices that they exclude from requests."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import ResourceSlice
from moorage.plugins.claims.devices.contract import Features
from scheduler.tests.plugins.claims.devices.builders import (
    MIXED,
    allocator,
    claim,
    device,
    exactly,
    found,
    slice_,
)


def test_all_matching_devices_must_fulfil_a_constraint():
    constraints = [{"matchAttribute": "gpu.example.com/model"}]
    wanted = claim(exactly(mode="All"), constraints=constraints)
    assert found(allocator([MIXED]), wanted) == (
        "claim ns/c, request r: cannot add device gpu.example.com/p1/d1 "
        "because a claim constraint would not be satisfied"
    )


def test_consumed_capacity_is_checked_after_constraints_in_a_request_for_all_devices():
    shared = device("a", attributes={"x": 1}, capacity={"m": "1Gi"}, allowMultipleAllocations=True)
    distinct = [{"distinctAttribute": "gpu.example.com/x"}]
    wanted = claim(exactly("r0"), exactly("r1", mode="All"), constraints=distinct)
    assert found(allocator([slice_("s1", shared)]), wanted) == (
        "claim ns/c, request r1: cannot add device gpu.example.com/p1/a "
        "because a claim constraint would not be satisfied"
    )


def _tainted(effect: str = "NoSchedule") -> ResourceSlice:
    return slice_("s1", device("a", taints=[{"key": "k", "value": "v", "effect": effect}]))


@pytest.mark.parametrize(
    ("effect", "tolerations", "expected"),
    [
        pytest.param("NoSchedule", [], None, id="a NoSchedule taint excludes the device"),
        pytest.param("NoExecute", [], None, id="a NoExecute taint excludes the device"),
        pytest.param("None", [], [["r=a"]], id="a None taint does not exclude the device"),
        pytest.param(
            "Later", [], [["r=a"]], id="a taint of an unknown effect does not exclude the device"
        ),
        pytest.param(
            "NoSchedule", [{"operator": "Exists"}], [["r=a"]], id="Exists tolerates every value"
        ),
        pytest.param(
            "NoSchedule",
            [{"key": "k", "value": "v"}],
            [["r=a"]],
            id="a toleration without operator is Equal",
        ),
        pytest.param(
            "NoSchedule",
            [{"key": "k", "value": "w"}],
            None,
            id="a toleration of another value does not help",
        ),
        pytest.param(
            "NoSchedule",
            [{"key": "j", "operator": "Exists"}],
            None,
            id="a toleration of another key does not help",
        ),
        pytest.param(
            "NoExecute",
            [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            None,
            id="a toleration of another effect does not help",
        ),
        pytest.param(
            "NoSchedule",
            [{"key": "k", "operator": "Gt"}],
            None,
            id="a toleration with an unknown operator does not help",
        ),
    ],
)
def test_taints_of_devices(effect, tolerations, expected):
    wanted = claim(exactly(tolerations=tolerations))
    assert found(allocator([_tainted(effect)]), wanted) == expected


def test_taints_count_only_while_their_feature_is_on():
    off = allocator([_tainted()], features=Features(device_taints=False))
    assert found(off, claim(exactly())) == [["r=a"]]


def _with(**attributes: dict[str, Any]) -> ResourceSlice:
    return slice_("s1", *(device(name, attributes=values) for name, values in attributes.items()))


@pytest.mark.parametrize(
    ("slice_of", "constraint", "expected"),
    [
        pytest.param(
            _with(a={"x": 1}, b={"x": 2}, c={"x": 1}),
            {"matchAttribute": "gpu.example.com/x"},
            [["r0=a", "r1=c"]],
            id="matchAttribute: all devices have one value",
        ),
        pytest.param(
            _with(a={"x": 1}, b={"x": "1"}, c={"x": 1}),
            {"matchAttribute": "gpu.example.com/x"},
            [["r0=a", "r1=c"]],
            id="matchAttribute: values of two types differ",
        ),
        pytest.param(
            _with(a={}, b={"x": 2}, c={"x": 2}),
            {"matchAttribute": "gpu.example.com/x"},
            [["r0=b", "r1=c"]],
            id="matchAttribute: a device without the attribute is excluded",
        ),
        pytest.param(
            _with(a={"other.org/x": 1}, b={"x": 1}, c={"other.org/x": 1}),
            {"matchAttribute": "other.org/x"},
            [["r0=a", "r1=c"]],
            id="an attribute is looked up in its domain",
        ),
        pytest.param(
            _with(a={"gpu.example.com/x": 1}, b={"x": 1}),
            {"matchAttribute": "gpu.example.com/x"},
            [["r0=a", "r1=b"]],
            id="the driver's domain may be written or implied",
        ),
        pytest.param(
            _with(a={"x": 1}, b={"x": 2}),
            {"matchAttribute": "gpu.example.com/x", "requests": ["r0"]},
            [["r0=a", "r1=b"]],
            id="a constraint does not apply to requests that it does not name",
        ),
        pytest.param(
            _with(a={"x": 1}, b={"x": 1}, c={"x": 2}),
            {"distinctAttribute": "gpu.example.com/x"},
            [["r0=a", "r1=c"]],
            id="distinctAttribute: every device has another value",
        ),
        pytest.param(
            _with(a={"x": 1}, b={}, c={"x": True}),
            {"distinctAttribute": "gpu.example.com/x"},
            [["r0=a", "r1=c"]],
            id="distinctAttribute: a device without the attribute is excluded",
        ),
        pytest.param(
            _with(a={"x": 1}, b={"x": 1}),
            {"distinctAttribute": "gpu.example.com/x"},
            None,
            id="distinctAttribute: no solution with too few values",
        ),
        pytest.param(
            _with(a={"x": 1}, b={"x": 1}),
            {},
            "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)",
            id="a constraint of an unknown form is an error",
        ),
    ],
)
def test_constraints(slice_of, constraint, expected):
    wanted = claim(exactly("r0"), exactly("r1"), constraints=[constraint])
    assert found(allocator([slice_of]), wanted) == expected


def test_a_device_must_fit_every_constraint():
    four = _with(a={"x": 1, "y": 1}, b={"x": 1, "y": 2}, c={"x": 2, "y": 1}, d={"x": 1, "y": 1})
    constraints = [{"matchAttribute": f"gpu.example.com/{name}"} for name in "xy"]
    wanted = claim(exactly("r0"), exactly("r1"), constraints=constraints)
    assert found(allocator([four]), wanted) == [["r0=a", "r1=d"]]


def test_distinct_attribute_remembers_the_last_device_of_each_request_only():
    """As recorded from the reference: r1 repeats a value of r0."""
    two = slice_(
        "s1",
        device("a", attributes={"x": 1}, allowMultipleAllocations=True),
        device("b", attributes={"x": 2}),
    )
    constraints = [{"distinctAttribute": "gpu.example.com/x"}]
    wanted = claim(exactly("r0", 2), exactly("r1"), constraints=constraints)
    assert found(allocator([two]), wanted) == [["r0=a", "r0=b", "r1=a"]]
