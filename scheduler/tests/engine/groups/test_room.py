"""The upper bound on members with a place: by hand, and never below what an attempt finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.engine.decision import Outcome
from moorage.engine.groups.room import all_rank_as_high, fits_at_most, judges_of_room
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage_sandbox.testing.builders import node, pod


def cluster(cpus: list[int], *, pods: str = "110", memory: str = "8Gi") -> Core:
    core = build_core(
        LoadedConfiguration(), in_tree_registry(), clock=ManualClock(), streams=Streams(1)
    )
    for index, cpu in enumerate(cpus):
        made = node(f"n{index}", cpu=str(cpu), memory=memory, pods=pods)
        core.snapshot.table.add_node(made)
    return core


def members(*cpus: int, memory: str | None = None) -> list[PodInfo]:
    return [info_of(pod(f"p{i}", cpu=str(cpu), memory=memory)) for i, cpu in enumerate(cpus)]


@pytest.mark.parametrize(
    ("core", "pods", "expected"),
    [
        pytest.param(cluster([4, 3]), members(2, 2, 2, 2), 3, id="whole members on each node"),
        pytest.param(cluster([8]), members(2, 2), 2, id="no more than there are members"),
        pytest.param(cluster([4]), members(3, 1, 3), 3, id="unlike members: the smallest request"),
        pytest.param(cluster([8], pods="2"), members(1, 1, 1), 2, id="the number of pods"),
        pytest.param(cluster([8]), members(1, 1, 1, memory="4Gi"), 2, id="memory"),
        pytest.param(cluster([1], pods="1"), members(0, 0), 1, id="members that request nothing"),
        pytest.param(cluster([]), members(1), 0, id="no node"),
    ],
)
def test_at_most_how_many_members_fit(core: Core, pods: list[PodInfo], expected: int):
    assert fits_at_most(core.snapshot, pods) == expected


@given(
    cpus=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    running=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=4),
    wanted=st.lists(st.integers(1, 3), min_size=1, max_size=8),
)
def test_no_attempt_places_more_than_the_bound(cpus, running, wanted):
    core = cluster(cpus)
    for index, (number, cpu) in enumerate(running):
        core.snapshot.table.add_pod(pod(f"r{index}", cpu=str(cpu)), f"n{number % len(cpus)}")
    pods = members(*wanted)
    bound = fits_at_most(core.snapshot, pods)
    placed = 0
    for each in pods:
        decision = core.cycles["default-scheduler"].decide(each)
        if decision.outcome is Outcome.BIND:
            core.snapshot.table.add_pod(each, decision.node_name)
            placed += 1
    assert placed <= bound


def test_the_bound_is_no_reason_where_a_pod_of_lower_priority_runs():
    core = cluster([4])
    core.snapshot.table.add_pod(pod("low", cpu="4", priority=5), "n0")
    assert all_rank_as_high(core.snapshot, 5)
    assert not all_rank_as_high(core.snapshot, 6)


def test_the_plugin_that_judges_room_is_the_one_of_resources():
    assert judges_of_room(cluster([4]).profiles["default-scheduler"]) == {"NodeResourcesFit"}
