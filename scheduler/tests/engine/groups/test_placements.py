"""Groups with a required or preferred topology: the domain taken, and the reason where none fits.

Not covered: annotations that are faulty or disagree
(scheduler/tests/plugins/gangs/test_topology.py), live schedulers
(scheduler/tests/service/test_group_topology.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.placements import Choice, Placements
from moorage.framework.group import FilledPlacement
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.group_sources import API_SOURCE
from moorage.snapshot.pod_groups import GroupKey
from scheduler.tests.engine.groups.topology import SOURCES, Group, places, racks

OWN = (CUSTOM_SOURCE, LABEL_SOURCE)
NO_EVICTION = (
    "no new claims to deallocate, preemption: not eligible due to placement-based pod group "
    "scheduling limitation"
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("cpus", "bound", "expected"),
    [
        pytest.param(
            {"a": [1, 1], "b": [3], "": [9]},
            [],
            ("b", ["b-0", "b-0", "b-0"]),
            id="the only rack with room for all pods is taken",
        ),
        pytest.param(
            {"a": [4, 4], "b": [4], "c": [6]},
            [],
            ("b", ["b-0", "b-0", "b-0"]),
            id="of several racks the rack that is fullest afterwards is taken",
        ),
        pytest.param(
            {"a": [4], "b": [9]},
            ["b-0"],
            ("b", ["b-0", "b-0", "b-0"]),
            id="the rack of members that run is taken, though another one would be fuller",
        ),
    ],
)
def test_the_rack_that_a_group_requires(source, cpus, bound, expected):
    found = Group(racks(cpus), source, [1, 1, 1], required="rack", bound=bound).decide()
    assert found.outcome is GroupOutcome.PLACED
    assert (found.placement, list(places(found).values())) == expected


@pytest.mark.parametrize("source", OWN)
@pytest.mark.parametrize(
    ("cpus", "least", "bound", "placement", "nodes"),
    [
        pytest.param(
            {"a": [2, 2], "b": [1]}, 3, [], "a", "a-0 a-1 a-0", id="a rack that takes all pods"
        ),
        pytest.param(
            {"a": [2], "b": [2]}, 3, [], "", "a-0 b-0 a-0", id="anywhere, if no rack takes all"
        ),
        pytest.param(
            {"": [9]}, 3, [], "", "none-0 none-0 none-0", id="anywhere, if no node has the label"
        ),
        pytest.param(
            {"a": [2], "b": [1]},
            2,
            [],
            "",
            "a-0 a-0 b-0",
            id="anywhere, if more pods have a node there than in any rack",
        ),
        pytest.param(
            {"a": [1, 1], "b": [0]},
            2,
            [],
            "a",
            "a-0 a-1 ",
            id="a rack that takes as many pods as all nodes together",
        ),
        pytest.param(
            {"a": [9], "b": [4]},
            4,
            ["a-0"],
            "a",
            "a-0 a-0 a-0",
            id="the rack of members that run, though another one would be fuller",
        ),
        pytest.param(
            {"a": [2], "b": [4]},
            4,
            ["a-0"],
            "",
            "b-0 b-0 b-0",
            id="anywhere, if the rack of members that run takes no more",
        ),
    ],
)
def test_the_rack_that_a_group_prefers(source, cpus, least, bound, placement, nodes):
    group = Group(racks(cpus), source, [1, 1, 1], least=least, preferred="rack", bound=bound)
    found = group.decide()
    assert found.outcome is GroupOutcome.PLACED
    assert (found.placement, " ".join(places(found).values())) == (placement, nodes)


ZONES = {"a": {"zone": "x"}, "b": {"zone": "x"}, "c": {"zone": "y"}, "d": {"zone": "y"}}


@pytest.mark.parametrize("source", OWN)
@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param(
            {"a": [2], "b": [2], "c": [3], "d": [9]},
            ("y/c", "c-0 c-0 c-0"),
            id="a rack that takes all, in any zone",
        ),
        pytest.param(
            {"a": [2], "b": [1], "c": [1], "d": [1]},
            ("x", "a-0 a-0 b-0"),
            id="else a zone that takes all",
        ),
    ],
)
def test_a_preferred_rack_within_a_required_zone(source, cpus, expected):
    group = Group(racks(cpus, ZONES), source, [1, 1, 1], required="zone", preferred="rack")
    found = group.decide()
    assert found.outcome is GroupOutcome.PLACED
    assert (found.placement, " ".join(places(found).values())) == expected


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("cpus", "bound", "text"),
    [
        pytest.param(
            {"a": [2], "b": [1, 1], "c": [1]},
            [],
            "no domain of rack takes 3 pods (a takes 2, b takes {at_most}2, c takes {at_most}1); "
            "in a default/p2 has no node: 0/1 nodes are available: 1 Insufficient cpu. "
            + NO_EVICTION,
            id="how many pods each rack takes, and why the best rack takes no more",
        ),
        pytest.param(
            {rack: [1] for rack in "abcdefg"},
            [],
            "no domain of rack takes 3 pods (a takes 1, b takes {at_most}1, c takes {at_most}1, "
            "d takes {at_most}1, e takes {at_most}1, 2 more take no more than that); in a "
            "default/p1 and 1 more have no node: 0/1 nodes are available: 1 Insufficient cpu. "
            + NO_EVICTION,
            id="five racks are named at most",
        ),
        pytest.param(
            {"a": [2], "b": [9]},
            ["a-0"],
            "pods of the group run in a of rack, which takes 1 of 3 pods; in a default/p1 and 1 "
            "more have no node: 0/1 nodes are available: 1 Insufficient cpu. " + NO_EVICTION,
            id="that other pods of the group fix the rack",
        ),
        pytest.param({"": [9]}, [], "no node has the label rack", id="that no node has the label"),
    ],
)
def test_why_no_rack_fits(source, cpus, bound, text):
    group = Group(racks(cpus), source, [1, 1, 1], required="rack", bound=bound)
    found = group.decide()
    assert found.outcome is GroupOutcome.REJECTED
    said = found.explanation(group.pods)
    # Of the groups of Kubernetes every domain is tried, so each number is exact.
    for at_most in ("at most ", ""):
        if said.endswith(text.format(at_most=at_most)):
            break
    else:
        pytest.fail(said)
    generator = "TopologyPlacementGenerator" if source == API_SOURCE else "Coscheduling"
    for outcome in found.outcomes(group.pods):
        if outcome.diagnosis is not None:
            assert generator in outcome.diagnosis.unschedulable_plugins


@settings(max_examples=80, deadline=None)
@given(
    source=st.sampled_from(SOURCES),
    rooms=st.dictionaries(
        st.sampled_from(["a", "b", "c", ""]),
        st.lists(st.integers(0, 4), min_size=1, max_size=2),
        min_size=1,
    ),
    cpus=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    how=st.sampled_from(["required", "preferred"]),
    data=st.data(),
)
def test_a_rack_is_found_if_and_only_if_one_takes_the_group(source, rooms, cpus, how, data):
    if source == API_SOURCE:
        how = "required"
    # Other orders are tried for a group that is rejected, not to reach a preferred rack.
    orders = None if how == "required" else 0
    least = data.draw(st.integers(1, len(cpus)))
    asked: dict[str, Any] = {"least": least, "orders": orders}
    topology: dict[str, Any] = {how: "rack"}
    found = Group(racks(rooms), source, cpus, **asked, **topology).decide()
    again = Group(racks(rooms), source, cpus, reuse=False, **asked, **topology).decide()
    assert (found.outcome, found.placement, places(found)) == (
        again.outcome,
        again.placement,
        places(again),
    )
    # Each rack as a cluster of its own, without a topology: the real cycle says what it takes.
    alone = {
        rack: Group(racks({rack: room}), source, cpus, **asked).decide()
        for rack, room in rooms.items()
        if rack
    }
    count = {
        rack: sum(map(bool, places(each).values()))
        for rack, each in alone.items()
        if each.outcome is GroupOutcome.PLACED
    }
    placed = [name for name in places(found).values() if name]
    if how == "required":
        assert (found.outcome is GroupOutcome.PLACED) == bool(count)
        if count:
            assert {name.split("-")[0] for name in placed} == {found.placement}
            assert len(placed) == count[found.placement]
        return
    anywhere = Group(racks(rooms), source, cpus, **asked).decide()
    assert found.outcome is anywhere.outcome or count
    free = sum(map(bool, places(anywhere).values()))
    most = max(count.values(), default=0)
    if count and (most == len(cpus) or most >= free):
        assert found.placement in {rack for rack, each in count.items() if each == most}
        assert {name.split("-")[0] for name in placed} == {found.placement}
    else:
        assert (found.placement, places(found)) == ("", places(anywhere))


@settings(max_examples=40, deadline=None)
@given(cpus=st.permutations([1, 2, 3]), rooms=st.lists(st.integers(2, 4), min_size=4, max_size=4))
def test_other_orders_are_tried_within_racks(cpus, rooms):
    """A rack is found if some order of the pods fits one."""
    cluster = {"a": rooms[:2], "b": rooms[2:]}
    found = Group(racks(cluster), LABEL_SOURCE, cpus, required="rack").decide()
    orders = [
        Group(racks(cluster), API_SOURCE, order, required="rack").decide().outcome
        for order in permutations(cpus)
    ]
    assert (found.outcome is GroupOutcome.PLACED) == (GroupOutcome.PLACED in orders)


@pytest.mark.parametrize("source", OWN)
@pytest.mark.parametrize("how", ["required", "preferred"])
def test_of_many_domains_the_fullest_are_compared(source, how, monkeypatch):
    """Once a rack takes every pod, a bounded number of pods is tried in other racks."""
    cpus = {f"r{index}": [9 - index] for index in range(7)}
    tried: list[str] = []
    scored = Placements.best

    def best(self: Placements, key: GroupKey, filled: Sequence[FilledPlacement]) -> Any:
        tried.extend(each.placement.name for each in filled)
        return scored(self, key, filled)

    monkeypatch.setattr(Placements, "best", best)
    monkeypatch.setattr("moorage.engine.groups.placements._MEMBERS_MAX", 6)
    topology: dict[str, Any] = {how: "rack"}
    found = Group(racks(cpus), source, [1, 1, 1], **topology).decide()
    assert (tried, found.placement) == (["r6", "r5"], "r6")


@pytest.mark.parametrize("unlike", [False, True], ids=["like members", "unlike members"])
def test_of_many_nodes_with_too_little_room_one_is_tried_for_its_reasons(
    unlike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 members, 60 nodes with room for 6 of them: a node of each was tried before."""
    tried: list[str] = []
    in_turn = Choice.tried

    def taken(self: Choice, found: GroupDecision) -> None:
        tried.append(self._current.name)
        in_turn(self, found)

    monkeypatch.setattr(Choice, "tried", taken)
    cpus = {f"r{number}": [8 if unlike else 6] for number in range(60)}
    members = [1, 2] * 4 if unlike else [1] * 8
    found = Group(racks(cpus), CUSTOM_SOURCE, members, required="rack").decide()
    assert (found.outcome, len(tried)) == (GroupOutcome.REJECTED, 2 if unlike else 1)


@pytest.mark.parametrize(
    ("percentage", "expected"),
    [
        pytest.param(100, "b", id="of all placements the fullest is taken"),
        pytest.param(1, "a", id="the first that fits ends the search"),
        pytest.param(0, "b", id="adaptive: all placements of a small cluster"),
    ],
)
def test_how_many_placements_of_kubernetes_groups_are_tried(percentage, expected):
    group = Group(racks({"a": [4], "b": [3]}), API_SOURCE, [1, 1, 1], required="rack")
    profile = group.cycle.profile
    profile.spec = msgspec.structs.replace(
        profile.spec, percentage_of_placements_to_score=percentage
    )
    assert group.decide().placement == expected
