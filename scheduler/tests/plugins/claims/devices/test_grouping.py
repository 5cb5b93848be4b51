"""Nodes with equal signatures share a search; searches equal naive references."""

from __future__ import annotations

from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from moorage.api.codec import to_dict
from moorage.api.devices import ResourceSlice
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import INVALID_POOLS, Allocator
from moorage.plugins.claims.devices.contract import AllocationError, NodeAllocationError, NodeFacts
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.search import NodeSearch
from scheduler.tests.plugins.claims.devices.builders import (
    allocation,
    allocator,
    claim,
    class_,
    device,
    exactly,
    first_of,
    slice_,
)
from scheduler.tests.plugins.claims.devices.reference import TooLargeError, allocate_naively
from scheduler.tests.plugins.claims.devices.worlds import NODES, World


def plain(results) -> list[dict[str, Any]]:
    """Allocations without the ids of shares, which are drawn."""
    dicts = [to_dict(result) for result in results]
    for each in dicts:
        for device_ in each["devices"].get("results", ()):
            device_["shareID"] = "shareID" in device_
    return dicts


def one_by_one(allocates: Allocator, wanted) -> list[object]:
    answers: list[object] = []
    for node in NODES:
        try:
            results = allocates.allocate(node, wanted)
        except NodeAllocationError as error:
            answers.append(str(error))
        except AllocationError as error:
            return [str(error)]
        else:
            answers.append(None if results is None else plain(results))
    return answers


def grouped(allocates: Allocator, wanted) -> list[object]:
    try:
        demands = allocates.compile(wanted)
        found = allocates.allocate_nodes(NODES, demands)
    except AllocationError as error:
        return [str(error)]
    return [
        plain(allocates.results(node, demands, solution))
        if solution is not None
        else INVALID_POOLS
        if view.has_invalid_pool
        else None
        for node, (view, solution) in zip(NODES, found, strict=True)
    ]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_grouped_answers_equal_a_search_on_each_node(seed):
    world = World(seed)
    allocates = allocator(world.slices, class_(), held=world.held)
    assert grouped(allocates, world.claims) == one_by_one(allocates, world.claims)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_updated_inventory_answers_like_a_new_inventory(seed):
    world = World(seed)
    kept = Inventory()
    names: set[str] = set()
    for slices in (world.slices, world.draw_slices(), world.draw_slices()):
        for name in sorted(names - {found.name for found in slices}):
            kept.remove(name)
        for found in slices:
            kept.put_slice(found)
        names = {found.name for found in slices}
        ours = _over(kept)
        assert grouped(ours, world.claims) == one_by_one(_over(Inventory(slices)), world.claims)


def _over(inventory: Inventory) -> Allocator:
    rng, clock = Streams(1).stream("shares"), ManualClock()
    return Allocator(AllocatedState(), inventory, {"gpu": class_()}.get, rng=rng, clock=clock)


def _names(answer: object) -> object:
    """What the naive reference says of an answer."""
    if not isinstance(answer, list):
        return None
    return [
        [f"{each['request']}={each['pool']}/{each['device']}" for each in one["devices"]["results"]]
        for one in answer
    ]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_search_finds_the_same_as_trying_all_devices_in_order(seed):
    world = World(seed, is_plain=True)
    allocates = allocator(world.slices, class_(), held=world.held)
    try:
        expected = [allocate_naively(world.slices, world.held, n, world.claims) for n in NODES]
    except TooLargeError:
        reject()
    assert [_names(each) for each in one_by_one(allocates, world.claims)] == expected


def _node_slice(name: str, *, uid: bool) -> ResourceSlice:
    more: dict[str, Any] = {"uid": f"uid-{name}"} if uid else {}
    made = (device(f"{name}-{i}", attributes={"x": i % 2, **more}) for i in range(4))
    return slice_(f"s-{name}", *made, pool=name, nodeName=name)


def test_nodes_with_the_same_devices_are_searched_once(monkeypatch):
    """Names, and attributes nobody asks for, do not make devices different; being in use does."""
    runs = []
    real = NodeSearch.run

    def counting(search):
        runs.append(search)
        return real(search)

    monkeypatch.setattr(NodeSearch, "run", counting)
    nodes = [NodeFacts(f"n{i}", {}) for i in range(6)]
    slices = [_node_slice(node.name, uid=True) for node in nodes]
    held = [
        allocation({"pool": "n2", "device": "n2-0"}),
        allocation({"pool": "n4", "device": "n4-0"}),
    ]
    wanted = claim(exactly(count=2), constraints=[{"matchAttribute": "gpu.example.com/x"}])
    allocates = allocator(slices, held=held)
    demands = allocates.compile([wanted])
    found = allocates.allocate_nodes(nodes, demands)
    assert len(runs) == 2
    taken = [
        [each.device for each in result.devices.results]
        for node, (_, solution) in zip(nodes, found, strict=True)
        if solution is not None
        for result in allocates.results(node, demands, solution)
    ]
    assert taken == [
        ["n0-0", "n0-2"],
        ["n1-0", "n1-2"],
        ["n2-1", "n2-3"],
        ["n3-0", "n3-2"],
        ["n4-1", "n4-3"],
        ["n5-0", "n5-2"],
    ]


def test_the_chosen_alternative_is_reported_for_each_node():
    nodes = [NodeFacts("n0", {}), NodeFacts("n1", {}), NodeFacts("n2", {})]
    slices = [_node_slice("n0", uid=False), slice_("s-n1", device("a"), pool="n1", nodeName="n1")]
    wanted = claim(first_of("f", exactly("many", 3), exactly("one", 1)))
    allocates = allocator(slices)
    demands = allocates.compile([wanted, claim(name="nothing")])
    found = allocates.allocate_nodes(nodes, demands)
    assert [each and each.chosen for _, each in found] == [((0,), ()), ((1,), ()), None]


def test_counters_of_devices_that_no_request_selects_distinguish_nodes():
    def pool(name: str) -> list[ResourceSlice]:
        whole = {"name": "whole", "counters": {"slots": {"value": "1"}}}
        takes = {"consumesCounters": [{"counterSet": "whole", "counters": whole["counters"]}]}
        return [
            slice_(f"{name}-0", sharedCounters=[whole], pool=name, nodeName=name, count=2),
            slice_(
                f"{name}-1",
                device("wanted", attributes={"x": 1}, **takes),
                device("other", **takes),
                device("spare"),
                pool=name,
                nodeName=name,
                count=2,
            ),
        ]

    held = [
        allocation({"pool": "n0", "device": "spare"}),
        allocation({"pool": "n1", "device": "other"}),
    ]
    wanted = claim(exactly("r", 1, 'has(device.attributes["gpu.example.com"].x)'))
    allocates = allocator([*pool("n0"), *pool("n1")], held=held)
    nodes = [NodeFacts("n0", {}), NodeFacts("n1", {})]
    found = allocates.allocate_nodes(nodes, allocates.compile([wanted]))
    assert [each is not None for _, each in found] == [True, False]


def test_a_slice_of_another_node_completes_a_pool():
    node = NodeFacts("n0", {})
    kept = Inventory([slice_("s0", device("a"), nodeName="n0", count=2)])
    assert _over(kept).allocate(node, [claim(exactly())]) is None
    kept.put_slice(slice_("s1", device("b"), nodeName="n1", count=2))
    assert _over(kept).allocate(node, [claim(exactly())]) is not None
    kept.remove("s1")
    assert _over(kept).allocate(node, [claim(exactly())]) is None


def test_labels_of_a_node_may_change():
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    kept = Inventory([slice_("s0", device("a"), nodeSelector=where)])
    found = [
        _over(kept).allocate(NodeFacts("n0", {"zone": zone_name}), [claim(exactly())]) is not None
        for zone_name in ("a", "b", "a")
    ]
    assert found == [True, False, True]


def test_dropped_views_and_signatures_are_computed_again(monkeypatch):
    monkeypatch.setattr("moorage.plugins.claims.devices.inventory._SIGNATURES_MAX", 1)
    monkeypatch.setattr("moorage.plugins.claims.devices.inventory._SIGNATURES_OF_A_VIEW_MAX", 0)
    monkeypatch.setattr("moorage.plugins.claims.devices.grouping._SIGNATURES_MAX", 1)
    monkeypatch.setattr("moorage.plugins.claims.devices.offered._JUDGEMENTS_MAX", 1)
    for seed in range(10):
        world = World(seed)
        inventory = Inventory(world.slices)
        for wanted in ([each] for each in world.claims * 2):
            allocates = _over(inventory)
            assert grouped(allocates, wanted) == one_by_one(allocates, wanted)
            assert grouped(allocates, wanted) == grouped(_over(Inventory(world.slices)), wanted)
