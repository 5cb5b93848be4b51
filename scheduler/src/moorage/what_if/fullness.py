"""Tells how full nodes and zones are, from the columns of a deciding half, at two moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from moorage.api.mentions import NodeName
from moorage.snapshot.shape import amount_of
from moorage.snapshot.snapshot import Snapshot

ZONE: Final = "topology.kubernetes.io/zone"
_BASIC: Final = ("cpu", "memory")

Amounts = tuple[int, ...]
"""Number of pods, then for each resource the requested and the allocatable amount, as columns."""


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

    name: NodeName
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
    names
        The nodes, by row.
    resources
        The resources: cpu, memory, and every extended resource that a node offers.
    amounts
        The amounts of each node, by row.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        # Columns are read, and no node is looked at: there may be thousands, in a fork that copies
        # each page it touches.
        self.names = tuple(snapshot.names)
        self.resources = (*_BASIC, *_extended(snapshot))
        columns = [snapshot.pod_count]
        for resource in self.resources:
            columns += [snapshot.requested(resource), snapshot.allocatable(resource)]
        self.amounts: list[Amounts] = list(zip(*(each.tolist() for each in columns), strict=True))
        column = snapshot.label_column(ZONE)
        self._zones, self._zone_of = column.values, column.ids.tolist()

    def by_node(self) -> dict[str, Amounts]:
        """Return the amounts of each node, by its name."""
        return dict(zip(self.names, self.amounts, strict=True))

    def by_zone(self) -> dict[str, Amounts]:
        """Return the sums of each zone, by its name."""
        by_zone: dict[int, list[Amounts]] = {}
        for zone, amounts in zip(self._zone_of, self.amounts, strict=True):
            by_zone.setdefault(zone, []).append(amounts)
        return {
            self._zones[zone]: tuple(map(sum, zip(*rows, strict=True)))
            for zone, rows in by_zone.items()
            if zone >= 0 and self._zones[zone]
        }


def node_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the nodes whose use differs, by name; nodes that come or go are among them."""
    old, new = before.by_node(), after.by_node()
    if before.resources == after.resources:
        same = {name for name, amounts in old.items() if new.get(name) == amounts}
        old = {name: amounts for name, amounts in old.items() if name not in same}
        new = {name: amounts for name, amounts in new.items() if name not in same}
    return tuple(_changes(before, old, after, new))


def zone_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the zones whose use differs, by name."""
    return tuple(_changes(before, before.by_zone(), after, after.by_zone()))


def _changes(
    before: Fullness,
    old: Mapping[str, Amounts],
    after: Fullness,
    new: Mapping[str, Amounts],
) -> Iterator[UseChange]:
    for name in sorted({**old, **new}):
        was, now = old.get(name), new.get(name)
        change = UseChange(
            name,
            None if was is None else _use(before.resources, was),
            None if now is None else _use(after.resources, now),
        )
        if change.before != change.after:
            yield change


def _use(resources: tuple[str, ...], amounts: Amounts) -> Use:
    pods, *others = amounts
    used, allocatable = others[::2], others[1::2]
    return Use(
        pods,
        {name: amount_of(name, each) for name, each in zip(resources, used, strict=True)},
        {name: amount_of(name, each) for name, each in zip(resources, allocatable, strict=True)},
    )


def _extended(snapshot: Snapshot) -> list[str]:
    """Return the extended resources that nodes offer, by name."""
    known = (name for name in snapshot.table.exact_limit if "/" in name)
    return sorted(name for name in known if snapshot.allocatable(name).any())
