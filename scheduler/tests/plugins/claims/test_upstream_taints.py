"""Cases of upstream about tainted devices, each with the taints in the slice and by rules.

Transcribed from kubernetes v1.37 ``structured/internal/allocatortesting/allocator_testing.go``,
under their names: inputs and results, from upstream's tests and not from a run. The names of
devices and classes, and the key and the value of the taints, are ours.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.devices import DeviceTaintRule, ResourceClaim
from moorage.plugins.claims.devices.contract import Features
from moorage.plugins.claims.tainted_slices import TaintedSlices
from moorage.snapshot.listers import Listers
from scheduler.tests.plugins.claims.devices.builders import (
    allocation,
    allocator,
    claim,
    class_,
    device,
    exactly,
    first_of,
    found,
    slice_,
)

NO_SCHEDULE = {"key": "taint-key", "value": "taint-value", "effect": "NoSchedule"}
NO_EXECUTE = {"key": "taint-key", "value": "taint-value", "effect": "NoExecute"}
BOTH = [NO_SCHEDULE, NO_EXECUTE]
ONE = {"d1": [NO_SCHEDULE]}
TWO = {"d1": [NO_SCHEDULE], "d2": [NO_EXECUTE]}
CLASS_B = class_("b", 'device.driver == "driver-b"')


def tolerating(*taints: dict[str, str]) -> ResourceClaim:
    keys = [{"operator": "Equal", **taint} for taint in taints]
    return claim(exactly("r", tolerations=keys))


LISTED = claim(first_of("r", exactly("s0", device_class="b"), exactly("s1")))
ADMIN = claim(exactly("r", adminAccess=True))
ALL = claim(exactly("r", mode="All"))

CASES: dict[str, tuple[dict[str, list[dict[str, str]]], ResourceClaim, bool, Any]] = {
    "tainted-two-devices": (TWO, tolerating(), True, None),
    "tainted-one-device-two-taints": ({"d1": BOTH}, tolerating(), True, None),
    "tainted-two-devices-tolerated": (TWO, tolerating(NO_EXECUTE), True, [["r=d2"]]),
    "tainted-one-device-two-taints-both-tolerated": (
        {"d1": BOTH},
        tolerating(*BOTH),
        True,
        [["r=d1"]],
    ),
    "tainted-disabled": ({"d1": BOTH}, tolerating(), False, [["r=d1"]]),
    "tainted-prioritized-list": (ONE, LISTED, True, None),
    "tainted-prioritized-list-disabled": (ONE, LISTED, False, [["r/s1=d1"]]),
    "tainted-admin-access": (ONE, ADMIN, True, None),
    "tainted-admin-access-disabled": (ONE, ADMIN, False, [["r=d1"]]),
    "tainted-all-devices-single": (ONE, ALL, True, None),
    "tainted-all-devices-single-disabled": (ONE, ALL, False, [["r=d1"]]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("by_rules", [False, True], ids=["in the slice", "by rules"])
def test_a_case_of_upstream(name: str, *, by_rules: bool) -> None:
    tainted, wanted, taints_count, expected = CASES[name]
    listers = Listers()
    devices = [device(each, taints=[] if by_rules else tainted[each]) for each in tainted]
    listers.resource_slices.put(slice_("s1", *devices))
    rules = [(each, taint) for each in tainted for taint in tainted[each]] if by_rules else []
    for number, (each, taint) in enumerate(rules):
        spec = {"deviceSelector": {"device": each}, "taint": taint}
        manifest = {"metadata": {"name": f"r{number}"}, "spec": spec}
        listers.device_taint_rules.put(from_dict(DeviceTaintRule, manifest))
    is_admin = wanted is ADMIN
    search = allocator(
        list(TaintedSlices(listers).every()),
        class_(),
        CLASS_B,
        held=[allocation({"device": "d1"}, {"device": "d2"})] if is_admin else None,
        features=Features(device_taints=taints_count),
    )
    assert found(search, wanted) == expected
