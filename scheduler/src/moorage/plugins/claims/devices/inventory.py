"""Every slice of the cluster, parsed once and indexed by node and by pool.

The inventory lives as long as the plugin. The view of a node is kept until a slice of the node,
a slice for many nodes, or one of the node's pools changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypeVar

from moorage.api.devices import ResourceSlice
from moorage.plugins.claims.devices.contract import Features, NodeFacts, PoolID
from moorage.plugins.claims.devices.offered import DeviceKind, KindTable, OfferedSlice, offer
from moorage.plugins.claims.devices.pools import NodeView, node_view
from moorage.snapshot.key_log import KeyLog

_log = logging.getLogger(__name__)

K = TypeVar("K", str, PoolID)

_VIEWS_MAX = 65536
_SIGNATURES_MAX = 4096
_SIGNATURES_OF_A_VIEW_MAX = 4
"""Limits of kept views, of distinct signatures, and of signatures for each view; guesses.

Views of deleted nodes count. The greater of the two limits of signatures applies.
"""


class _Known:
    """The view of a node, its inputs, and the change number of its last check."""

    __slots__ = ("change", "labels", "versions", "view")

    def __init__(
        self, view: NodeView, labels: Mapping[str, str], versions: tuple[int, ...], change: int
    ) -> None:
        self.view = view
        self.labels = labels
        self.versions = versions
        self.change = change


class Inventory:
    """The slices the allocator chooses from, by name.

    Parameters
    ----------
    slices
        Slices to add at the start, as by `put_slice`.
    features
        Feature gates, for the inventory and for the allocator.

    Attributes
    ----------
    log
        The node ("" for many nodes) and the pool of each slice that was put or removed.
    epoch
        Rises when `trim` dropped signatures, whose numbers are then given again.
    """

    def __init__(
        self, slices: Iterable[ResourceSlice] = (), *, features: Features | None = None
    ) -> None:
        self.features = features or Features()
        self._kinds = KindTable()
        self._slices: dict[str, OfferedSlice] = {}
        self._by_node: dict[str, dict[str, OfferedSlice]] = {}
        self._for_many: dict[str, OfferedSlice] = {}
        self._by_pool: dict[PoolID, dict[str, OfferedSlice]] = {}
        # Number of the last change of a node's slices ("" for slices of many nodes), or a pool's.
        self._changed: dict[str | PoolID, int] = {}
        self._change = 0
        self._known: dict[str, _Known] = {}
        self._signatures: dict[object, int] = {}
        self._device_parts: dict[int, dict[tuple[DeviceKind, bool], object]] = {}
        self.log: KeyLog[tuple[str, PoolID]] = KeyLog()
        self.epoch = 0
        for slice_ in slices:
            self.put_slice(slice_)

    def put_slice(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace the slice of the same name."""
        self.remove(slice_.name)
        offered = offer(
            slice_,
            self._kinds,
            consumable_capacity=self.features.consumable_capacity,
            fractional_capacity=self.features.fractional_capacity,
        )
        if offered.fault is not None:
            _log.error("%s; nothing of pool %s is given out", offered.fault, offered.pool)
        self._slices[slice_.name] = offered
        self._on_node(slice_.spec.node_name)[slice_.name] = offered
        self._by_pool.setdefault(offered.pool, {})[slice_.name] = offered
        self._touch(offered)

    def remove(self, name: str) -> None:
        """Remove a slice; do nothing for an unknown name."""
        offered = self._slices.pop(name, None)
        if offered is not None:
            self._touch(offered)
            node_name, pool = offered.api.spec.node_name, offered.pool
            self._drop(self._on_node(node_name), name, node_name, self._by_node)
            self._drop(self._by_pool[pool], name, pool, self._by_pool)

    def view(self, node: NodeFacts) -> NodeView:
        """Return the pools that a node sees.

        Raises
        ------
        AllocationError
            A node selector of a slice is invalid.
        """
        known = self._known.get(node.name)
        if known is not None and (known.labels is node.labels or known.labels == node.labels):
            if known.change == self._change:
                return known.view
            if known.versions == self._versions(node, known.view):
                known.change = self._change
                return known.view
        view = node_view(
            chain(self._by_node.get(node.name, {}).values(), self._for_many.values()),
            self._by_pool,
            node,
            partitionable_devices=self.features.partitionable_devices,
        )
        self._known[node.name] = _Known(view, node.labels, self._versions(node, view), self._change)
        return view

    def number(self, signature: object) -> int:
        """Return a small number for a signature; equal signatures have equal numbers."""
        return self._signatures.setdefault(signature, len(self._signatures))

    def device_parts(self, question: int) -> dict[tuple[DeviceKind, bool], object]:
        """Return what signatures read of each kind of device, for the question of this number.

        Parameters
        ----------
        question
            From `number`.
        """
        return self._device_parts.setdefault(question, {})

    def trim(self) -> None:
        """Drop views and signatures beyond the limits; call between cycles only."""
        views = len(self._known)
        signatures_max = max(_SIGNATURES_MAX, views * _SIGNATURES_OF_A_VIEW_MAX)
        if views > _VIEWS_MAX or len(self._signatures) > signatures_max:
            self._signatures.clear()
            self._device_parts.clear()
            self._known.clear()
            self.epoch += 1

    def _drop(
        self,
        slices: dict[str, OfferedSlice],
        name: str,
        key: K,
        owner: dict[K, dict[str, OfferedSlice]],
    ) -> None:
        del slices[name]
        if not slices:
            # No slice is the state before the first change: views of that time hold again.
            owner.pop(key, None)
            self._changed.pop(key, None)

    def _on_node(self, node_name: str) -> dict[str, OfferedSlice]:
        return self._by_node.setdefault(node_name, {}) if node_name else self._for_many

    def _touch(self, offered: OfferedSlice) -> None:
        self._change += 1
        self._changed[offered.api.spec.node_name] = self._change
        self._changed[offered.pool] = self._change
        self.log.append((offered.api.spec.node_name, offered.pool))

    def _versions(self, node: NodeFacts, view: NodeView) -> tuple[int, ...]:
        changed = self._changed.get
        pools = (changed(pool, 0) for pool in view.pool_ids)
        return (changed(node.name, 0), changed("", 0), *pools)
