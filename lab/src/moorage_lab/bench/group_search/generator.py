"""Groups of unlike pods that fit by construction, and the nodes that they fit on.

Some nodes of a group carry it: their room is the sum of the members that they were made for, and a
little more. The other nodes have room at random, so the places are hidden among them.

Exact groups: scheduling spec, gang section D.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.base.rng import Random, Streams

ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "topology.kubernetes.io/rack"

_EXACT_NODES: Final = 6
_EXACT_ROOM: Final = (16_000, 64 * 1024)  # millicores and MiB
_PARTS: Final = (2, 7)
_SLACKS: Final = (0.0, 0.1, 0.2)
_GROUPS_A_CELL: Final = 40


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one member.

    Parameters
    ----------
    cpu_milli, memory_mib
        The requests.
    app
        Value of its label ``app``.
    apart
        Values of the label ``app`` of members that may not share its node.
    """

    cpu_milli: int
    memory_mib: int
    app: str = ""
    apart: tuple[str, ...] = ()


class FreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node as a group finds it: what is free there, and its labels."""

    cpu_milli: int
    memory_mib: int
    zone: str = ""
    rack: str = ""
    pool: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its nodes.

    Parameters
    ----------
    family
        Name of the kind of groups, for the table.
    seed
        The seed that makes this case again.
    members
        The members, in the order in which they are tried.
    nodes
        All nodes of the cluster.
    pool
        The members may go to nodes of this pool only; "" for all nodes.
    two_levels
        Whether all members must be in one zone, and prefer one rack.
    """

    family: str
    seed: int
    members: tuple[Shape, ...]
    nodes: tuple[FreeNode, ...]
    pool: str = ""
    two_levels: bool = False


def exact_cases(seed: int, *, of_each: int = _GROUPS_A_CELL) -> list[Case]:
    """Return the groups of six cells: cpu alone or both resources, and three amounts of slack."""
    cpu, memory = _EXACT_ROOM
    nodes = tuple(
        FreeNode(cpu_milli=cpu, memory_mib=memory, pool=f"group-{number}")
        for number in range(of_each)
        for _ in range(_EXACT_NODES)
    )
    return [
        _exact_case(seed, number, dimensions=dimensions, slack=slack, nodes=nodes)
        for dimensions in (1, 2)
        for slack in _SLACKS
        for number in range(of_each)
    ]


def _exact_case(
    seed: int, number: int, *, dimensions: int, slack: float, nodes: tuple[FreeNode, ...]
) -> Case:
    """Return a group that was cut out of six equal nodes; some members of it are left out."""
    rng = Streams(seed + number).stream("exact group")
    cpu, memory = _EXACT_ROOM
    members: list[Shape] = []
    for _ in range(_EXACT_NODES):
        parts = rng.randint(*_PARTS)
        cpus = [250 * each for each in _cut(rng, cpu // 250, parts)]
        memories = [1024 * each for each in _cut(rng, memory // 1024, parts)]
        members += [
            Shape(cpu_milli=one, memory_mib=other if dimensions > 1 else 0)
            for one, other in zip(cpus, memories, strict=True)
        ]
    rng.shuffle(members)
    most = _EXACT_NODES * cpu * (1 - slack)
    while sum(each.cpu_milli for each in members) > most:
        members.pop()
    resources = "cpu" if dimensions == 1 else "cpu and memory"
    return Case(
        family=f"exact, {resources}, {slack:.0%} slack",
        seed=seed + number,
        members=tuple(members),
        nodes=nodes,
        pool=f"group-{number}",
    )


def _cut(rng: Random, total: int, parts: int) -> list[int]:
    points = sorted(rng.sample(range(1, total), parts - 1))
    return [high - low for low, high in zip([0, *points], [*points, total], strict=True)]


# -- random groups ---------------------------------------------------------------------------------

_NODES: Final = (50, 5000)
_MEMBERS: Final = (2, 64)
_SHAPES_MOST: Final = 6
_SHARING_MOST: Final = 8
"""Members that one node is made for. A guess: nodes of GPUs have 8."""
_ZONES_MOST: Final = 8
_RACK_NODES: Final = 16


def random_case(seed: int) -> Case:
    """Return a random group: of two resources, half with members apart, a third with topology."""
    rng = Streams(seed).stream("random group")
    count = round(_NODES[0] * (_NODES[1] / _NODES[0]) ** rng.random())
    apart, two_levels = rng.random() < 1 / 2, rng.random() < 1 / 3
    shapes = _shapes(rng, apart=apart)
    wanted = [rng.choice(shapes) for _ in range(rng.randint(*_MEMBERS))]
    places = _places(rng, count)
    rows = [*range(count)]
    if two_levels:  # the members are made for the nodes of one zone
        zone = places[rng.randrange(count)][0]
        rows = [row for row in rows if places[row][0] == zone]
    rng.shuffle(rows)
    together = _together(rng, wanted, rows)
    slack = rng.choice(_SLACKS)
    other = rng.choice((0.5, 1.0, 1.5))
    cpu, memory = (max(each) for each in zip(*map(_amounts, shapes), strict=True))
    nodes = []
    for row, (zone, rack) in enumerate(places):
        members = together.get(row)
        if members is None:
            free = (rng.random() * other * cpu, rng.random() * other * memory)
        else:
            free = tuple(
                sum(each) * (1 + slack * rng.random())
                for each in zip(*map(_amounts, members), strict=True)
            )
        nodes.append(
            FreeNode(cpu_milli=int(free[0]), memory_mib=int(free[1]), zone=zone, rack=rack)
        )
    members = [each for some in together.values() for each in some]
    rng.shuffle(members)
    kind = "apart" if apart else "plain"
    return Case(
        family=f"random, {kind}{', two levels' if two_levels else ''}",
        seed=seed,
        members=tuple(members),
        nodes=tuple(nodes),
        two_levels=two_levels,
    )


def _amounts(shape: Shape) -> tuple[int, int]:
    return shape.cpu_milli, shape.memory_mib


def _shapes(rng: Random, *, apart: bool) -> list[Shape]:
    """Return the shapes of a group: each app may be apart from itself, from all, or from one."""
    apps = [f"app-{number}" for number in range(rng.randint(1, _SHAPES_MOST))]
    shapes = []
    for app in apps:
        others: tuple[str, ...] = ()
        if apart and (app == apps[0] or rng.random() < 1 / 2):
            others = rng.choice([(app,), tuple(apps), (rng.choice(apps),)])
        shapes.append(
            Shape(
                cpu_milli=250 * rng.randint(1, 32),
                memory_mib=512 * rng.randint(1, 64),
                app=app,
                apart=others,
            )
        )
    return shapes


def _places(rng: Random, count: int) -> list[tuple[str, str]]:
    """Return zone and rack of each node; a rack is in one zone."""
    zones = rng.randint(2, _ZONES_MOST)
    racks = max(zones, count // _RACK_NODES)
    return [
        (f"z{rack % zones}", f"r{rack}") for rack in (rng.randrange(racks) for _ in range(count))
    ]


def _together(rng: Random, wanted: Sequence[Shape], rows: Sequence[int]) -> dict[int, list[Shape]]:
    """Return the members that each row is made for; members beyond the last row are left out."""
    together: dict[int, list[Shape]] = {}
    left = [*wanted]
    for row in rows:
        if not left:
            break
        sharing: list[Shape] = []
        for _ in range(rng.randint(1, _SHARING_MOST)):
            at = next((k for k, each in enumerate(left) if _may_join(each, sharing)), None)
            if at is not None:
                sharing.append(left.pop(at))
        together[row] = sharing
    return together


def _may_join(shape: Shape, sharing: Sequence[Shape]) -> bool:
    return all(each.app not in shape.apart and shape.app not in each.apart for each in sharing)
