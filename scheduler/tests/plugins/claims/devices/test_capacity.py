"""Consumable capacity: the amount that a request consumes of a shared device, and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import AllocationResult, ResourceSlice
from moorage.plugins.claims.devices.contract import Features
from scheduler.tests.plugins.claims.devices.builders import (
    N1,
    allocation,
    allocator,
    claim,
    device,
    exactly,
    found,
    slice_,
)


def shared(*names: str, value: str = "10Gi", **policy: Any) -> ResourceSlice:
    capacity = {"value": value, **({"requestPolicy": policy} if policy else {})}
    devices = (
        device(name, capacity={"memory": capacity}, allowMultipleAllocations=True)
        for name in names or ("a",)
    )
    return slice_("s1", *devices)


def asking(amount: str | None, name: str = "r", **fields: Any) -> dict[str, Any]:
    return exactly(name, capacity=None if amount is None else {"memory": amount}, **fields)


VALUES: dict[str, Any] = {"validValues": ["1Gi", "2Gi", "4Gi"]}
RANGE: dict[str, Any] = {"validRange": {"min": "1Gi", "max": "6Gi", "step": "2Gi"}}
NO_STEP: dict[str, Any] = {"validRange": {"min": "1Gi", "max": "6Gi"}}


@pytest.mark.parametrize(
    ("policy", "amount", "consumed"),
    [
        pytest.param({}, None, "10Gi", id="without a request, the whole capacity is consumed"),
        pytest.param(
            {"default": "2Gi"},
            None,
            "2Gi",
            id="without a request, the default of the policy is consumed",
        ),
        pytest.param(
            {}, "3000Mi", "3000Mi", id="without a policy, the requested amount is consumed"
        ),
        pytest.param({}, "3072Mi", "3Gi", id="the consumed amount has the spelling of the API"),
        pytest.param({}, "11Gi", None, id="a request above the capacity fails"),
        pytest.param(VALUES, "1.5Gi", "2Gi", id="a request is rounded up to the next valid value"),
        pytest.param(VALUES, "4Gi", "4Gi", id="a request equal to a valid value is not rounded"),
        pytest.param(VALUES, "5Gi", None, id="a request above all valid values fails"),
        pytest.param(RANGE, "1", "1Gi", id="a request below the minimum consumes the minimum"),
        pytest.param(RANGE, "3Gi", "3Gi", id="a request on a step from the minimum is not rounded"),
        pytest.param(RANGE, "3073Mi", "5Gi", id="a request between two steps is rounded up"),
        pytest.param(
            RANGE, "5121Mi", None, id="a request that is rounded up beyond the maximum fails"
        ),
        pytest.param(
            NO_STEP, "1025Mi", "1025Mi", id="a request in a range without steps is not rounded"
        ),
        pytest.param(NO_STEP, "7Gi", None, id="a request beyond the maximum fails"),
        pytest.param(
            {"default": "8Gi", **NO_STEP},
            None,
            "8Gi",
            id="a default is used even if it is no valid value",
        ),
        pytest.param(
            NO_STEP, None, None, id="the whole capacity is consumed even beyond the maximum"
        ),
    ],
)
def test_consumed_capacity_of_a_request(policy, amount, consumed):
    results = allocator([shared(**policy)]).allocate(N1, [claim(asking(amount))])
    taken = None if results is None else results[0].devices.results[0].consumed_capacity
    assert taken == (None if consumed is None else {"memory": consumed})


FINE: dict[str, Any] = {"validRange": {"min": "500m", "max": "2", "step": "250m"}}


@pytest.mark.parametrize(
    ("policy", "amount", "in_1_36", "in_1_37"),
    [
        pytest.param(FINE, "100m", "500m", "500m", id="below a minimum that is not whole"),
        pytest.param(FINE, "600m", "1", "750m", id="between two steps that are not whole"),
        pytest.param(FINE, "750m", "1", "750m", id="on a step that is not whole"),
        pytest.param(FINE, "1.9", "2", "2", id="rounded up to a whole amount"),
        pytest.param(FINE, "2100m", None, None, id="beyond the maximum"),
        pytest.param(RANGE, "3073Mi", "5Gi", "5Gi", id="a whole range counts whole units"),
    ],
)
def test_a_range_that_is_not_whole_is_counted_in_thousandths(policy, amount, in_1_36, in_1_37):
    for fractions, consumed in ((False, in_1_36), (True, in_1_37)):
        features = Features(fractional_capacity=fractions)
        around = allocator([shared(**policy)], features=features)
        results = around.allocate(N1, [claim(asking(amount))])
        taken = None if results is None else results[0].devices.results[0].consumed_capacity
        assert taken == (None if consumed is None else {"memory": consumed})


def held(*amounts: str) -> list[AllocationResult]:
    return [
        allocation({"device": "a", "shareID": str(i), "consumedCapacity": {"memory": amount}})
        for i, amount in enumerate(amounts)
    ]


@pytest.mark.parametrize(
    ("before", "claims", "expected"),
    [
        pytest.param(
            [],
            [claim(asking("4Gi", "r0"), asking("6Gi", "r1"))],
            [["r0=a", "r1=a"]],
            id="two requests of one claim",
        ),
        pytest.param(
            [],
            [claim(asking("4Gi"), name="c0"), claim(asking("6Gi"), name="c1")],
            [["r=a"], ["r=a"]],
            id="two claims",
        ),
        pytest.param(
            [],
            [claim(asking("4Gi", "r0"), asking("7Gi", "r1"))],
            None,
            id="two requests above the capacity of the device",
        ),
        pytest.param(
            held("3Gi", "3Gi"),
            [claim(asking("4Gi"))],
            [["r=a"]],
            id="beside a share of another claim",
        ),
        pytest.param(
            held("3Gi", "4Gi"),
            [claim(asking("4Gi"))],
            None,
            id="too little left beside a share of another claim",
        ),
        pytest.param(
            [],
            [claim(asking("1Gi", count=2))],
            None,
            id="one request gets no two shares of a device",
        ),
        pytest.param(
            held("9Gi"),
            [claim(asking("2Gi", adminAccess=True))],
            None,
            id="admin access consumes capacity as well",
        ),
    ],
)
def test_a_device_is_shared(before, claims, expected):
    assert found(allocator([shared()], held=before), *claims) == expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            exactly(capacity={"memory": "8Gi"}),
            [["r=big"]],
            id="the device has the requested capacity",
        ),
        pytest.param(exactly(capacity={"other": "1"}), None, id="the device lacks the capacity"),
    ],
)
def test_a_request_for_a_whole_device_needs_the_capacity_too(request_, expected):
    own = slice_(
        "s1",
        device("small", capacity={"memory": "4Gi"}),
        device("none"),
        device("big", capacity={"memory": "8Gi"}),
    )
    results = allocator([own]).allocate(N1, [claim(request_)])
    assert found(allocator([own]), claim(request_)) == expected
    if results is not None:
        (only,) = results[0].devices.results
        assert (only.share_id, only.consumed_capacity) == (None, {})


def test_a_share_is_given_back_when_a_later_request_needs_the_capacity():
    wanted = claim(asking(None, "r0"), asking("9Gi", "r1"))
    two = slice_(
        "s1",
        device("a", capacity={"memory": "10Gi"}, allowMultipleAllocations=True),
        device("b", capacity={"memory": "8Gi"}, allowMultipleAllocations=True),
    )
    assert found(allocator([two]), wanted) == [["r0=b", "r1=a"]]


def test_each_share_has_an_id_of_its_own():
    wanted = claim(asking("1Gi", "r0"), asking("1Gi", "r1"))
    ids = [
        [each.share_id for each in result.devices.results]
        for result in allocator([shared()]).allocate(N1, [wanted]) or []
    ]
    again = [
        [each.share_id for each in result.devices.results]
        for result in allocator([shared()]).allocate(N1, [wanted]) or []
    ]
    assert len(set(ids[0])) == 2
    assert None not in ids[0]
    assert ids == again


def test_a_device_that_was_allocated_whole_is_not_shared():
    whole = [allocation({"device": "a"})]
    assert found(allocator([shared()], held=whole), claim(asking("1Gi"))) is None


def test_without_the_feature_no_device_is_shared():
    off = allocator([shared()], features=Features(consumable_capacity=False))
    assert found(off, claim(exactly("r0"), exactly("r1"))) is None
    assert found(off, claim(exactly("r0"))) == [["r0=a"]]
