"""Losses of placeable GPU by placing a pod: kept for each kind of pods, renewed by changed rows.

The policies GpuFragmentation and GpuLookahead both place a pod where the loss is small. The loss of
a row depends on its free devices, its free CPU and its model alone, so a placed pod changes one
row.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np

from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.devices import DeviceColumns
from moorage.plugins.gpu_share.sharing import RowRoom
from moorage.plugins.gpu_share.typical import FloatArray, IntArray, NodeStates, TypicalPods
from moorage.snapshot.snapshot import Snapshot

_KINDS_MOST: Final = 1024  # kinds of pods whose losses are kept; a guess: 20 MB at 1200 nodes
_NOISE: Final = 1e-6  # milli-GPU; sums in another order differ by less, real losses by more


class Kind(NamedTuple):
    """The properties of a pod on which the loss depends.

    Parameters
    ----------
    ask
        The GPUs.
    cpu_milli
        The CPU.
    """

    ask: GpuAsk
    cpu_milli: int


class _Kept:
    """An amount for every node, and how far it has followed the changes."""

    __slots__ = ("amount_n", "epoch", "position")

    def __init__(self, amount_n: FloatArray, epoch: int, position: int) -> None:
        self.amount_n, self.epoch, self.position = amount_n, epoch, position


class Losses:
    """The loss of placing a pod on each node.

    The loss is the growth of the fragmentation, in milli-GPU: idle GPU that the typical pods can
    use no more, without the GPU that the pod itself takes.

    Parameters
    ----------
    typical
        The pods to come.
    snapshot
        The cluster.
    """

    def __init__(self, typical: TypicalPods, snapshot: Snapshot) -> None:
        self._typical = typical
        self._snapshot = snapshot
        self._kept: OrderedDict[Kind, _Kept] = OrderedDict()
        self._before: _Kept | None = None
        """Placeable GPU of every node as it is: the same for every kind of pods."""

    def of(self, kind: Kind, devices: DeviceColumns) -> FloatArray:
        """Return float64, (n,), milli-GPU; infinity where the node has no room.

        Parameters
        ----------
        kind
            The pod.
        devices
            The devices, up to date.
        """
        kept = self._kept.get(kind)
        if kept is not None and kept.epoch == devices.epoch:
            self._kept.move_to_end(kind)
            if kept.position == devices.log.position:
                return kept.amount_n
            changed = devices.log.since(kept.position)
            if changed is not None:
                self._renew(kept.amount_n, kind, devices, np.array(sorted(changed), np.int64))
                kept.position = devices.log.position
                return kept.amount_n
        loss_n = np.empty(len(devices.idle_n))
        self._renew(loss_n, kind, devices, np.arange(len(loss_n)))
        self._kept[kind] = _Kept(loss_n, devices.epoch, devices.log.position)
        if len(self._kept) > _KINDS_MOST:
            self._kept.popitem(last=False)
        return loss_n

    def choose(
        self, ask: GpuAsk, cpu_milli: int, room: RowRoom, *, models: list[str]
    ) -> FloatArray:
        """Return float64, (devices,): the loss of placing a share on each device of one node."""
        states = NodeStates(
            np.array([room.cpu_milli], np.int64),
            np.array([room.free], np.int64),
            np.array([room.model], np.int64),
        )
        before_s, kind = self._typical.placeable(states, models), Kind(ask, cpu_milli)
        loss_d: FloatArray = self._of_shares(kind, states, before_s, models=models)[0]
        return loss_d

    def _placeable_before(self, devices: DeviceColumns) -> FloatArray:
        """Return float64, (n,), milli-GPU: what typical pods can use of each node as it is."""
        kept, changed = self._before, None
        if kept is not None and kept.epoch == devices.epoch:
            changed = devices.log.since(kept.position)
        if kept is None or changed is None:
            every = np.arange(len(devices.idle_n))
            placeable_n = self._typical.placeable(self._states(devices, every), devices.models)
            kept = self._before = _Kept(placeable_n, devices.epoch, devices.log.position)
        elif changed:
            rows = np.array(changed, np.int64)
            states = self._states(devices, rows)
            kept.amount_n[rows] = self._typical.placeable(states, devices.models)
            kept.position = devices.log.position
        return kept.amount_n

    def _states(self, devices: DeviceColumns, rows: IntArray) -> NodeStates:
        snapshot = self._snapshot
        cpu_s = snapshot.allocatable("cpu")[rows] - snapshot.requested("cpu")[rows]
        return NodeStates(cpu_s, devices.free_nd[rows], devices.model_n[rows])

    def _renew(
        self, loss_n: FloatArray, kind: Kind, devices: DeviceColumns, rows: IntArray
    ) -> None:
        loss_n[rows] = np.inf
        ask, cpu_n = kind.ask, self._snapshot.allocatable("cpu") - self._snapshot.requested("cpu")
        fits = cpu_n[rows] >= kind.cpu_milli
        if ask.is_share:
            fits &= devices.largest_n[rows] >= ask.milli
        else:
            fits &= devices.whole_n[rows] >= ask.gpus
        rows = rows[fits]
        if not len(rows):
            return
        states, before_s = self._states(devices, rows), self._placeable_before(devices)[rows]
        if ask.is_share:
            loss_sd = self._of_shares(kind, states, before_s, models=devices.models)
            loss_n[rows] = loss_sd.min(axis=1)
        else:
            loss_n[rows] = self._of_whole(kind, states, before_s, models=devices.models)

    def _of_whole(
        self, kind: Kind, states: NodeStates, before_s: FloatArray, *, models: list[str]
    ) -> FloatArray:
        """Return the loss of placing whole GPUs, or a pod without GPUs, in each state."""
        free_sd = states.free_sd
        if kind.ask.gpus:
            whole_sd = free_sd == WHOLE_GPU_MILLI
            taken_sd = whole_sd & (whole_sd.cumsum(axis=1) <= kind.ask.gpus)
            free_sd = np.where(taken_sd, 0, free_sd)
        after = NodeStates(states.cpu_s - kind.cpu_milli, free_sd, states.model_s)
        placeable_s = self._typical.placeable(after, models)
        return _clean(before_s - placeable_s - kind.ask.total_milli)

    def _of_shares(
        self, kind: Kind, states: NodeStates, before_s: FloatArray, *, models: list[str]
    ) -> FloatArray:
        """Return float64, (s, devices): the loss by device; infinity without room on it.

        Devices of a node that are free to the same part have the same loss. Only the first of
        them is looked at.
        """
        free_sd, milli = states.free_sd, kind.ask.milli
        earlier = np.tri(free_sd.shape[1], k=-1, dtype=np.bool_)
        same_sdd = (free_sd[:, :, None] == free_sd[:, None, :]) & earlier
        tried_sd = (free_sd >= milli) & ~same_sdd.any(axis=2)
        at_t, device_t = tried_sd.nonzero()
        after_td = free_sd[at_t]
        after_td[np.arange(len(at_t)), device_t] -= milli
        after = NodeStates(states.cpu_s[at_t] - kind.cpu_milli, after_td, states.model_s[at_t])
        placeable_t = self._typical.placeable(after, models)
        loss_sd = np.full(free_sd.shape, np.inf)
        loss_sd[at_t, device_t] = _clean(before_s[at_t] - placeable_t - milli)
        return loss_sd


def _clean(loss: FloatArray) -> FloatArray:
    """Return losses without the noise of summation: none is exactly 0."""
    loss[np.abs(loss) < _NOISE] = 0.0
    return loss
