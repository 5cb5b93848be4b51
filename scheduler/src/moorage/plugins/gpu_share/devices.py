"""The free part of every GPU, by node: columns kept current by the rows that changed.

A pod holds the devices that Reserve chose for it, or those that its annotation names. Where neither
is known, as in a trial, the pod counts on the devices that it would get. A nominated pod counts on
the devices that it gets once its victims are gone, and no pod that comes after it gets them.

All profiles with the same names share these columns, because a device taken by a pod of one profile
is taken for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI
from moorage.plugins.gpu_share.asking import Asking, GpuAsk
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

ABSENT: Final = -1
"""Free part of a device that the node does not have."""
_HELD_MOST: Final = 8192  # held devices before those of pods that have gone are dropped; a guess

IntArray = NDArray[np.int64]


class _Known(NamedTuple):
    """The request of a pod on a node; the tag is "" for a pod that asks for no GPU."""

    info: PodInfo
    ask: GpuAsk
    tag: str


def least_room(free: Sequence[int], milli: int) -> int:
    """Return the device with the least room for a share, the lowest of equals; -1 for none."""
    fitting = [(left, device) for device, left in enumerate(free) if left >= milli]
    return min(fitting)[1] if fitting else ABSENT


def whole_devices(free: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the lowest wholly free devices, at most `count` of them."""
    return tuple(device for device, left in enumerate(free) if left == WHOLE_GPU_MILLI)[:count]


class DeviceColumns:
    """The GPUs of every node.

    Parameters
    ----------
    snapshot
        The cluster.
    asking
        Reads what pods ask for.

    Attributes
    ----------
    free_nd
        int64, (n, devices), milli-GPU: the free part of each device; -1 for no device.
    idle_n
        int64, (n,), milli-GPU: the sum of the free parts.
    whole_n
        int64, (n,): number of wholly free devices.
    largest_n
        int64, (n,), milli-GPU: the largest free part; -1 without devices.
    count_n
        int64, (n,): number of devices.
    model_n
        int64, (n,): index of the node's model in `models`.
    models
        Names of models; "" is the model of a node without a label.
    tags
        By row, what the GPU pods on it ask for: ``share`` or ``<number>-gpu``.
    log
        Rows of which anything changed: node, pods or devices.
    epoch
        Rises when rows are renumbered.
    """

    def __init__(self, snapshot: Snapshot, asking: Asking) -> None:
        self._snapshot = snapshot
        self._asking = asking
        self._table = snapshot.table
        self._devices_by_uid: dict[str, tuple[int, ...]] = {}
        self._asks: dict[str, _Known] = {}
        self._structure = -1
        self._logs = (self._table.node_log, self._table.pod_log, self._table.version_log)
        self._positions = [0, 0, 0]
        self._chosen: set[int] = set()
        """Rows of which a pod got devices, or lost them, since the columns last followed."""
        self._purge_at = _HELD_MOST
        self._model_ids: dict[str, int] = {"": 0}
        self._node_of_row: list[Node | None] = []
        self.models: list[str] = [""]
        self.log: KeyLog[int] = KeyLog()
        self.epoch = 0
        self._resize(0, 0)

    # -- following the cluster -----------------------------------------------------------------

    def follow(self) -> None:
        """Bring the columns up to date with the cluster."""
        table = self._table
        if table.columns.structure != self._structure:
            self._rebuild()
            return
        positions, changed = self._positions, self._chosen
        if len(self._asks) > _HELD_MOST + 2 * table.pod_total:
            self._asks.clear()
        for at, log in enumerate(self._logs):
            if log.position == positions[at]:
                continue
            rows = log.since(positions[at])
            if rows is None:
                self._rebuild()
                return
            changed.update(rows)
            positions[at] = log.position
        if changed:
            self._chosen = set()
            for row in sorted(changed):
                self._read_row(row)
                self.log.append(row)

    def _rebuild(self) -> None:
        table = self._table
        self._structure = table.columns.structure
        self._positions = [log.position for log in self._logs]
        self._chosen = set()
        self._resize(table.columns.n, self.free_nd.shape[1])
        self.epoch += 1
        for row in range(table.columns.n):
            self._read_row(row)

    def _resize(self, rows: int, width: int) -> None:
        self.free_nd: IntArray = np.full((rows, width), ABSENT, np.int64)
        self.idle_n, self.whole_n, self.count_n, self.model_n = np.zeros((4, rows), np.int64)
        self.largest_n: IntArray = np.full(rows, ABSENT, np.int64)
        self.tags: list[frozenset[str]] = [frozenset()] * rows
        self._node_of_row = [None] * rows

    def _read_row(self, row: int) -> None:
        node = self._table.nodes[row]
        if self._node_of_row[row] is not node:
            self._node_of_row[row] = node
            self._read_node(row, node)
        count = self.count_n.item(row)
        if count == 0:
            return
        free, tags = self._free_of(row, count, without=None)
        self.free_nd[row, :count] = free
        self.idle_n[row] = sum(free)
        self.whole_n[row] = free.count(WHOLE_GPU_MILLI)
        self.largest_n[row] = max(free)
        self.tags[row] = tags

    def _read_node(self, row: int, node: Node) -> None:
        count = self._count_of(node)
        if count > self.free_nd.shape[1]:
            wider = np.full((len(self.free_nd), count), ABSENT, np.int64)
            wider[:, : self.free_nd.shape[1]] = self.free_nd
            self.free_nd = wider
            self.epoch += 1
        self.free_nd[row] = ABSENT
        self.idle_n[row] = self.whole_n[row] = 0
        self.largest_n[row], self.count_n[row] = ABSENT, count
        self.tags[row] = frozenset()
        labels = node.metadata.labels
        named = (labels[name] for name in self._asking.names.model_labels if labels.get(name))
        self.model_n[row] = self._model_id(next(named, ""))

    def _count_of(self, node: Node) -> int:
        resource = self._asking.count_resource(node)
        if not resource:
            return 0
        return max(0, to_units(resource, parse_quantity(node.status.allocatable[resource])))

    def _model_id(self, model: str) -> int:
        found = self._model_ids.get(model)
        if found is None:
            found = self._model_ids[model] = len(self.models)
            self.models.append(model)
        return found

    # -- one row -------------------------------------------------------------------------------

    def free_for(self, row: int, pod: PodInfo) -> list[int]:
        """Return the free part of each device of a row for a pod, which itself is not counted.

        The pods nominated to the row first are counted. The row is read afresh: the columns do not
        follow the changes of pods, so that a pod that was just put on the row is counted with the
        devices it gets, and not twice.
        """
        table = self._table
        if (
            table.columns.structure != self._structure
            or table.node_log.position != self._positions[0]
        ):
            self.follow()
        return self._free_of(row, self.count_n.item(row), without=pod)[0]

    def _free_of(
        self, row: int, count: int, *, without: PodInfo | None
    ) -> tuple[list[int], frozenset[str]]:
        free = [WHOLE_GPU_MILLI] * count
        tags: set[str] = set()
        unknown: list[PodInfo] = []
        left_out = "" if without is None else without.uid
        asks, by_uid = self._asks, self._devices_by_uid
        for uid, info in self._table.pods_by_row[row].items():
            known = asks.get(uid)
            if known is None or known.info is not info:
                known = self._read_ask(info)
            _, ask, tag = known
            if not tag or uid == left_out:
                continue
            tags.add(tag)
            devices = by_uid.get(uid)
            if devices is None:
                devices = self._asking.devices_of(info)
                if devices is None:
                    unknown.append(info)
                    continue
            milli = ask.milli
            for device in devices:
                if device < count:
                    free[device] -= milli
        if without is not None:
            unknown.extend(self._nominated_before(row, without))
        if unknown:
            self._take_unknown(free, row, unknown)
        if free and min(free) < 0:  # written by another program, or more pods than devices
            free = [max(0, left) for left in free]
        return free, frozenset(tags)

    def _read_ask(self, info: PodInfo) -> _Known:
        ask = self._asking.gpu_ask_of(info)
        known = self._asks[info.uid] = _Known(info, ask, tag_of(ask) if ask.gpus else "")
        return known

    def _devices_of(self, info: PodInfo) -> tuple[int, ...] | None:
        devices = self._devices_by_uid.get(info.uid)
        return self._asking.devices_of(info) if devices is None else devices

    def _nominated_before(self, row: int, pod: PodInfo) -> Iterator[PodInfo]:
        """Yield the pods nominated to a row for which a pod must leave devices."""
        for other in self._snapshot.nominations.get(self._snapshot.names[row], ()):
            comes_first = other.priority >= pod.priority and other.uid != pod.uid
            if (
                comes_first
                and self._table.node_of_pod(other.uid) is None
                and self._asking.gpu_ask_of(other).gpus
            ):
                yield other

    def _take_unknown(self, free: list[int], row: int, others: Sequence[PodInfo]) -> None:
        """Take the devices of pods whose devices are not known: first those of nominated pods.

        A nominated pod gets devices as if its victims were gone. The victims hold these devices
        still, so the nominated pod takes their free parts, and whatever else its victims leave.
        """
        later, staying = list(free), dict(self._table.pods_by_row[row])
        likely: list[PodInfo] = []
        for other in others:
            victims = self._snapshot.victims_of(other.uid)
            if victims is None:
                likely.append(other)
                continue
            for uid, info in list(staying.items()):
                if uid in victims or _leaves_for(info, other):
                    del staying[uid]
                    _move(later, self._devices_of(info) or (), self._asking.gpu_ask_of(info).milli)
            ask = self._asking.gpu_ask_of(other)
            devices = _likely_devices(later, ask)
            _move(later, devices, -ask.milli)
            _move(free, devices, -ask.milli)
        for other in likely:
            ask = self._asking.gpu_ask_of(other)
            _move(free, _likely_devices(free, ask), -ask.milli)

    # -- reserving -----------------------------------------------------------------------------

    def hold(self, uid: str, node_name: str, devices: tuple[int, ...]) -> None:
        """Note the devices that were chosen for a pod."""
        if len(self._devices_by_uid) >= self._purge_at:
            known = self._table.node_of_pod
            self._devices_by_uid = {
                each: held for each, held in self._devices_by_uid.items() if known(each)
            }
            self._asks = {each: kept for each, kept in self._asks.items() if known(each)}
            self._purge_at = max(_HELD_MOST, 2 * len(self._devices_by_uid))
        self._devices_by_uid[uid] = devices
        self._touch(node_name)

    def devices_of(self, uid: str) -> tuple[int, ...] | None:
        """Return the devices that were chosen for a pod, or None."""
        return self._devices_by_uid.get(uid)

    def drop(self, uid: str, node_name: str) -> None:
        """Forget the devices that were chosen for a pod."""
        if self._devices_by_uid.pop(uid, None) is not None:
            self._touch(node_name)

    def _touch(self, node_name: str) -> None:
        row = self._table.row_of(node_name)
        if row is not None and self._structure == self._table.columns.structure:
            self._chosen.add(row)


def tag_of(ask: GpuAsk) -> str:
    """Return the kind of a request for GPUs: ``share`` or ``<number>-gpu``."""
    return "share" if ask.is_share else f"{ask.gpus}-gpu"


def _likely_devices(free: Sequence[int], ask: GpuAsk) -> tuple[int, ...]:
    """Return the devices that a pod would get if its devices are not known."""
    if not ask.is_share:
        return whole_devices(free, ask.gpus)
    device = least_room(free, ask.milli)
    return () if device < 0 else (device,)


def _move(free: list[int], devices: Sequence[int], milli: int) -> None:
    """Add to the free part of devices; devices that the node does not have are left out."""
    for device in devices:
        if device < len(free):
            free[device] += milli


def _leaves_for(pod: PodInfo, other: PodInfo) -> bool:
    """Whether a pod is terminating that another pod may evict."""
    return bool(pod.pod.metadata.deletion_timestamp) and pod.priority < other.priority
