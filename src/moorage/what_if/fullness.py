"""Tells how full nodes and zones are, from the columns of a deciding half, at two moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.shape import amount_of
from moorage.snapshot.snapshot import Snapshot

ZONE: Final = "topology.kubernetes.io/zone"
_BASIC: Final = ("cpu", "memory")

IntArray = NDArray[np.int64]


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
    names
        The nodes, by row.
    resources
        The resources: cpu, memory, and every extended resource that a node offers.
    amounts
        int64, (1 + 2 * resources, nodes): number of pods, then for each resource the requested and
        the allocatable amount, in the units of the columns.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        # Whole columns are copied, and no node is looked at: there may be thousands, in a fork
        # that copies each page it touches.
        self.names = tuple(snapshot.names)
        self.resources = (*_BASIC, *_extended(snapshot))
        self.amounts = np.array(
            [
                snapshot.pod_count,
                *(
                    amounts
                    for resource in self.resources
                    for amounts in (snapshot.requested(resource), snapshot.allocatable(resource))
                ),
            ],
            np.int64,
        )
        column = snapshot.label_column(ZONE)
        self._zone_names, self._zone_n = column.values, column.ids.copy()

    def by_node(self) -> dict[str, IntArray]:
        """Return the column of each node, by its name."""
        return dict(zip(self.names, self.amounts.T, strict=True))

    def by_zone(self) -> dict[str, IntArray]:
        """Return the sum of the columns of each zone's nodes, by the zone's name."""
        found = {}
        for number, name in enumerate(self._zone_names):
            in_zone_n = self._zone_n == number
            if name and in_zone_n.any():
                found[name] = self.amounts[:, in_zone_n].sum(axis=1)
        return found


def node_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the nodes whose use differs, by name; nodes that come or go are among them."""
    if (before.names, before.resources) == (after.names, after.resources):
        rows = np.flatnonzero((before.amounts != after.amounts).any(axis=0)).tolist()
        old = {before.names[row]: before.amounts[:, row] for row in rows}
        new = {after.names[row]: after.amounts[:, row] for row in rows}
        return tuple(_changes(before, old, after, new))
    return tuple(_changes(before, before.by_node(), after, after.by_node()))


def zone_changes(before: Fullness, after: Fullness) -> tuple[UseChange, ...]:
    """Return the zones whose use differs, by name."""
    return tuple(_changes(before, before.by_zone(), after, after.by_zone()))


def _changes(
    before: Fullness,
    old: Mapping[str, IntArray],
    after: Fullness,
    new: Mapping[str, IntArray],
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


def _use(resources: tuple[str, ...], amounts: IntArray) -> Use:
    pods, *others = amounts.tolist()
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
