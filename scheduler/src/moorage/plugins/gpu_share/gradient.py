"""The gradient of fragmentation: nodes and devices graded by what placing a pod there loses.

The policies GpuFragmentation and GpuLookahead both place a pod where the loss is small. The loss of
a row depends on its free devices, its free CPU and its model alone, so a placed pod changes one
row. Grades are kept for each kind of pods, and renewed for changed rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI
from moorage.framework.handle import Handle
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.devices import ABSENT, DeviceColumns
from moorage.plugins.gpu_share.policy import Policy
from moorage.plugins.gpu_share.sharing import RowRoom, cpu_of
from moorage.plugins.gpu_share.typical import FloatArray, IntArray, NodeStates
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_KINDS_MOST: Final = 1024  # kinds of pods whose grades are kept; a guess: 12 MB at 1200 nodes

Grades = NDArray[Any]
Unusable = Callable[[NodeStates, Sequence[str]], FloatArray]
"""Of states of nodes and names of models, the idle milli-GPU that pods to come cannot use."""
Grade = Callable[[FloatArray], Grades]
"""Of losses in milli-GPU, grades of the same shape: higher is better."""


class Kind(NamedTuple):
    """The properties of a pod on which the loss depends.

    The models that a pod admits are not among them: they say which nodes are looked at.

    Parameters
    ----------
    gpus
        Number of devices.
    milli
        Milli-GPU of each device.
    cpu_milli
        The CPU.
    """

    gpus: int
    milli: int
    cpu_milli: int

    @property
    def is_share(self) -> bool:
        """Whether the pods ask for less than one whole device."""
        return 0 < self.milli < WHOLE_GPU_MILLI


def _kind_of(ask: GpuAsk, cpu_milli: int) -> Kind:
    return Kind(ask.gpus, ask.milli, cpu_milli)


class _GradeColumns:
    """A grade and a device for every node, and how far they have followed the changes."""

    __slots__ = ("device_n", "epoch", "grade_n", "position")

    def __init__(self, grade_n: Grades, epoch: int) -> None:
        self.grade_n = grade_n
        self.device_n = np.full(len(grade_n), ABSENT, np.int8)
        self.epoch, self.position = epoch, -1


class Gradient:
    """The grades of placing a pod on each node.

    The loss is the growth of the idle GPU that the pods to come cannot use.

    Parameters
    ----------
    unusable
        That idle GPU, of states of nodes.
    grade
        What a loss is worth. A loss of infinity stands for a node or a device without room.
    snapshot
        The cluster.
    """

    def __init__(self, unusable: Unusable, grade: Grade, snapshot: Snapshot) -> None:
        self._unusable = unusable
        self._grade = grade
        self._snapshot = snapshot
        self._columns: OrderedDict[Kind, _GradeColumns] = OrderedDict()
        self._as_is = _AsIs()

    def grades_of(self, kind: Kind, devices: DeviceColumns) -> Grades:
        """Return the grade of each node, that of its best device: (n,).

        Parameters
        ----------
        kind
            The pod.
        devices
            The devices, up to date.
        """
        columns, log = self._columns.get(kind), devices.log
        changed = None
        if columns is not None and columns.epoch == devices.epoch:
            self._columns.move_to_end(kind)
            changed = log.since(columns.position)
        if columns is None or changed is None:
            none_n = self._grade(np.full(len(devices.idle_n), np.inf))
            columns = self._columns[kind] = _GradeColumns(none_n, devices.epoch)
            if len(self._columns) > _KINDS_MOST:
                self._columns.popitem(last=False)
            self._renew(columns, kind, devices, np.arange(len(none_n)))
        elif changed:
            self._renew(columns, kind, devices, np.array(changed, np.int64))
        columns.position = log.position
        return columns.grade_n

    def choose(self, kind: Kind, room: RowRoom, devices: DeviceColumns) -> int:
        """Return the device of one node with the best grade for a share; -1 without room.

        Parameters
        ----------
        kind
            The pod.
        room
            The node without the pod.
        devices
            The devices; those of the node may be older than `room`.
        """
        kept = self._columns.get(kind)
        if kept is not None and kept.epoch == devices.epoch:
            is_as_graded = kept.position == self._as_is.position == devices.log.position
            if is_as_graded and self._as_is.is_like(room, devices):
                return kept.device_n.item(room.row)
        state = NodeStates(
            np.array([room.cpu_milli], np.int64),
            np.array([room.free], np.int64),
            np.array([room.model], np.int64),
        )
        found = self._of_shares(kind, state, None, models=devices.models)
        return found[1].item(0)

    def _renew(
        self, columns: _GradeColumns, kind: Kind, devices: DeviceColumns, rows: IntArray
    ) -> None:
        before_n = self._before(devices)
        cpu_s = self._as_is.cpu_n[rows]
        fits = cpu_s >= kind.cpu_milli
        if kind.is_share:
            fits &= devices.largest_n[rows] >= kind.milli
        else:
            fits &= devices.whole_n[rows] >= kind.gpus
        if not fits.all():
            columns.grade_n[rows[~fits]] = self._grade(_NO_ROOM)[0]
            rows, cpu_s = rows[fits], cpu_s[fits]
        if not len(rows):
            return
        states = NodeStates(cpu_s, devices.free_nd[rows], devices.model_n[rows])
        if kind.is_share:
            columns.grade_n[rows], columns.device_n[rows] = self._of_shares(
                kind, states, before_n[rows], models=devices.models
            )
        else:
            columns.grade_n[rows] = self._of_whole(
                kind, states, before_n[rows], models=devices.models
            )

    def _before(self, devices: DeviceColumns) -> FloatArray:
        """Return float64, (n,), milli-GPU: what pods to come cannot use of each node as it is."""
        as_is, changed = self._as_is, None
        if as_is.epoch == devices.epoch:
            changed = devices.log.since(as_is.position)
        if changed is None:
            rows = np.arange(len(devices.idle_n))
            as_is.cpu_n, as_is.unusable_n = np.zeros(len(rows), np.int64), np.zeros(len(rows))
            as_is.epoch = devices.epoch
        else:
            rows = np.array(changed, np.int64)
        if len(rows):
            snapshot = self._snapshot
            cpu_s = snapshot.allocatable("cpu")[rows] - snapshot.requested("cpu")[rows]
            as_is.cpu_n[rows] = cpu_s
            states = NodeStates(cpu_s, devices.free_nd[rows], devices.model_n[rows])
            as_is.unusable_n[rows] = self._unusable(states, devices.models)
        as_is.position = devices.log.position
        return as_is.unusable_n

    def _of_whole(
        self, kind: Kind, states: NodeStates, before_s: FloatArray, *, models: list[str]
    ) -> Grades:
        """Return the grade of placing whole GPUs, or a pod without GPUs, in each state."""
        free_sd = states.free_sd
        if kind.gpus:
            whole_sd = free_sd == WHOLE_GPU_MILLI
            taken_sd = whole_sd & (whole_sd.cumsum(axis=1) <= kind.gpus)
            free_sd = np.where(taken_sd, 0, free_sd)
        after = NodeStates(states.cpu_s - kind.cpu_milli, free_sd, states.model_s)
        return self._grade(self._unusable(after, models) - before_s)

    def _of_shares(
        self, kind: Kind, states: NodeStates, before_s: FloatArray | None, *, models: list[str]
    ) -> tuple[Grades, IntArray]:
        """Return the grade of the best device in each state, and the device; -1 without room.

        Devices of a node that are free to the same part have the same grade. Only the first of
        them is looked at.
        """
        free_sd, milli = states.free_sd, kind.milli
        earlier = np.tri(free_sd.shape[1], k=-1, dtype=np.bool_)
        same_sdd = (free_sd[:, :, None] == free_sd[:, None, :]) & earlier
        tried_sd = (free_sd >= milli) & ~same_sdd.any(axis=2)
        at_t, device_t = tried_sd.nonzero()
        after_td = free_sd[at_t]
        after_td[np.arange(len(at_t)), device_t] -= milli
        after = NodeStates(states.cpu_s[at_t] - kind.cpu_milli, after_td, states.model_s[at_t])
        if before_s is None:
            before_s = self._unusable(states, models)
        loss_sd = np.full(free_sd.shape, np.inf)
        loss_sd[at_t, device_t] = self._unusable(after, models) - before_s[at_t]
        grade_sd = self._grade(loss_sd)
        device_s = grade_sd.argmax(axis=1)
        best_s = grade_sd[np.arange(len(device_s)), device_s]
        device_s[~tried_sd.any(axis=1)] = ABSENT
        return best_s, device_s


class _AsIs:
    """The nodes as they are: the same for every kind of pods."""

    __slots__ = ("cpu_n", "epoch", "position", "unusable_n")

    def __init__(self) -> None:
        self.cpu_n: IntArray = np.zeros(0, np.int64)
        self.unusable_n: FloatArray = np.zeros(0)
        self.epoch = self.position = -1

    def is_like(self, room: RowRoom, devices: DeviceColumns) -> bool:
        """Whether a node was like this when it was last looked at."""
        row, count = room.row, len(room.free)
        return (
            self.cpu_n.item(row) == room.cpu_milli
            and devices.model_n.item(row) == room.model
            and devices.free_nd[row, :count].tolist() == room.free
        )


_NO_ROOM: Final = np.array([np.inf])


class GradientPolicy(Policy):
    """A policy that places a pod where the pods to come lose the least GPU.

    Parameters
    ----------
    args
        Not used here.
    handle
        Snapshot and profile.
    unusable
        The idle GPU that the pods to come cannot use.
    grade
        What a loss is worth.
    """

    def __init__(self, args: object, handle: Handle, *, unusable: Unusable, grade: Grade) -> None:
        super().__init__(args, handle)
        self._gradient = Gradient(unusable, grade, handle.snapshot)

    def grades(self, pod: PodInfo) -> Grades:
        """Return the grade of each node for a pod: (n,)."""
        return self._gradient.grades_of(_kind_of(self.ask_of(pod), cpu_of(pod)), self.devices)

    def choose(self, ask: GpuAsk, cpu_milli: int, room: RowRoom) -> int:
        """Return the device with the best grade, the lowest of equals; -1 without room."""
        return self._gradient.choose(_kind_of(ask, cpu_milli), room, self._sharing.devices_before)
