"""Scope: what is refused in the ranges and addresses of services (ServiceCIDR, IPAddress)."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import KINDS, create_errors, created, named, update_errors

PARENT = {"group": "mygroup", "resource": "things", "namespace": "foo", "name": "bar"}
WRONG_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
WRONG_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def address(name: str, parent: Any = PARENT) -> Obj:
    return named("ipaddresses", name, spec={"parentRef": parent} if parent else {})


@pytest.mark.parametrize(
    ("obj", "messages"),
    [
        pytest.param(address("255.255.255.255"), [], id="an address of IPv4"),
        pytest.param(address("fe80::42:1dff:fe84:f9e2"), [], id="an address of IPv6"),
        pytest.param(
            address("web"),
            [f'metadata.name: Invalid value: "web": {WRONG_ADDRESS}'],
            id="a name that is no address",
        ),
        pytest.param(
            address("fe80:0::1"),
            ['metadata.name: Invalid value: "fe80:0::1": must be in canonical form ("fe80::1")'],
            id="an address that is not written as usual",
        ),
        pytest.param(
            address("10.0.0.1", None),
            ["spec.parentRef: Required value"],
            id="an address of nothing",
        ),
        pytest.param(
            address("10.0.0.1", {"group": "mygroup"}),
            ["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"],
            id="an address of something without a name",
        ),
    ],
)
def test_an_address_is_named_by_itself_and_belongs_to_an_object(obj, messages):
    assert create_errors("ipaddresses", obj) == messages


def test_an_address_stays_with_its_object_and_tells_it():
    old = created("ipaddresses", address("10.0.0.1"))
    old["metadata"]["resourceVersion"] = "1"
    other = address("10.0.0.1", {**PARENT, "name": "other"})
    other["metadata"]["resourceVersion"] = "1"
    (message,) = update_errors("ipaddresses", other, old)
    assert message.endswith("field is immutable")
    assert KINDS["ipaddresses"].row(old, 0)[:2] == ["10.0.0.1", "things.mygroup/foo/bar"]


@pytest.mark.parametrize(
    ("ranges", "messages"),
    [
        pytest.param(["203.0.113.0/24", "2001:db8::/64"], [], id="ranges of both families"),
        pytest.param([], ["spec.cidrs: Required value: at least one CIDR required"], id="none"),
        pytest.param(
            ["10.0.0.1/8", "x"],
            [
                f'spec.cidrs[0]: Invalid value: "10.0.0.1/8": {WRONG_RANGE}',
                f'spec.cidrs[1]: Invalid value: "x": {WRONG_RANGE}',
            ],
            id="a range with bits behind its mask, and no range at all",
        ),
    ],
)
def test_the_ranges_of_services_are_read(ranges, messages):
    assert create_errors("servicecidrs", named("servicecidrs", spec={"cidrs": ranges})) == messages
