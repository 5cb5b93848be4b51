"""Which devices are found: one row or more for each rule of the search."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.plugins.claims.devices.contract import AllocationTimeoutError, Features, NodeFacts
from scheduler.tests.plugins.claims.devices.builders import (
    MIXED,
    N1,
    N2,
    allocation,
    allocator,
    claim,
    class_,
    device,
    exactly,
    first_of,
    found,
    gpus,
    model,
    slice_,
)

MODEL = 'device.attributes["gpu.example.com"].model == "{}"'


@pytest.mark.parametrize(
    ("slices", "claims", "expected"),
    [
        pytest.param(
            [gpus("a", "b")],
            [claim(exactly())],
            [["r=a"]],
            id="the first device that fits is taken",
        ),
        pytest.param(
            [gpus("a", "b", "c")],
            [claim(exactly(count=2))],
            [["r=a", "r=b"]],
            id="a count of devices is taken in their order",
        ),
        pytest.param(
            [gpus("a", "b")],
            [claim(exactly("r0"), exactly("r1"))],
            [["r0=a", "r1=b"]],
            id="two requests get two devices",
        ),
        pytest.param(
            [gpus("a", "b")],
            [claim(exactly(), name="c0"), claim(exactly(), name="c1")],
            [["r=a"], ["r=b"]],
            id="two claims get two devices",
        ),
        pytest.param(
            [gpus("a", "b")],
            [claim(exactly(count=3))],
            None,
            id="no allocation with too few devices",
        ),
        pytest.param(
            [gpus("a")],
            [claim(exactly(), name="c0"), claim(exactly(), name="c1")],
            None,
            id="all claims are allocated, or no claim",
        ),
        pytest.param([gpus("a")], [claim()], [[]], id="a claim without requests needs no device"),
        pytest.param(
            [
                slice_("s2", device("z"), pool="b", count=1),
                slice_("s1", device("y"), pool="a", driver="z.example.com"),
                slice_("s3", device("x"), pool="c"),
            ],
            [claim(exactly(count=3))],
            [["r=z", "r=x", "r=y"]],
            id="pools are tried by driver and then by name",
        ),
        pytest.param(
            [slice_("s2", device("a"), count=2), slice_("s1", device("b"), count=2)],
            [claim(exactly(count=2))],
            [["r=b", "r=a"]],
            id="slices of a pool are tried by name",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), device("b", bindingConditions=["x"]), pool="a"),
                slice_("s2", device("c"), pool="b"),
            ],
            [claim(exactly(count=3))],
            [["r=c", "r=a", "r=b"]],
            id="pools with binding conditions come last",
        ),
        pytest.param(
            [MIXED],
            [claim(exactly("r0"), exactly("r1", 2, MODEL.format("t4")))],
            [["r0=d1", "r1=d0", "r1=d2"]],
            id="a device is given back for a later request",
        ),
        pytest.param(
            [MIXED],
            [
                claim(exactly("r0"), name="c0"),
                claim(exactly("r1", 2, MODEL.format("t4")), name="c1"),
            ],
            [["r0=d1"], ["r1=d0", "r1=d2"]],
            id="a device is given back for a later claim",
        ),
        pytest.param(
            [MIXED],
            [claim(exactly("r", 2, 'device.driver == "nobody"'))],
            None,
            id="a device must fulfil all selectors of the request",
        ),
        pytest.param(
            [MIXED],
            [claim(exactly("r", 1, MODEL.format("a100"), "true", device_class="odd"))],
            [["r=d1"]],
            id="a device must fulfil all selectors of class and request",
        ),
    ],
)
def test_requests_for_a_number_of_devices(slices, claims, expected):
    odd = class_("odd", 'device.attributes["gpu.example.com"].numa == 1')
    assert found(allocator(slices, class_(), odd), *claims) == expected


@pytest.mark.parametrize(
    ("request_", "constraints", "expected"),
    [
        pytest.param(
            first_of("r", exactly("big", 5), exactly("small", 2)),
            [],
            [["r/small=d0", "r/small=d1"]],
            id="the first alternative that can be allocated is taken",
        ),
        pytest.param(
            first_of("r", exactly("a", 1, MODEL.format("a100")), exactly("b")),
            [],
            [["r/a=d1"]],
            id="an earlier alternative wins over an earlier device",
        ),
        pytest.param(
            first_of("r", exactly("all", mode="All"), exactly("one")),
            [],
            [["r/all=d0", "r/all=d1", "r/all=d2", "r/all=d3"]],
            id="an alternative may request all devices",
        ),
        pytest.param(
            first_of("r", exactly("many", 40), exactly("few")),
            [],
            [["r/few=d0"]],
            id="an alternative beyond the limit of a claim is left out",
        ),
        pytest.param(
            first_of(
                "r", exactly("pair", 2, MODEL.format("t4")), exactly("one", 1, MODEL.format("t4"))
            ),
            [{"requests": ["r/pair"], "matchAttribute": "gpu.example.com/index"}],
            [["r/one=d0"]],
            id="a constraint may concern one alternative only",
        ),
    ],
)
def test_alternatives(request_, constraints, expected):
    assert found(allocator([MIXED]), claim(request_, constraints=constraints)) == expected


def test_an_alternative_is_given_up_when_a_later_request_fails_with_it():
    wanted = claim(first_of("r0", exactly("two", 3), exactly("one", 1)), exactly("r1", 2))
    assert found(allocator([MIXED]), wanted) == [["r0/one=d0", "r1=d1", "r1=d2"]]


@pytest.mark.parametrize(
    ("slices", "held", "request_", "expected"),
    [
        pytest.param(
            [MIXED],
            [],
            exactly(mode="All"),
            [["r=d0", "r=d1", "r=d2", "r=d3"]],
            id="a request for all devices takes all devices",
        ),
        pytest.param(
            [MIXED],
            [],
            exactly("r", 0, MODEL.format("t4"), mode="All"),
            [["r=d0", "r=d2"]],
            id="a request for all devices takes all matching devices",
        ),
        pytest.param(
            [MIXED],
            [],
            exactly("r", 0, "false", mode="All"),
            None,
            id="a request for all devices fails without a matching device",
        ),
        pytest.param(
            [MIXED],
            [allocation({"device": "d2"})],
            exactly("r", 0, MODEL.format("t4"), mode="All"),
            None,
            id="a request for all devices fails if one is in use",
        ),
        pytest.param(
            [slice_("s1", device("a", taints=[{"key": "k", "effect": "NoSchedule"}]), device("b"))],
            [],
            exactly(mode="All"),
            None,
            id="a request for all devices fails if one has an untolerated taint",
        ),
        pytest.param(
            [
                slice_(
                    "s1",
                    device("a", capacity={"memory": "1Gi"}),
                    device("b", capacity={"memory": "4Gi"}),
                    device("c"),
                ),
            ],
            [],
            exactly(mode="All", capacity={"memory": "2Gi"}),
            [["r=b"]],
            id="a request for all devices leaves out devices without the requested capacity",
        ),
        pytest.param(
            [slice_("s1", device("a"), count=2)],
            [],
            exactly(mode="All"),
            "claim ns/c, request r: asks for all devices, but resource pool "
            "gpu.example.com/p1 is currently being updated",
            id="a pool with missing slices is an error",
        ),
        pytest.param(
            [slice_("s1", device("a"), device("a"))],
            [],
            exactly(mode="All"),
            "claim ns/c, request r: asks for all devices, but resource pool "
            "gpu.example.com/p1 is currently invalid",
            id="a pool with two devices of one name is an error",
        ),
    ],
)
def test_all_devices(slices, held, request_, expected):
    assert found(allocator(slices, held=held), claim(request_)) == expected


@pytest.mark.parametrize(
    ("held", "claims", "expected"),
    [
        pytest.param(
            [allocation({"device": "a"})],
            [claim(exactly(count=1))],
            [["r=b"]],
            id="a device in use is skipped",
        ),
        pytest.param(
            [allocation({"device": "a"}, {"device": "b"})],
            [claim(exactly(adminAccess=True))],
            [["r=a"]],
            id="admin access may use a device in use",
        ),
        pytest.param(
            [allocation({"device": "a", "adminAccess": True})],
            [claim(exactly())],
            [["r=a"]],
            id="a device used with admin access is free for other claims",
        ),
        pytest.param(
            [],
            [claim(exactly("r0", adminAccess=True), exactly("r1", adminAccess=True))],
            [["r0=a", "r1=b"]],
            id="one claim gets admin access to a device only once",
        ),
        pytest.param(
            [],
            [
                claim(exactly(adminAccess=True), name="c0"),
                claim(exactly(adminAccess=True), name="c1"),
            ],
            [["r=a"], ["r=a"]],
            id="two claims get admin access to one device",
        ),
        pytest.param(
            [],
            [claim(exactly("r0", adminAccess=True), exactly("r1"))],
            [["r0=a", "r1=b"]],
            id="another request of the claim does not get a device chosen with admin access",
        ),
    ],
)
def test_devices_in_use(held, claims, expected):
    assert found(allocator([gpus("a", "b")], held=held), *claims) == expected


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param(
            [claim(exactly(count=33))],
            "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
            id="more than 32 devices in one request",
        ),
        pytest.param(
            [claim(exactly("r0", 30), exactly("r1", 3))],
            "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
            id="more than 32 devices in several requests",
        ),
        pytest.param(
            [claim(exactly("r0", 40), name="c0"), claim(exactly("r1", 3), name="c1")],
            "claim ns/c0: number of requested devices 40 exceeds the claim limit of 32",
            id="the first claim beyond the limit is named",
        ),
        pytest.param(
            [claim(first_of("r0", exactly("a", 33), exactly("b", 34)))],
            "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
            id="the smallest alternative counts",
        ),
        pytest.param(
            [claim(exactly("r0", 32))],
            [[f"r0=g{i:02}" for i in range(32)]],
            id="32 devices are allowed",
        ),
    ],
)
def test_the_limit_of_a_claim(claims, expected):
    many = gpus(*(f"g{i:02}" for i in range(40)))
    assert found(allocator([many]), *claims) == expected


@pytest.mark.parametrize(
    ("wanted", "features", "expected"),
    [
        pytest.param(
            claim(exactly(device_class="none")),
            Features(),
            "claim ns/c, request r: could not retrieve device class none: "
            'deviceclass.resource.k8s.io "none" not found',
            id="an unknown class",
        ),
        pytest.param(
            claim(exactly(device_class="")),
            Features(),
            "claim ns/c, request r: missing device class name (unsupported request type?)",
            id="a request without class",
        ),
        pytest.param(
            claim({"name": "r"}),
            Features(),
            "claim ns/c, request r: missing device class name (unsupported request type?)",
            id="a request of neither form",
        ),
        pytest.param(
            claim(exactly(mode="Some")),
            Features(),
            "claim ns/c, request r: unsupported count mode Some",
            id="an unknown allocation mode",
        ),
        pytest.param(
            claim(exactly(selectors=[{}])),
            Features(),
            "claim ns/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
            id="a selector of an unknown form",
        ),
        pytest.param(
            claim(exactly(adminAccess=True)),
            Features(admin_access=False),
            "claim ns/c, request r: admin access is requested, but the feature is disabled",
            id="admin access while the feature is off",
        ),
        pytest.param(
            claim(first_of("r", exactly("s"))),
            Features(prioritized_list=False),
            "claim ns/c, request r: has subrequests, "
            "but the DRAPrioritizedList feature is disabled",
            id="alternatives while the feature is off",
        ),
        pytest.param(
            claim(exactly(capacity={"memory": "1"})),
            Features(consumable_capacity=False),
            "claim ns/c, request r: has capacity requests, "
            "but the DRAConsumableCapacity feature is disabled",
            id="consumable capacity while the feature is off",
        ),
        pytest.param(
            claim(exactly(capacity={"memory": "much"})),
            Features(),
            "claim ns/c, request r: capacity: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="an invalid capacity",
        ),
        pytest.param(
            claim(exactly("r", 1, 'device.attributes["gpu.example.com"].no', mode="All")),
            Features(),
            "claim ns/c: selector #0 on device gpu.example.com/p1/a: CEL runtime error: "
            "no such key: no. Consider using CEL optional chaining (?), has() macro, "
            "or orValue() for optional fields",
            id="a selector that fails in a request for all devices",
        ),
        pytest.param(
            claim(exactly("r", 1, "device.")),
            Features(),
            "claim ns/c: selector #0: CEL compile error: compilation failed: "
            "ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n"
            " | device.\n"
            " | .......^",
            id="a selector that cannot be compiled",
        ),
        pytest.param(
            claim(exactly("r", 1, 'device.attributes["gpu.example.com"].nothing')),
            Features(),
            "claim ns/c: selector #0 on device gpu.example.com/p1/a: CEL runtime error: "
            "no such key: nothing. Consider using CEL optional chaining (?), has() macro, "
            "or orValue() for optional fields",
            id="a selector that fails on a device",
        ),
        pytest.param(
            claim(exactly(device_class="broken")),
            Features(),
            "class broken: selector #1: CEL compile error: "
            "must evaluate to bool or the unknown type, not int",
            id="a selector of a class is named by the class",
        ),
    ],
)
def test_faults_of_a_claim_end_the_cycle(wanted, features, expected):
    allocates = allocator([gpus("a")], class_(), class_("broken", "true", "1"), features=features)
    assert found(allocates, wanted) == expected


def test_a_selector_is_not_evaluated_on_devices_after_the_taken_ones():
    devices = slice_("s1", model("d0", "t4"), device("d1"))
    wanted = claim(exactly("r", 1, MODEL.format("t4")))
    assert found(allocator([devices]), wanted) == [["r=d0"]]


def test_a_selector_that_fails_on_the_last_device_is_an_error_even_with_too_few_devices():
    tainted = model("d0", "t4", taints=[{"key": "k", "effect": "NoSchedule"}])
    wanted = claim(exactly("r", 2, MODEL.format("t4")))
    assert found(allocator([slice_("s1", tainted, device("d1"))]), wanted) == (
        "claim ns/c: selector #0 on device gpu.example.com/p1/d1: CEL runtime error: "
        "no such key: model. Consider using CEL optional chaining (?), has() macro, "
        "or orValue() for optional fields"
    )


def test_devices_with_binding_conditions_need_their_feature():
    late = slice_("s1", device("a", bindingConditions=["ready"]), device("b"))
    off = allocator([late], features=Features(device_binding=False))
    assert found(off, claim(exactly())) == [["r=b"]]


def test_a_search_that_takes_too_long_is_ended():
    class Ticking(ManualClock):
        def monotonic_ns(self) -> int:
            self.advance(1)
            return super().monotonic_ns()

    slow = allocator([gpus(*"abcdefghij")], clock=Ticking(), timeout_seconds=10)
    with pytest.raises(
        AllocationTimeoutError, match="node n1: timed out trying to allocate devices"
    ):
        slow.allocate(N1, [claim(exactly(count=10))])
    quick = allocator([gpus(*"abcdefghij")], clock=Ticking(), timeout_seconds=0)
    assert quick.allocate(N1, [claim(exactly(count=10))]) is not None


def test_a_node_without_devices_gets_none():
    assert found(allocator([gpus("a")]), claim(exactly()), node=N2) is None
    assert found(allocator([]), claim(exactly()), node=NodeFacts("n9", {})) is None
