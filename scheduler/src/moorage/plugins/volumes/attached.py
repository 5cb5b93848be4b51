"""Volumes that count against the attach limits of each node, kept up to date.

This module stands between the indexes of `snapshot` and NodeVolumeLimits. A pod's volumes are
resolved once. They are resolved again only when their claim, volume, class or CSINode changes.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodevolumelimits/csi.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.volume import CSINode
from moorage.plugins.volumes.claims import VolumeError
from moorage.plugins.volumes.resolver import VolumeId, VolumeResolver
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_NO_LIMIT: Final = -1
_ROOM_FOR_ALL: Final = 2**62


_NO_ATTACHMENTS: Final[dict[str, tuple[str, str]]] = {}


class Releases(msgspec.Struct, frozen=True):
    """The volumes that no longer count on a node once a pod leaves it.

    Parameters
    ----------
    by_pod
        By uid, the drivers of these volumes; a driver once for each volume. A volume that is
        attached counts as long as it is, whatever pods do.
    shared
        Whether several pods of the node use one volume: it counts until the last of them leaves.
    """

    by_pod: dict[str, tuple[str, ...]]
    shared: bool


_NOTHING_RELEASED: Final = Releases({}, False)


class _Node:
    """The volumes attached to one node.

    Attributes
    ----------
    by_pod
        The volumes of each pod, by uid.
    refs
        Each volume of a pod, and how many pods use it.
    of_pods
        Number of volumes in `refs`, by driver.
    used
        Number of attached volumes by driver: those of pods, and those that no pod explains.
    releases
        As `AttachedVolumes.releases` returns; None where it must be computed.
    """

    __slots__ = ("by_pod", "of_pods", "refs", "releases", "used")

    def __init__(self) -> None:
        self.by_pod: dict[str, tuple[VolumeId, ...]] = {}
        self.refs: dict[VolumeId, int] = {}
        self.of_pods: dict[str, int] = {}
        self.used = self.of_pods
        self.releases: Releases | None = None

    def add(self, volume: VolumeId) -> bool:
        """Count a pod that uses a volume; whether it is the first."""
        known = self.refs.get(volume, 0)
        self.refs[volume] = known + 1
        if not known:
            self.of_pods[volume[0]] = self.of_pods.get(volume[0], 0) + 1
        return not known

    def remove(self, volume: VolumeId) -> bool:
        """Stop counting a pod that used a volume; whether it was the last."""
        self.refs[volume] -= 1
        if self.refs[volume]:
            return False
        del self.refs[volume]
        self.of_pods[volume[0]] -= 1
        if not self.of_pods[volume[0]]:
            del self.of_pods[volume[0]]
        return True


class AttachedVolumes:
    """Attached volumes and limits of every node, followed through the logs of the snapshot.

    Parameters
    ----------
    snapshot
        The cluster.
    resolver
        Resolves the volumes of pods.

    Attributes
    ----------
    each_has_csi_node
        Whether every node has a CSINode.
    recounted
        Rows whose volumes were counted anew.
    beginnings
        How often all nodes were counted anew.
    """

    def __init__(self, snapshot: Snapshot, resolver: VolumeResolver) -> None:
        self._snapshot = snapshot
        self._resolver = resolver
        self._nodes: dict[str, _Node] = {}
        self._faults: dict[str, str] = {}
        self._holders: dict[VolumeId, dict[str, None]] = {}
        self._attachments: dict[str, dict[str, tuple[str, str]]] = {}
        self._node_of_attachment: dict[str, str] = {}
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._room: dict[str, NDArray[np.int64]] = {}
        self._least_room: dict[str, int] = {}
        """By driver, a number that no row's room is below."""
        self._has_csi_node = np.zeros(0, np.bool_)
        self.each_has_csi_node = True
        self.recounted: KeyLog[int] = KeyLog()
        self.beginnings = 0
        self._structure = -1
        listers = snapshot.listers
        self._pod_log = snapshot.table.volume_pods.log
        self._pods_at = -1
        self._logs = (
            listers.persistent_volume_claims.log,
            listers.persistent_volumes.log,
            listers.volume_attachments.log,
            listers.csi_nodes.log,
            listers.storage_classes.log,
        )
        self._positions = [-1] * len(self._logs)

    # -- questions -----------------------------------------------------------------------------

    def limits(self, driver: str) -> NDArray[np.int64]:
        """Return int64, (n,): the attach limit of each node for a driver; -1 for no limit."""
        found = self._limits.get(driver)
        if found is None:
            found = self._limits[driver] = self._build_limits(driver)
        return found

    def used(self, driver: str) -> NDArray[np.int64]:
        """Return int64, (n,): the number of a driver's volumes that are attached to each node."""
        used_n = np.zeros(self._snapshot.num_nodes, np.int64)
        for name, node in self._nodes.items():
            row = self._snapshot.row_of(name)
            if row is not None:
                used_n[row] = node.used.get(driver, 0)
        return used_n

    def room(self, driver: str) -> NDArray[np.int64]:
        """Return int64, (n,): the number of further volumes of a driver each node can attach.

        The number is below 0 where the limit is already exceeded, and very large where no limit
        applies. The caller must not change the array.
        """
        room_n = self._room.get(driver)
        if room_n is None:
            limit_n = self.limits(driver)
            room_n = np.where(limit_n < 0, _ROOM_FOR_ALL, limit_n - self.used(driver))
            self._room[driver] = room_n
            self._least_room[driver] = int(room_n.min(initial=_ROOM_FOR_ALL))
        return room_n

    def surely_fit(self, volumes: Sequence[VolumeId]) -> bool:
        """Whether every node can attach all of these volumes; False says nothing."""
        if self._faults:
            return False
        for driver, _ in volumes:
            self.room(driver)  # and the least room with it
            if self._least_room[driver] < len(volumes):
                return False
        return True

    def rows_with(self, volume: VolumeId) -> list[int]:
        """Return the rows that have a volume attached for at least one pod."""
        holders = self._holders.get(volume)
        if holders is None:
            return []
        rows = map(self._snapshot.row_of, holders)
        return [row for row in rows if row is not None]

    def releases(self, row: int) -> Releases:
        """Return what each pod of a row frees when it leaves the row."""
        name = self._snapshot.names[row]
        node = self._nodes.get(name)
        if node is None:
            return _NOTHING_RELEASED
        if node.releases is None:
            node.releases = self._build_releases(node, name)
        return node.releases

    def _build_releases(self, node: _Node, name: str) -> Releases:
        attached = self._attached_to(name)
        by_pod: dict[str, tuple[str, ...]] = {}
        for uid, volumes in node.by_pod.items():
            freed = tuple(
                [driver for driver, handle in volumes if (driver, handle) not in attached]
            )
            if freed:
                by_pod[uid] = freed
        shared = any(pods > 1 for pods in node.refs.values())
        return Releases(by_pod, shared)

    def has_csi_node(self) -> NDArray[np.bool_]:
        """Return bool, (n,): whether each node has a CSINode."""
        return self._has_csi_node

    def any_limit(self) -> NDArray[np.bool_]:
        """Return bool, (n,): whether each node has a limit for at least one driver."""
        csi_nodes = self._snapshot.listers.csi_nodes
        limited = (bool(limits_of(csi_nodes.get(name))) for name in self._snapshot.names)
        return np.fromiter(limited, np.bool_, self._snapshot.num_nodes)

    def faults(self) -> dict[int, str]:
        """Return, for each row whose volumes cannot be counted, the reason."""
        if not self._faults:
            return {}
        by_row = ((self._snapshot.row_of(name), text) for name, text in self._faults.items())
        return {row: text for row, text in by_row if row is not None}

    # -- following -----------------------------------------------------------------------------

    def follow(self) -> None:
        """Apply all changes since the last call."""
        pods_now, now = self._pod_log.position, [log.position for log in self._logs]
        structure = self._snapshot.table.columns.structure
        if (pods_now, now, structure) == (self._pods_at, self._positions, self._structure):
            return
        dirty = self._pod_log.since(self._pods_at)
        if dirty is not None and now != self._positions:  # mostly, only a pod was placed
            dirty = self._dirty_nodes(dirty, now)
        if dirty is None:
            self._start_afresh()
        else:
            for name in dirty:
                self._recount(name)
        if self._structure != structure or dirty is None:
            self._structure = structure
            self._reset_rows()
        self._pods_at, self._positions = pods_now, now

    def _dirty_nodes(self, with_pods: list[str], now: list[int]) -> list[str] | None:
        """Return the nodes to recount, those with changed pods included; None to rebuild all.

        The nodes whose volumes are to be resolved again are forgotten.
        """
        before = self._positions
        if before[-1] != now[-1]:
            return None
        volume_pods = self._snapshot.volume_pods
        again: dict[str, None] = {}
        recount: dict[str, None] = dict.fromkeys(with_pods)
        changed = [log.since(at) for log, at in zip(self._logs[:-1], before[:-1], strict=True)]
        changed_claims, changed_volumes, changed_attachments, changed_csi = changed
        if (
            changed_claims is None
            or changed_volumes is None
            or changed_attachments is None
            or changed_csi is None
        ):
            return None
        for _, name in changed_volumes:
            # Resolving the pods again adds their entries again; a deleted volume leaves no entry.
            for key in sorted(self._resolver.claims_of_volume.pop(name, ())):
                changed_claims.append(key)
            recount.update(dict.fromkeys(self._nodes_attaching(name)))
        for key in changed_claims:
            again.update(dict.fromkeys(volume_pods.nodes_of_claim(key)))
        for _, name in changed_attachments:
            recount.update(dict.fromkeys(self._note_attachment(name)))
        if changed_csi:
            again.update((name, None) for _, name in changed_csi)
            self._reset_rows()
        for name in again:
            self._forget(name)
        return list(again | recount)

    def _nodes_attaching(self, volume_name: str) -> Iterable[str]:
        return [
            node
            for node, found in self._attachments.items()
            if any(name == volume_name for _, name in found.values())
        ]

    def _note_attachment(self, name: str) -> list[str]:
        """Apply one VolumeAttachment; return the nodes whose counts may change."""
        touched = []
        before = self._node_of_attachment.pop(name, None)
        if before is not None:
            there = self._attachments[before]
            del there[name]
            if not there:
                del self._attachments[before]
            touched.append(before)
        found = self._snapshot.listers.volume_attachments.get(name)
        if found is not None and found.spec.source.persistent_volume_name is not None:
            node = found.spec.node_name
            self._node_of_attachment[name] = node
            entry = (found.spec.attacher, found.spec.source.persistent_volume_name)
            self._attachments.setdefault(node, {})[name] = entry
            touched.append(node)
        return touched

    def _start_afresh(self) -> None:
        self.beginnings += 1
        self._nodes.clear()
        self._faults.clear()
        self._holders.clear()
        self._attachments.clear()
        self._node_of_attachment.clear()
        self._resolver.claims_of_volume.clear()
        names = dict.fromkeys(self._snapshot.volume_pods.nodes())
        for attachment in self._snapshot.listers.volume_attachments.all():
            names.update(dict.fromkeys(self._note_attachment(attachment.name)))
        for name in names:
            self._recount(name)

    def _reset_rows(self) -> None:
        self._limits.clear()
        self._room.clear()
        self._least_room.clear()
        csi_nodes = self._snapshot.listers.csi_nodes
        present = (csi_nodes.get(name) is not None for name in self._snapshot.names)
        self._has_csi_node = np.fromiter(present, np.bool_, self._snapshot.num_nodes)
        self.each_has_csi_node = bool(self._has_csi_node.all())

    def _forget(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        for volume in () if node is None else node.refs:
            self._unhold(volume, name)

    def _unhold(self, volume: VolumeId, name: str) -> None:
        holders = self._holders[volume]
        del holders[name]
        if not holders:
            del self._holders[volume]

    def _recount(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node()
        self._follow_pods(node, name)
        node.releases = None
        node.used = used = node.of_pods
        if name in self._attachments:
            node.used = used = dict(used)
            for driver in self._unexplained(name, node):
                used[driver] = used.get(driver, 0) + 1
        if not node.by_pod and not used:
            del self._nodes[name]
        row = self._snapshot.row_of(name)
        if row is None:
            return
        self.recounted.append(row)
        for driver, room_n in self._room.items():
            if row < len(room_n) and (limit := self._limits[driver].item(row)) >= 0:
                room_n[row] = room = limit - used.get(driver, 0)
                self._least_room[driver] = min(self._least_room[driver], room)

    def _follow_pods(self, node: _Node, name: str) -> None:
        pods = self._snapshot.volume_pods.on_node(name)
        by_pod = node.by_pod
        for uid in [uid for uid in by_pod if uid not in pods]:
            for volume in by_pod.pop(uid):
                if node.remove(volume):
                    self._unhold(volume, name)
        self._faults.pop(name, None)
        for uid in [uid for uid in pods if uid not in by_pod]:
            try:
                volumes = self._volumes(pods[uid], name)
            except VolumeError as fault:
                self._faults[name] = str(fault)
                continue  # checked again each time, so the fault ends with its cause
            by_pod[uid] = volumes
            for volume in volumes:
                if node.add(volume):
                    self._holders.setdefault(volume, {})[name] = None

    def _volumes(self, pod: PodInfo, node_name: str) -> tuple[VolumeId, ...]:
        has_csi_node = self._snapshot.listers.csi_nodes.get(node_name) is not None
        return tuple(self._resolver.resolve(pod, has_csi_node=has_csi_node, skip_missing=True))

    def _attached_to(self, name: str) -> set[VolumeId]:
        """Return the volumes that are attached to a node, whether a pod uses them or not."""
        volume_ids: set[VolumeId] = set()
        for attacher, volume_name in self._attachments.get(name, _NO_ATTACHMENTS).values():
            volume = self._snapshot.listers.persistent_volumes.get(volume_name)
            if volume is not None and volume.spec.csi is not None:
                volume_ids.add((attacher, volume.spec.csi.volume_handle))
        return volume_ids

    def _unexplained(self, name: str, node: _Node) -> list[str]:
        """Return the drivers of attached volumes that no pod on the node explains."""
        return [
            driver
            for driver, handle in sorted(self._attached_to(name))
            if (driver, handle) not in node.refs
        ]

    def _build_limits(self, driver: str) -> NDArray[np.int64]:
        limit_n = np.full(self._snapshot.num_nodes, _NO_LIMIT, np.int64)
        for csi_node in self._snapshot.listers.csi_nodes.all():
            row = self._snapshot.row_of(csi_node.name)
            if row is not None:
                limit_n[row] = limits_of(csi_node).get(driver, _NO_LIMIT)
        return limit_n


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """Return the attach limits of a node by driver; drivers without a limit are absent."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
