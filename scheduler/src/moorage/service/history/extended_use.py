"""How full the nodes are of extended resources, such as GPUs; a share counts as its part.

Shares of devices are in no column of the table, so the pods of each node with such a resource are
looked at, and again only where the node or its pods changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.framework.insight.held_devices import WHOLE_DEVICE, HeldDevice, with_devices
from moorage.framework.profile import Profile
from moorage.service.core import Core
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

RESOURCES_MOST: Final = 8
"""Extended resources that are counted, the first by name; a guess."""

_HeldDevices = Callable[[PodInfo, Node], Sequence[HeldDevice]]


class ExtendedUse:
    """The use of extended resources by the pods of each node.

    Parameters
    ----------
    core
        The cluster and the profiles, whose plugins know the devices that pods hold.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._table = table = core.snapshot.table
        self._logs = (table.node_log, table.pod_log, table.version_log)
        self._positions: list[int] = []
        self._structure = -1
        self._profiles: list[Profile] = []
        self._held_devices: list[_HeldDevices] = []
        self._taken: dict[int, dict[str, float]] = {}
        """The amounts that the pods of a row take, by row, of the rows with such resources."""

    def amounts(self) -> Iterator[tuple[str, float, int]]:
        """Yield the resources that nodes offer, what pods take of each, and what is offered."""
        self._follow()
        names = sorted(filter(is_extended_resource, self._table.exact_limit))
        offered = {name: int(self._core.snapshot.allocatable(name).sum()) for name in names}
        for name in [each for each in names if offered[each]][:RESOURCES_MOST]:
            taken = sum(row.get(name, 0) for row in self._taken.values())
            yield name, taken, offered[name]

    def _follow(self) -> None:
        """Look at the rows that changed, or at every row where the changes are not known."""
        changed = self._changed_rows()
        self._positions = [log.position for log in self._logs]
        if changed is None:
            self._structure = self._table.columns.structure
            self._profiles = list(self._core.profiles.values())
            self._held_devices = [
                declared.held_devices
                for profile in self._profiles
                for declared in profile.capabilities.values()
                if declared.held_devices is not None
            ]
            self._taken = {}
        for row in range(len(self._table.names)) if changed is None else changed:
            node = self._table.nodes[row]
            self._taken.pop(row, None)
            if any(map(is_extended_resource, node.status.allocatable)):
                self._taken[row] = self._of_row(row, node)

    def _changed_rows(self) -> set[int] | None:
        same = self._structure == self._table.columns.structure
        if not same or self._profiles != list(self._core.profiles.values()):
            return None
        changed: set[int] = set()
        for log, position in zip(self._logs, self._positions, strict=True):
            rows = log.since(position)
            if rows is None:
                return None
            changed.update(rows)
        return changed

    def _of_row(self, row: int, node: Node) -> dict[str, float]:
        sums: dict[str, float] = {}
        for info in self._core.snapshot.pods(row):
            requests: Mapping[str, float] = info.part(RESOURCES).value.balanced
            # Plugins of several profiles know the same devices.
            devices = {
                (each.pool, each.device): each
                for held_devices in self._held_devices
                for each in held_devices(info, node)
            }
            taken = with_devices(
                requests,
                devices.values(),
                node.status.allocatable,
                amount_of=lambda milli: milli / WHOLE_DEVICE,
            )
            for name, amount in taken.items():
                if is_extended_resource(name):
                    sums[name] = sums.get(name, 0) + amount
        return sums
