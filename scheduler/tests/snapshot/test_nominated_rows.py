"""Sums of nominated pods: kept by what changed, they are those added up afresh."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import PodStatus
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.nominated_rows import NominatedRows
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import node, pod

PODS = 6
NODES = 3


def made(index: int) -> PodInfo:
    """Return one of a few pods: priorities 0 to 2, cpu or memory or both."""
    requests = {}
    if index % 2 == 0:
        requests["cpu"] = str(index + 1)
    if index % 3 == 0:
        requests["memory"] = str(10 * index)
    return PodInfo(pod(f"p{index}", requests=requests, priority=index % 3))


class World:
    """Nodes, pods on them, and nominations with a log of what changed."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.nominations: dict[str, Sequence[PodInfo]] = {}
        self.log: KeyLog[str] = KeyLog(4)
        self.kept = NominatedRows(self.snapshot.table)

    def nominate(self, index: int, name: str) -> None:
        info = made(index)
        for other, pods in list(self.nominations.items()):
            left = tuple(each for each in pods if each.uid != info.uid)
            if len(left) < len(pods):
                self._put(other, left)
        if name:
            self._put(name, (*self.nominations.get(name, ()), info))

    def _put(self, name: str, pods: Sequence[PodInfo]) -> None:
        self.nominations[name] = pods
        if not pods:
            del self.nominations[name]
        self.log.append(name)

    def place(self, index: int, name: str) -> None:
        table, info = self.snapshot.table, made(index)
        if table.node_of_pod(info.uid) is not None:
            table.remove_pod(info.uid)
        elif self.snapshot.row_of(name) is not None:
            table.add_pod(info.pod, name)

    def toggle(self, name: str) -> None:
        table = self.snapshot.table
        if not table.has_node(name):
            table.add_node(node(name))
        elif not table.pods_by_row[self.snapshot.row_of(name) or 0]:
            table.remove_node(name)


def wanted(world: World, asked: PodInfo) -> list[tuple[int, int, int, int]]:
    """Add up afresh: (row, cpu, memory, pods)."""
    found = []
    for name, pods in world.nominations.items():
        row = world.snapshot.row_of(name)
        first = [
            each
            for each in pods
            if each.priority >= asked.priority
            and each.uid != asked.uid
            and world.snapshot.table.node_of_pod(each.uid) is None
        ]
        if row is not None and first:
            amounts = [dict(each.pod.spec.containers[0].resources.requests) for each in first]
            cpu = sum(1000 * int(each.get("cpu", 0)) for each in amounts)
            memory = sum(int(each.get("memory", 0)) for each in amounts)
            found.append((row, cpu, memory, len(first)))
    return sorted(found)


def said(world: World, asked: PodInfo) -> list[tuple[int, int, int, int]]:
    world.kept.follow(world.nominations, world.log)
    positions, sums = world.kept.among(asked, np.arange(len(world.snapshot.names)))
    assert positions.tolist() == sums.rows.tolist()
    cpu, memory = sums.amounts["cpu"].tolist(), sums.amounts["memory"].tolist()
    return list(zip(sums.rows.tolist(), cpu, memory, sums.pods.tolist(), strict=True))


steps = st.lists(
    st.tuples(
        st.sampled_from(["nominate", "nominate", "place", "toggle", "ask", "ask"]),
        st.integers(0, PODS - 1),
        st.integers(-1, NODES - 1),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_sums_kept_by_change_are_those_added_up_afresh(history: list[tuple[str, int, int]]) -> None:
    world = World()
    for index in range(NODES):
        world.toggle(f"n{index}")
    for what, pod_index, node_index in history:
        name = f"n{node_index}" if node_index >= 0 else ""
        if what == "nominate":
            world.nominate(pod_index, name)
        elif what == "place" and name:
            world.place(pod_index, name)
        elif what == "toggle" and name:
            world.toggle(name)
        for priority in (0, 1, 2) if what == "ask" else ():
            requests = {"cpu": "1", "memory": "1"}
            asked = PodInfo(pod(f"p{pod_index}", requests=requests, priority=priority))
            assert said(world, asked) == wanted(world, asked)


def test_another_version_of_a_nominated_pod_changes_no_sums_unless_the_pod_got_its_node() -> None:
    world = World()
    world.toggle("n0")
    world.nominate(2, "n0")
    asked = PodInfo(pod("asking", requests={"cpu": "1", "memory": "1"}))
    world.kept.follow(world.nominations, world.log)
    log = world.kept.level(0).log
    for ready in (False, True):
        before, old = log.position, world.nominations["n0"][0]
        status = {"phase": "Running" if ready else "Pending", "nominatedNodeName": "n0"}
        newer = msgspec.structs.replace(old.pod, status=from_dict(PodStatus, status))
        world._put("n0", (old.version(newer),))
        if ready:
            world.place(2, "n0")
        assert said(world, asked) == wanted(world, asked)
        assert (log.position > before) is ready
        assert world.kept.own(old) == (0, world.nominations["n0"][0])


def test_a_pod_that_lost_its_node_counts_where_it_is_nominated_next() -> None:
    """The next node changed before the last one did, so it is looked at first."""
    world = World()
    for index in range(NODES):
        world.toggle(f"n{index}")
    asked = PodInfo(pod("asked", requests={"cpu": "1", "memory": "1"}))
    world.nominate(2, "n0")
    world.place(2, "n0")
    assert said(world, asked) == []
    world.place(2, "n0")  # its binding failed
    world.nominate(0, "n1")
    world.nominate(2, "n1")
    assert said(world, asked) == wanted(world, asked) == [(1, 4000, 0, 2)]


def test_sums_of_some_rows_are_found_in_any_order() -> None:
    world = World()
    for index in range(NODES):
        world.toggle(f"n{index}")
    world.nominate(0, "n2")
    world.nominate(2, "n0")
    asked = PodInfo(pod("asked", requests={"cpu": "1"}))
    world.kept.follow(world.nominations, world.log)
    positions, mine = world.kept.among(asked, np.array([2, 1, 0]))
    assert positions.tolist() == [0, 2]
    assert (mine.rows.tolist(), mine.amounts["cpu"].tolist()) == ([2, 0], [1000, 3000])
