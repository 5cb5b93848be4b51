"""Scores by use where devices provide an extended resource: offered and allocated devices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from moorage.framework.cycle_state import CycleState
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.contract import DeviceID, NodeFacts
from moorage.plugins.claims.devices.offered import KindTable, OfferedSlice, offer
from moorage.plugins.resources.device_totals import DeviceTotals
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import ROOM, handle, make, node, pod
from scheduler.tests.plugins.claims.builders import (
    allocated,
    claim,
    device_class,
    devices,
    offered,
    put,
    result,
)
from scheduler.tests.plugins.claims.test_device_rows import Cluster

GPU = "example.com/gpu"
ASKED = PodInfo(pod(requests={GPU: "1", "cpu": "1"}))


def some_taken() -> Snapshot:
    """Return nodes with four devices of which one is taken, two, a device plugin, and nothing."""
    return devices(
        device_class(resource=GPU),
        offered("a", "a0", "a1", "a2", "a3"),
        offered("b", "b0", "b1"),
        claim("held", allocation=allocated("a", result("a", "a2"))),
        nodes=("a", "b", node("plugin", allocatable={**ROOM, GPU: "10"}), "bare"),
    )


def totals(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    found = DeviceTotals(handle(snapshot)).totals_of(snapshot.all(), GPU)
    assert found is not None
    pairs = zip(*(each.tolist() for each in found), strict=True)
    return dict(zip(snapshot.names, pairs, strict=True))


def test_totals_follow_new_slices_and_allocations():
    snapshot = some_taken()
    assert totals(snapshot) == {"a": (4, 1), "b": (2, 0), "plugin": (0, 0), "bare": (0, 0)}
    counted = DeviceTotals(handle(snapshot))
    assert counted.totals_of(snapshot.all(), "cpu") is None
    assert counted.totals_of(snapshot.all(), "example.com/other") is None
    for there, taken in (([4, 2, 0, 0], [1, 0, 0, 0]), ([4, 3, 0, 0], [1, 1, 0, 0])):
        found = counted.totals_of(snapshot.all(), GPU)
        assert found is not None
        assert [each.tolist() for each in found] == [there, taken]
        put(snapshot, offered("b", "b0", "b1", "b2"))
        put(snapshot, claim("more", allocation=allocated("b", result("b", "b0"))))


def test_a_slice_of_one_node_is_asked_about_by_that_node_once(monkeypatch):
    snapshot, asked = some_taken(), list[tuple[str, str]]()
    was = OfferedSlice.is_reached_from

    def counted(self: OfferedSlice, node: NodeFacts) -> bool:
        asked.append((self.pool.pool, node.name))
        return was(self, node)

    monkeypatch.setattr(OfferedSlice, "is_reached_from", counted)
    totals = DeviceTotals(handle(snapshot))
    for _ in range(2):
        assert totals.totals_of(snapshot.all(), GPU) is not None
    assert asked == [("a", "a"), ("b", "b")]
    asked.clear()
    snapshot.table.update_node(node("a", labels={"rack": "1"}))
    assert totals.totals_of(snapshot.all(), GPU) is not None
    assert asked == [("a", "a")]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        pytest.param(
            ['device.driver == "gpu.example"'], (4, 1), id="the selector matches all devices"
        ),
        pytest.param(["false"], (0, 0), id="the selector matches no device"),
        pytest.param(
            ["true", "device.driver =="],
            (0, 0),
            id="an unreadable selector after a selector that matches",
        ),
        pytest.param(
            ["false", "device.driver =="],
            (0, 0),
            id="an unreadable selector after a selector that does not match",
        ),
    ],
)
def test_totals_count_devices_of_the_class_only(selectors, expected):
    snapshot = some_taken()
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
    put(snapshot, device_class(resource=GPU, **spec))
    assert totals(snapshot)["a"] == expected


def test_a_score_by_use_counts_devices_where_no_device_plugin_offers_the_resource():
    snapshot = some_taken()
    strategy = ScoringStrategy(type="LeastAllocated", resources=(ResourceSpec(name=GPU, weight=1),))
    fit, _ = make(
        "NodeResourcesFit", snapshot, args=NodeResourcesFitArgs(scoring_strategy=strategy)
    )
    # (4-2)/4, (2-1)/2, (10-1)/10; what a node does not have does not score.
    assert fit.score(CycleState(), ASKED, snapshot.all()).tolist() == [50, 50, 90, 0]
    assert fit.score(CycleState(), PodInfo(pod()), snapshot.all()).tolist() == [0, 0, 0, 0]
    assert fit.never_reused(ASKED)


def test_balanced_allocation_counts_devices():
    snapshot = some_taken()
    both = tuple(ResourceSpec(name=name, weight=1) for name in ("cpu", GPU))
    balanced, _ = make(
        "NodeResourcesBalancedAllocation",
        snapshot,
        args=NodeResourcesBalancedAllocationArgs(resources=both),
    )
    # Shares of cpu and devices with the pod: 1/4 and 2/4, 1/4 and 1/2, 1/4 and 1/10; without it 0
    # and 1/4, 0 and 0, 0 and 0. Where there are none, cpu is by itself and in balance.
    with_pod, without = (87, 87, 92, 100), (87, 100, 100, 100)
    expected = [50 + (50 + more - less) // 2 for more, less in zip(with_pod, without, strict=True)]
    assert balanced.score(CycleState(), ASKED, snapshot.all()).tolist() == expected


def counted_one_by_one(cluster: Cluster, expression: str) -> list[tuple[int, int]]:
    """Return each row's devices and those in use, by a look at every slice for every node."""
    kinds, allocated_state = KindTable(), cluster.fresh().allocated
    slices = [
        offer(each, kinds, consumable_capacity=True)
        for each in cluster.listers.resource_slices.all()
    ]
    counts = []
    for row in range(cluster.snapshot.num_nodes):
        node_facts = cluster.facts(row)
        reached = [
            device.id
            for slice_ in slices
            if slice_.is_reached_from(node_facts)
            for device in slice_.devices
            if device.kind.fulfils_selector(expression) is True
            and slice_.device_is_reached_from(device.device, node_facts)
        ]
        counts.append((len(reached), sum(map(allocated_state.is_used, reached))))
    return counts


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), changes=st.lists(st.integers(0, 3), min_size=3, max_size=12))
def test_kept_counts_equal_a_count_of_every_slice_for_every_node(seed, changes):
    cluster, expression = Cluster(seed), "true"
    selectors: dict[str, Any] = {"selectors": [{"cel": {"expression": expression}}]}
    cluster.listers.device_classes.put(device_class("counted", resource=GPU, **selectors))
    snapshot = cluster.snapshot
    totals = DeviceTotals(cluster.handle)
    for count in changes:
        for _ in range(count):
            cluster.change()
        rows = snapshot.all() if count % 2 else snapshot.rows([snapshot.num_nodes - 1])
        counts = totals.totals_of(rows, GPU)
        assert counts is not None
        expected = counted_one_by_one(cluster, expression)
        chosen = [expected[row] for row in rows.row_numbers().tolist()]
        assert list(zip(*(each.tolist() for each in counts), strict=True)) == chosen


def test_only_the_devices_of_changed_pools_are_counted_again(monkeypatch):
    """Counting every device for each pod took most of a decision with 20 devices a node."""
    snapshot, judged = some_taken(), list[str]()
    was = AllocatedState.is_used

    def counted(self: AllocatedState, device: DeviceID) -> bool:
        judged.append(device.device)
        return was(self, device)

    monkeypatch.setattr(AllocatedState, "is_used", counted)
    totals = DeviceTotals(handle(snapshot))
    totals.totals_of(snapshot.all(), GPU)
    assert judged == ["a0", "a1", "a2", "a3", "b0", "b1"]
    judged.clear()
    totals.totals_of(snapshot.all(), GPU)
    assert judged == []
    put(snapshot, claim("more", allocation=allocated("b", result("b", "b0"))))
    totals.totals_of(snapshot.all(), GPU)
    assert judged == ["b0", "b1"]
