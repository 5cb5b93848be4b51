"""A rejected device leaves no trace: its counters and its place in constraints are free again.

The cases named after kube-scheduler v1.36.3 are those that its release added
(``structured/internal/allocatortesting``, kubernetes#140431); v1.36.2 finds no allocation for most.
Random pools are compared with a naive allocator in ``test_grouping``.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.devices import ResourceSlice
from scheduler.tests.plugins.claims.devices.builders import (
    allocation,
    allocator,
    claim,
    device,
    exactly,
    first_of,
    found,
    slice_,
)

SAME_X = [{"matchAttribute": "gpu.example.com/x"}]
TAINT = {"key": "k", "effect": "NoSchedule"}
X = 'device.attributes["gpu.example.com"].?x.orValue(0) == {}'


def part(name: str, slots: int = 1, x: int | None = None, **fields: Any) -> dict[str, Any]:
    """A device that consumes slots of its pool."""
    consumed = {"counterSet": "whole", "counters": {"slots": {"value": str(slots)}}}
    if slots:
        fields["consumesCounters"] = [consumed]
    return device(name, attributes={} if x is None else {"x": x}, **fields)


def shared(name: str, slots: int = 1, x: int | None = None, **fields: Any) -> dict[str, Any]:
    return part(name, slots, x, allowMultipleAllocations=True, **fields)


def pool(slots: int, *devices: dict[str, Any]) -> list[ResourceSlice]:
    whole = {"name": "whole", "counters": {"slots": {"value": str(slots)}}}
    return [
        slice_("s0", sharedCounters=[whole], count=2),
        slice_("s1", *devices, count=2),
    ]


@pytest.mark.parametrize(
    ("slices", "wanted", "expected"),
    [
        pytest.param(
            pool(1, part("a", taints=[TAINT]), part("b")),
            claim(exactly()),
            [["r=b"]],
            id="partitionable-devices-taint-releases-counter",
        ),
        pytest.param(
            pool(2, part("a", x=1), part("b", x=2), part("c", x=2)),
            claim(exactly(count=2), constraints=SAME_X),
            [["r=b", "r=c"]],
            id="partitionable-devices-constraint-releases-counter",
        ),
        pytest.param(
            pool(1, shared("a", x=1), shared("b", 0, x=1), part("c", x=2)),
            claim(exactly("r1", 1, X.format(1)), exactly("r2", 1, X.format(2))),
            [["r1=b", "r2=c"]],
            id="partitionable-consumable-capacity-backtrack-releases-counter",
        ),
        pytest.param(
            pool(2, part("a", x=1), part("b", x=2)),
            claim(exactly(mode="All"), constraints=SAME_X),
            "claim ns/c, request r: cannot add device gpu.example.com/p1/b "
            "because a claim constraint would not be satisfied",
            id="partitionable-all-mode-constraint-must-error-with-reserved-counter",
        ),
        pytest.param(
            # r1 gives its share of a back and takes b. r0 still has a, so r2 gets no counter for c.
            pool(1, shared("a", x=1), shared("b", 0, x=3), part("c", x=2)),
            claim(
                exactly("r0", 1, X.format(1)),
                exactly("r1", 1, "true"),
                exactly("r2", 1, X.format(2)),
            ),
            None,
            id="partitionable-empty-capacity-multiple-share-backtrack-keeps-counter-ownership",
        ),
        pytest.param(
            # r0 takes all of a, so "all" cannot have a share of it. The constraint may not count a
            # for r1: the alternative is b, whose x differs from a's.
            [
                slice_(
                    "s1",
                    shared("a", 0, x=1, capacity={"m": "3Gi"}),
                    shared("b", 0, x=2, capacity={"m": "3Gi"}),
                )
            ],
            claim(
                exactly("r0", 1, X.format(1)),
                first_of(
                    "r1",
                    exactly("every", 1, X.format(1), mode="All", capacity={"m": "2Gi"}),
                    exactly("one", 1, X.format(2)),
                ),
                constraints=[{**SAME_X[0], "requests": ["r1"]}],
            ),
            [["r0=a", "r1/one=b"]],
            id="consumable-capacity-rejection-rolls-back-constraints",
        ),
        pytest.param(
            pool(1, shared("a", x=1), shared("b", 0, x=1), part("c", x=2)),
            claim(
                exactly("r0", 1, "true"),
                exactly("r1", 1, X.format(1)),
                exactly("r2", 1, X.format(2)),
            ),
            [["r0=b", "r1=b", "r2=c"]],
            id="both shares of a device are given back, and its counter once",
        ),
        pytest.param(
            pool(2, part("a", 2, taints=[TAINT]), part("b", x=2), part("c", x=1), part("d", x=1)),
            claim(exactly(count=2), constraints=SAME_X),
            [["r=c", "r=d"]],
            id="a taint and a constraint reject one device after another",
        ),
        pytest.param(
            # r0 tries a (x=1) first, then "all" of x=1 gets a second share of a, but b has no room.
            pool(2, shared("a", x=1), part("b", 2, x=1), part("c", x=2)),
            claim(
                first_of(
                    "r0",
                    exactly("every", 1, X.format(1), mode="All"),
                    exactly("one", 1, X.format(2)),
                ),
                exactly("r1", 1, X.format(1)),
            ),
            [["r0/one=c", "r1=a"]],
            id="all devices of a request are given back when one has too few counters",
        ),
    ],
)
def test_a_device_that_is_given_back_is_free(slices, wanted, expected):
    assert found(allocator(slices), wanted) == expected


def test_a_share_that_consumes_no_capacity_has_taken_the_counters():
    """kubernetes#140433: v1.36 takes the counters a second time, and finds no device."""
    held = [allocation({"device": "a", "shareID": "x"})]
    assert found(allocator(pool(1, shared("a")), held=held), claim(exactly())) == [["r=a"]]
    assert (
        found(allocator(pool(1, shared("a"), part("b")), held=held), claim(exactly(count=2)))
        is None
    )
