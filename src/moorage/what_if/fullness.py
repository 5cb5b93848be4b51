"""Tells how full nodes and zones are, from the columns of a deciding half, at two moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from moorage.snapshot.shape import amount_of
from moorage.snapshot.snapshot import Snapshot

ZONE: Final = "topology.kubernetes.io/zone"
_BASIC: Final = ("cpu", "memory")


class Use(msgspec.Struct, frozen=True):
    """The use of a node, or of all nodes of a zone, at one moment.

    Parameters
    ----------
    pods
        Number of pods.
    used
        The sum of what the pods request, by resource: cores of cpu, bytes of memory, otherwise
        counts.
    allocatable
        The sum of what the nodes offer to pods, in the same units.
    """

    pods: int
    used: dict[str, float]
    allocatable: dict[str, float]


class UseChange(msgspec.Struct, frozen=True):
    """The use of a node or a zone before and after a change.

    Parameters
    ----------
    name
        The node, or the zone.
    before, after
        The use; null while there is no such node or zone.
    """

    name: str
    before: Use | None
    after: Use | None


class Fullness:
    """The fullness of every node at one moment.

    Parameters
    ----------
    snapshot
        The cluster; it is read once, and may change afterwards.

    Attributes
    ----------
    nodes
        Number of pods, then for each resource the requested and the allocatable amount in the
        units of the columns; by node.
    resources
        The resources: cpu, memory, and every extended resource that a node offers.
    zones
        The zone of each node that has one.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        count, columns = snapshot.num_nodes, snapshot.table.columns
        self.resources = (*_BASIC, *_extended(snapshot))
        amounts = [
            columns.ensure(key)[:count].tolist() if columns.has(key) else [0] * count
            for resource in self.resources
            for key in (("requested", resource), ("allocatable", resource))
        ]
        pods = columns.ensure("pod_count")[:count].tolist()
        names = snapshot.names
        self.nodes: dict[str, tuple[int, ...]] = dict(
            zip(names, zip(pods, *amounts, strict=True), strict=True)
        )
        self.zones: dict[str, str] = {
            name: zone
            for row, name in enumerate(names)
            if (zone := snapshot.node(row).metadata.labels.get(ZONE, ""))
        }

    def use(self, name: str) -> Use | None:
        """Return the use of a node, None if there is no such node."""
        found = self.nodes.get(name)
        return None if found is None else _use(self.resources, found)

    def by_zone(self) -> dict[str, tuple[int, ...]]:
        """Return the sums over the nodes of each zone, in the form of `nodes`."""
        by_zone: dict[str, list[tuple[int, ...]]] = {}
        for name, zone in self.zones.items():
            by_zone.setdefault(zone, []).append(self.nodes[name])
        return {zone: tuple(map(sum, zip(*rows, strict=True))) for zone, rows in by_zone.items()}


def node_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the nodes whose use differs, by name; nodes that come or go are among them."""
    return tuple(_changes(before, before.nodes, after, after.nodes))


def zone_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the zones whose use differs, by name."""
    return tuple(_changes(before, before.by_zone(), after, after.by_zone()))


def _changes(
    before: Fullness,
    old: Mapping[str, tuple[int, ...]],
    after: Fullness,
    new: Mapping[str, tuple[int, ...]],
) -> Iterator[UseChange]:
    same = before.resources == after.resources
    for name in sorted({**old, **new}):
        was, now = old.get(name), new.get(name)
        if was == now and same:
            continue
        change = UseChange(
            name,
            None if was is None else _use(before.resources, was),
            None if now is None else _use(after.resources, now),
        )
        if change.before != change.after:
            yield change


def _use(resources: tuple[str, ...], amounts: tuple[int, ...]) -> Use:
    used, allocatable = amounts[1::2], amounts[2::2]
    return Use(
        amounts[0],
        {name: amount_of(name, each) for name, each in zip(resources, used, strict=True)},
        {name: amount_of(name, each) for name, each in zip(resources, allocatable, strict=True)},
    )


def _extended(snapshot: Snapshot) -> list[str]:
    """Return the extended resources that nodes offer, by name."""
    offered = (snapshot.node(row).status.allocatable for row in range(snapshot.num_nodes))
    found = {name for amounts in offered for name in amounts}
    return sorted(name for name in found if "/" in name)
