"""The common part of the policies: a policy scores nodes, and chooses devices for GpuShare."""

from __future__ import annotations

from typing import Final

from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.status import Status
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.devices import DeviceColumns, least_room
from moorage.plugins.gpu_share.sharing import RowRoom, sharing_of
from moorage.plugins.gpu_share.typical import IntArray
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.view import NodeView

CPU_MOST: Final = 128_000
"""Millicores of the largest node of the OpenB trace; the policies divide by it."""
GPU_MOST: Final = 8_000
"""Milli-GPU of the largest node of the OpenB trace."""


class Policy:
    """A Score plugin that GpuShare asks for the device of a share; the fullest device here.

    Parameters
    ----------
    args
        Not used: policies without arguments.
    handle
        Snapshot and profile.

    Raises
    ------
    ConfigError
        Another policy of the profile chooses devices.
    """

    name: str

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._sharing = sharing_of(handle)
        self._sharing.use_chooser(self)

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Answer whether the profile has GpuShare."""
        del state, pod, feasible
        return self._sharing.ready(self.name)

    def choose(self, ask: GpuAsk, cpu_milli: int, room: RowRoom) -> int:
        """Return the device with the least room for the share; -1 where none has room."""
        del cpu_milli
        return least_room(room.free, ask.milli)

    @property
    def devices(self) -> DeviceColumns:
        """The columns of devices, up to date."""
        return self._sharing.devices

    def ask_of(self, pod: PodInfo) -> GpuAsk:
        """Return the GPUs that a pod asks for."""
        return self._sharing.asking.gpu_ask_of(pod)

    def free_cpu(self, view: NodeView) -> IntArray:
        """Return int64, (rows,), millicores that pods have not requested."""
        snapshot = self._snapshot
        return view.take_rows(snapshot.allocatable("cpu")) - view.take_rows(
            snapshot.requested("cpu")
        )


class RowPolicy(Policy):
    """A policy whose score of a row depends on the node and its pods alone."""

    def capabilities(self) -> Capabilities:
        """Declare that scores are reused for replicas until a row changes."""
        parts = (self._sharing.asking.kind, RESOURCES)
        return Capabilities(score_reads=Reads.NODE | Reads.PODS, shape_parts=parts)
