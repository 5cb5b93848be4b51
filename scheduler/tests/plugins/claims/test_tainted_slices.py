"""Slices with the taints of rules: cases of upstream's test, in every order, and a naive model.

The cases are transcribed from kubernetes v1.37 ``resourceslice/tracker/tracker_test.go``
(TestListPatchedResourceSlices), under their names. Left out: the events for handlers; the
tests of the service have the wake-ups that follow from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.devices import DeviceTaintRule, ResourceSlice
from moorage.plugins.claims.tainted_slices import TaintedSlices
from moorage.snapshot.listers import Listers

Step = tuple[str, Any]
"""``put`` or ``gone``, and a slice or a rule."""

ONE = {"key": "example.com/taint", "value": "tainted", "effect": "NoExecute"}
TWO = {"key": "example.com/taint2", "value": "tainted2", "effect": "NoExecute"}


def slice_(number: int, *devices: str, **taints: list[dict[str, str]]) -> ResourceSlice:
    """Slice s1 of driver1 and pool-1, or s2 of driver2 and pool-2."""
    spec = {
        "driver": f"driver{number}.example.com",
        "pool": {"name": f"pool-{number}"},
        "devices": [{"name": f"d{name}", "taints": taints.get(f"d{name}", [])} for name in devices],
    }
    return from_dict(ResourceSlice, {"metadata": {"name": f"s{number}"}, "spec": spec})


def rule(name: str = "rule", *, taint: dict[str, str] = ONE, **selector: str) -> DeviceTaintRule:
    spec = {**({"deviceSelector": selector} if selector else {}), "taint": taint}
    return from_dict(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


S1, S2 = slice_(1, "1"), slice_(2, "2")
S1_TAINTED, S2_TAINTED = slice_(1, "1", d1=[ONE]), slice_(2, "2", d2=[ONE])
ALL, POOL_1, POOL_2 = rule(), rule(pool="pool-1"), rule(pool="pool-2")
DRIVER_1, DEVICE_1 = rule(driver="driver1.example.com"), rule(device="d1")
EMPTY = from_dict(ResourceSlice, {"metadata": {"name": "no-change"}})


def put(*versions: Any) -> list[Step]:
    return [("put", each) for each in versions]


CASES: dict[str, tuple[list[list[Step]], list[ResourceSlice]]] = {
    "add-slices-no-patches": ([put(S1), put(S2)], [S1, S2]),
    "update-slices-no-patches": (
        [put(slice_(1), S1), put(slice_(2), S2), put(EMPTY)],
        [EMPTY, S1, S2],
    ),
    "delete-slices": (
        [[*put(S1), ("gone", S1)], [*put(S2), ("gone", S2)], put(EMPTY)],
        [EMPTY],
    ),
    "patch-all-slices": ([put(S1), put(ALL)], [S1_TAINTED]),
    "update-patch": ([put(POOL_1, POOL_2), put(S1), put(S2)], [S1, S2_TAINTED]),
    "merge-taints": (
        [put(ALL), put(slice_(1, "1", d1=[TWO]))],
        [slice_(1, "1", d1=[TWO, ONE])],
    ),
    "add-taint-for-driver": ([put(DRIVER_1), put(S1), put(S2)], [S1_TAINTED, S2]),
    "add-taint-for-pool": ([put(POOL_1), put(S1), put(S2)], [S1_TAINTED, S2]),
    "add-taint-for-device": ([put(DEVICE_1), put(S1), put(S2)], [S1_TAINTED, S2]),
    "filter-all-criteria": (
        [
            put(rule(device="d1", pool="pool-1", driver="driver1.example.com")),
            put(S1),
            put(S2),
        ],
        [S1_TAINTED, S2],
    ),
    "update-patched-slice": (
        [
            put(DEVICE_1),
            put(S1, slice_(1, "0", "1", "2")),
            put(slice_(2, "0", "1", "2"), slice_(2, "1")),
        ],
        [slice_(1, "0", "1", "2", d1=[ONE]), slice_(2, "1", d1=[ONE])],
    ),
}


class Followed:
    """The slices as a reader of changes knows them."""

    def __init__(self) -> None:
        self.listers = Listers()
        self.tainted = TaintedSlices(self.listers)
        self.known = {each.name: each for each in self.tainted.every()}

    def play(self, step: Step) -> None:
        action, obj = step
        listers = self.listers
        lister: Any = (
            listers.resource_slices
            if isinstance(obj, ResourceSlice)
            else listers.device_taint_rules
        )
        if action == "put":
            lister.put(obj)
        else:
            lister.remove(obj)

    def follow(self) -> list[ResourceSlice]:
        changed = self.tainted.changes()
        assert changed is not None
        for name, each in changed.items():
            if each is None:
                self.known.pop(name, None)
            else:
                self.known[name] = each
        return [self.known[name] for name in sorted(self.known)]


def orders(groups: list[list[Step]]) -> Iterator[list[Step]]:
    """Every order of the steps that keeps the order within each group."""
    if not any(groups):
        yield []
    for place, group in enumerate(groups):
        if group:
            rest = [*groups[:place], group[1:], *groups[place + 1 :]]
            yield from ([group[0], *order] for order in orders(rest))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("often", [True, False], ids=["read after each step", "read at the end"])
def test_a_case_of_upstream_in_every_order(name: str, *, often: bool) -> None:
    groups, expected = CASES[name]
    for order in orders(groups):
        followed = Followed()
        for step in order:
            followed.play(step)
            if often:
                followed.follow()
        assert followed.follow() == expected


SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "driver": st.sampled_from(["driver1.example.com", "driver2.example.com"]),
        "pool": st.sampled_from(["pool-1", "pool-2"]),
        "device": st.sampled_from(["d1", "d2"]),
    },
)
RULES = st.builds(
    lambda name, taint, selector: rule(name, taint=taint, **selector),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([ONE, TWO]),
    SELECTORS,
)
SLICES = st.sampled_from([S1, S2, slice_(1, "1", "2"), slice_(2, "1", "2", d1=[TWO])])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "gone"]), RULES | SLICES), max_size=12)


@given(steps=STEPS, reads=st.sets(st.integers(0, 11)))
def test_following_changes_gives_what_a_look_at_everything_gives(
    steps: list[Step], reads: set[int]
) -> None:
    followed = Followed()
    for number, step in enumerate(steps):
        followed.play(step)
        if number in reads:
            followed.follow()
    assert followed.follow() == naive(followed.listers)


def naive(listers: Listers) -> list[ResourceSlice]:
    """Join the taints device by device, from the text of the API."""
    rules = sorted(listers.device_taint_rules.all(), key=lambda each: each.name)
    found = []
    for slice_ in sorted(listers.resource_slices.all(), key=lambda each: each.name):
        spec: Any = msgspec.to_builtins(slice_)["spec"]
        for device in spec["devices"]:
            place = (spec["driver"], spec["pool"]["name"], device["name"])
            for each in rules:
                chosen = each.spec.device_selector
                wanted = (chosen.driver, chosen.pool, chosen.device) if chosen else (None,) * 3
                if all(a in (None, b) for a, b in zip(wanted, place, strict=True)):
                    taint = msgspec.to_builtins(each.spec.taint)
                    device.setdefault("taints", []).append(taint)
        found.append(from_dict(ResourceSlice, {"metadata": {"name": slice_.name}, "spec": spec}))
    return found


def test_a_reader_that_fell_behind_starts_again() -> None:
    followed = Followed()
    for _ in range(20_000):
        followed.play(("put", ALL))
    followed.play(("put", S1))
    assert followed.tainted.changes() is None
    assert list(followed.tainted.every()) == [S1_TAINTED]
    assert followed.tainted.changes() == {}
