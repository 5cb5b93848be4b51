"""Consumable capacity: what a request takes of a device that is shared, and when it may."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import AllocationResult, ResourceSlice
from moorage.plugins.claims.devices.contract import Features
from tests.plugins.claims.devices.builders import (
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
        pytest.param({}, None, "10Gi", id="everything, where nothing is asked for"),
        pytest.param({"default": "2Gi"}, None, "2Gi", id="or the default"),
        pytest.param({}, "3000Mi", "3000Mi", id="what is asked for, where there is no policy"),
        pytest.param({}, "3072Mi", "3Gi", id="written as the API writes it"),
        pytest.param({}, "11Gi", None, id="more than there is is not had"),
        pytest.param(VALUES, "1.5Gi", "2Gi", id="the next valid value"),
        pytest.param(VALUES, "4Gi", "4Gi", id="a valid value itself"),
        pytest.param(VALUES, "5Gi", None, id="above the valid values nothing is valid"),
        pytest.param(RANGE, "1", "1Gi", id="the minimum at least"),
        pytest.param(RANGE, "3Gi", "3Gi", id="a step from the minimum"),
        pytest.param(RANGE, "3073Mi", "5Gi", id="rounded up to the next step"),
        pytest.param(RANGE, "5121Mi", None, id="beyond the maximum when rounded up"),
        pytest.param(NO_STEP, "1025Mi", "1025Mi", id="without steps as it is"),
        pytest.param(NO_STEP, "7Gi", None, id="but not beyond the maximum"),
        pytest.param(
            {"default": "8Gi", **NO_STEP}, None, "8Gi", id="the default is valid whatever it is"
        ),
        pytest.param(NO_STEP, None, None, id="everything may be beyond the maximum"),
    ],
)
def test_consumed_capacity_of_a_request(policy, amount, consumed):
    results = allocator([shared(**policy)]).allocate(N1, [claim(asking(amount))])
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
            id="in one claim",
        ),
        pytest.param(
            [],
            [claim(asking("4Gi"), name="c0"), claim(asking("6Gi"), name="c1")],
            [["r=a"], ["r=a"]],
            id="in two claims",
        ),
        pytest.param(
            [],
            [claim(asking("4Gi", "r0"), asking("7Gi", "r1"))],
            None,
            id="not beyond what there is",
        ),
        pytest.param(held("3Gi", "3Gi"), [claim(asking("4Gi"))], [["r=a"]], id="beside others"),
        pytest.param(held("3Gi", "4Gi"), [claim(asking("4Gi"))], None, id="not at their cost"),
        pytest.param([], [claim(asking("1Gi", count=2))], None, id="not twice for one request"),
        pytest.param(
            held("9Gi"),
            [claim(asking("2Gi", adminAccess=True))],
            None,
            id="admin access takes as well",
        ),
    ],
)
def test_a_device_is_shared(before, claims, expected):
    assert found(allocator([shared()], held=before), *claims) == expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(exactly(capacity={"memory": "8Gi"}), [["r=big"]], id="enough room"),
        pytest.param(exactly(capacity={"other": "1"}), None, id="has the capacity at all"),
    ],
)
def test_a_device_for_itself_has_to_have_the_capacity_too(request_, expected):
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


def test_a_share_is_given_up_when_a_later_request_needs_the_room():
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
