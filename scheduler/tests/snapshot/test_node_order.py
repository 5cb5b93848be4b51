"""The order of nodes: one of each zone in turn, against kube-scheduler's rules told plainly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.snapshot.node_order import zone_of
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import cluster, node

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA = "failure-domain.beta.kubernetes.io/"


def zoned(name: str, zone: str = "") -> Any:
    return node(name, labels={ZONE: zone} if zone else {})


def order(snapshot: Snapshot) -> list[str]:
    names = list(snapshot.table.order.names())
    assert [snapshot.names[int(row)] for row in snapshot.search_order()] == names
    return names


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        pytest.param({}, ("", ""), id="no labels"),
        pytest.param({ZONE: "a"}, ("", "a"), id="a zone without a region"),
        pytest.param({ZONE: "a", REGION: "r"}, ("r", "a"), id="zone and region"),
        pytest.param({ZONE: "a", f"{BETA}zone": "b"}, ("", "b"), id="the beta label wins"),
        pytest.param({ZONE: "a", f"{BETA}zone": ""}, ("", ""), id="an empty beta label wins too"),
        pytest.param({f"{BETA}region": "r", ZONE: "a"}, ("r", "a"), id="each part by itself"),
    ],
)
def test_zone_of_a_node(labels, zone):
    assert zone_of(labels) == zone


def test_zones_take_turns_and_those_that_ran_out_are_passed_over():
    names = ["a1", "a2", "b1", "a3", "c1", "b2", "a4"]
    snapshot = cluster(*(zoned(name, name[0]) for name in names))
    assert order(snapshot) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_nodes_without_zones_stay_in_the_order_they_came_whatever_their_rows():
    snapshot = cluster(*(node(f"n{i}") for i in range(5)))
    snapshot.table.remove_node("n1")
    snapshot.table.add_node(node("n1"))
    assert order(snapshot) == ["n0", "n2", "n3", "n4", "n1"]
    assert list(snapshot.names) == ["n0", "n4", "n2", "n3", "n1"]


def test_an_empty_zone_is_forgotten_and_comes_back_at_the_end():
    snapshot = cluster(zoned("a1", "a"), zoned("b1", "b"))
    snapshot.table.remove_node("a1")
    assert order(snapshot) == ["b1"]
    snapshot.table.add_node(zoned("a1", "a"))
    assert order(snapshot) == ["b1", "a1"]


def test_a_change_of_zone_shows_only_when_a_node_comes_or_goes():
    snapshot = cluster(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"))
    before = order(snapshot)
    snapshot.table.update_node(zoned("a1", "b"))
    assert order(snapshot) == before == ["a1", "b1", "a2"]
    snapshot.table.add_node(zoned("c1", "c"))
    assert order(snapshot) == ["a2", "b1", "c1", "a1"]


def test_a_node_that_went_and_came_back_unnoticed_keeps_its_place():
    snapshot = cluster(node("n1"), node("n2"))
    assert order(snapshot) == ["n1", "n2"]
    snapshot.table.remove_node("n1")
    snapshot.table.add_node(node("n1"))
    assert order(snapshot) == ["n1", "n2"]
    snapshot.table.add_node(node("n3"))
    assert order(snapshot) == ["n2", "n1", "n3"]


class Plainly:
    """The same told with lists: the tree at once, the list when names came or went."""

    def __init__(self) -> None:
        self.tree: list[tuple[str, list[str]]] = []
        self.listed: list[str] = []

    def put(self, name: str, zone: str) -> None:
        if any(name in names for have, names in self.tree if have == zone):
            return
        self.remove(name)
        for have, names in self.tree:
            if have == zone:
                names.append(name)
                return
        self.tree.append((zone, [name]))

    def remove(self, name: str) -> None:
        self.tree = [(zone, [n for n in names if n != name]) for zone, names in self.tree]
        self.tree = [(zone, names) for zone, names in self.tree if names]

    def names(self) -> Sequence[str]:
        now = {name for _, names in self.tree for name in names}
        if now != set(self.listed):
            longest = max((len(names) for _, names in self.tree), default=0)
            self.listed = [
                names[k] for k in range(longest) for _, names in self.tree if k < len(names)
            ]
        return self.listed


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "x", "y", "z"])),
        st.tuples(st.sampled_from("abcdef"), st.none()),
        st.none(),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_the_node_order_equals_a_plain_model(steps):
    snapshot, plainly = Snapshot(), Plainly()
    for step in steps:
        if step is None:
            assert order(snapshot) == list(plainly.names())
        elif step[1] is not None:
            snapshot.table.add_node(zoned(*step))
            plainly.put(*step)
        elif snapshot.row_of(step[0]) is not None:
            snapshot.table.remove_node(step[0])
            plainly.remove(step[0])
    assert order(snapshot) == list(plainly.names())
