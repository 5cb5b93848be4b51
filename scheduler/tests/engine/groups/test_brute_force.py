"""Groups on small clusters, decided by the real plugins, and every node tried for every member.

A group is placed if and only if some places fit, and what is called impossible has none. There are
at most 6 members of two resources and 5 nodes, selectors, tolerations, ports, and members that may
not share a node or a zone, or that need another one next to them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from moorage.base.rng import Random, Streams
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupOutcome, SearchEnd
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.groups.test_cycle import KEY, cycle_for

HOST, ZONE = "kubernetes.io/hostname", "zone"
Fields: TypeAlias = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def small_cluster(rng: Random) -> list[Fields]:
    """Return the fields of some nodes."""
    return [
        {
            "cpu": rng.randint(1, 6),
            "memory": rng.randint(1, 6),
            "zone": f"z{rng.randrange(2)}",
            "fast": rng.random() < 0.7,
            "tainted": rng.random() < 0.15,
        }
        for _ in range(rng.randint(1, 5))
    ]


def small_group(rng: Random) -> list[Fields]:
    """Return the fields of some members: what one asks for, and with which it may be."""
    kinds = [
        {
            "cpu": rng.randint(0, 3),
            "memory": rng.randint(0, 3),
            "app": f"a{number}",
            "fast": rng.random() < 0.2,
            "tolerates": rng.random() < 0.5,
            "port": 8080 if rng.random() < 0.15 else 0,
            "apart": f"a{rng.randrange(3)}" if rng.random() < 0.35 else "",
            "near": f"a{rng.randrange(3)}" if rng.random() < 0.1 else "",
            "key": rng.choice([HOST, HOST, ZONE]),
        }
        for number in range(rng.randint(2, 3))
    ]
    return [rng.choice(kinds) for _ in range(rng.randint(2, 6))]


def fits(members: Sequence[Fields], nodes: Sequence[Fields], least: int) -> bool:
    """Whether so many members have places at once: each node is tried for each member."""
    return Places(members, nodes, least).exist()


class Places:
    """The places tried so far: the row of each member, None for a member without a place."""

    def __init__(self, members: Sequence[Fields], nodes: Sequence[Fields], least: int) -> None:
        self._members = members
        self._nodes = nodes
        self._least = least
        self._rows: list[int | None] = []

    def exist(self) -> bool:
        """Whether the members that are left have places next to those that have one."""
        at = len(self._rows)
        placed = sum(row is not None for row in self._rows)
        if placed + len(self._members) - at < self._least:
            return False
        if at == len(self._members):
            return self._come_in_some_order()
        for row in (*range(len(self._nodes)), None):
            if row is None or self._may(self._members[at], row):
                self._rows.append(row)
                if self.exist():
                    return True
                self._rows.pop()
        return False

    def _may(self, member: Fields, row: int) -> bool:
        node, here = (
            self._nodes[row],
            [each for each, there in zip(self._members, self._rows, strict=False) if there == row],
        )
        return (
            (node["fast"] or not member["fast"])
            and (member["tolerates"] or not node["tainted"])
            and all(
                member[name] + sum(each[name] for each in here) <= node[name]
                for name in ("cpu", "memory")
            )
            and not (member["port"] and any(each["port"] for each in here))
            and not any(
                there is not None and self._apart(member, row, other, there)
                for other, there in zip(self._members, self._rows, strict=False)
            )
        )

    def _apart(self, one: Fields, row: int, other: Fields, there: int) -> bool:
        pairs = ((one, other), (other, one))
        return any(a["apart"] == b["app"] and self._same(a["key"], row, there) for a, b in pairs)

    def _same(self, key: str, row: int, there: int) -> bool:
        return row == there if key == HOST else self._zone(row) == self._zone(there)

    def _zone(self, row: int) -> Any:
        return self._nodes[row]["zone"]

    def _come_in_some_order(self) -> bool:
        """Whether each member can come once the one that it needs next to it is there."""
        left = {at: row for at, row in enumerate(self._rows) if row is not None}
        there: dict[int, int] = {}
        while more := [at for at in left if self._finds(self._members[at], left[at], there)]:
            there[more[0]] = left.pop(more[0])
        return not left

    def _finds(self, member: Fields, row: int, there: dict[int, int]) -> bool:
        needed = [at for at in there if self._members[at]["app"] == member["near"]]
        if not member["near"]:
            return True
        if not needed:  # the first of its own kind may come alone
            return bool(member["near"] == member["app"])
        return any(self._same(member["key"], row, there[at]) for at in needed)


def built(members: Sequence[Fields]) -> list[PodInfo]:
    return [PodInfo(_pod(number, each)) for number, each in enumerate(members)]


def _pod(number: int, member: Fields) -> Any:
    affinity = {}
    for field, kind in (("apart", "podAntiAffinity"), ("near", "podAffinity")):
        if member[field]:
            labels = {"matchLabels": {"app": member[field]}}
            affinity[kind] = {REQUIRED: [{"topologyKey": member["key"], "labelSelector": labels}]}
    return pod(
        f"p{number}",
        cpu=str(member["cpu"]) if member["cpu"] else None,
        memory=f"{member['memory']}Gi" if member["memory"] else None,
        labels={"app": member["app"]},
        node_selector={"disk": "fast"} if member["fast"] else {},
        tolerations=[{"operator": "Exists"}] if member["tolerates"] else [],
        host_ports=[member["port"]] if member["port"] else [],
        schedulingGroup={"podGroupName": "g"},
        **({"affinity": affinity} if affinity else {}),
    )


def decided(seed: int) -> tuple[bool, bool, bool, bool]:
    """Return whether places exist, are found, are called impossible, and rules cross nodes."""
    rng = Streams(seed).stream("small groups")
    nodes, members = small_cluster(rng), small_group(rng)
    least = len(members) if rng.random() < 0.7 else rng.randint(1, len(members))
    snapshot = Snapshot()
    for number, each in enumerate(nodes):
        labels = {"zone": each["zone"], **({"disk": "fast"} if each["fast"] else {})}
        taints = [{"key": "used", "effect": "NoSchedule"}] if each["tainted"] else []
        made = node(
            f"n{number}",
            cpu=str(each["cpu"]),
            memory=f"{each['memory']}Gi",
            labels=labels,
            taints=taints,
        )
        snapshot.table.add_node(made)
    pods = built(members)
    found = GroupCycle(cycle_for(snapshot, pods, least, orders=4)).decide_group(KEY, pods)
    impossible = found.search is not None and found.search.end is SearchEnd.IMPOSSIBLE
    crossing = any(each["near"] or (each["apart"] and each["key"] == ZONE) for each in members)
    placed = found.outcome is GroupOutcome.PLACED
    return fits(members, nodes, least), placed, impossible, crossing


# Of 250 groups each. BRUTE_FORCE_BLOCKS=80 plays the 20,000 groups of decision 10.
_BLOCKS = int(os.environ.get("BRUTE_FORCE_BLOCKS", "16"))


@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, _BLOCKS))]
)
def test_a_group_is_placed_if_and_only_if_some_places_fit(block: int) -> None:
    for seed in range(block * 250, block * 250 + 250):
        some, placed, impossible, crossing = decided(seed)
        assert not (placed and not some), seed
        assert not (impossible and some), seed
        if not crossing:
            assert placed is some, seed
