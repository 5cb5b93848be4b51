"""The order in which kube-scheduler visits nodes: one node of each zone in turn.

Rows are in order of arrival, with holes filled from the end; this order is kept next to them, by
name, for searches over part of the nodes. Fed by `table`, read by the engine's sampling.

Rules: kubernetes v1.36 ``pkg/scheduler/backend/cache/node_tree.go``; scheduling spec, cache
section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node

_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

Zone = tuple[str, str]


class NodeOrder:
    """Zones in the order in which they got their first node, nodes in the order they came.

    The list is made again only after a node came or went. A node that changes zone moves to the end
    of its new zone, but the list shows the move only when the list is made again.
    """

    __slots__ = ("_came", "_gone", "_listed", "_rows", "_structure", "_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}  # no zone is ever empty
        self._zone_of: dict[str, Zone] = {}
        self._listed: dict[str, None] = {}
        # How the list differs from the zones: a node that went and came back is no difference.
        self._came: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        self._rows: NDArray[np.int64] | None = None
        self._structure = -1

    def put_node(self, node: Node) -> None:
        """Take in a node, new or changed."""
        name, zone = node.metadata.name, zone_of(node.metadata.labels)
        old = self._zone_of.get(name)
        if old == zone:
            return
        if old is not None:
            self._take_out(name, old)
        elif name in self._gone:
            del self._gone[name]
        else:
            self._came[name] = None
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str) -> None:
        """Forget a node, and its zone if it was the zone's last node.

        Raises
        ------
        KeyError
            There is no such node.
        """
        self._take_out(name, self._zone_of.pop(name))
        if name in self._came:
            del self._came[name]
        else:
            self._gone[name] = None

    def names(self) -> Sequence[str]:
        """Return the names of all nodes, in this order."""
        if self._came or self._gone:
            self._listed = dict.fromkeys(_in_turn([[*names] for names in self._zones.values()]))
            self._came, self._gone = {}, {}
            self._rows = None
        return [*self._listed]

    def rows(self, row_of: Callable[[str], int | None], structure: int) -> NDArray[np.int64]:
        """Return int64, (nodes,): the rows of all nodes, in this order; not to be changed.

        Parameters
        ----------
        row_of
            The row of a name.
        structure
            Number of the assignment of rows: the answer is kept until the number changes.
        """
        if self._rows is None or self._structure != structure:
            rows = [row_of(name) for name in self.names()]
            self._rows = np.array([row for row in rows if row is not None], np.int64)
            self._rows.flags.writeable = False
            self._structure = structure
        return self._rows

    def _take_out(self, name: str, zone: Zone) -> None:
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]


def zone_of(labels: Mapping[str, str]) -> Zone:
    """Return the region and zone of a node with these labels; the beta labels take precedence.

    Mirrors kubernetes v1.36 ``pkg/util/node/node.go``, ``GetZoneKey``.
    """
    return _first(labels, _REGION_LABELS), _first(labels, _ZONE_LABELS)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")


def _in_turn(zones: list[list[str]]) -> list[str]:
    """Return the first name of every list, then the second ones, and so on."""
    result: list[str] = []
    turn = 0
    while zones:
        result += [names[turn] for names in zones]
        turn += 1
        zones = [names for names in zones if turn < len(names)]
    return result
