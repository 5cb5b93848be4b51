"""The parts shared by the GPU plugins of a profile: names, devices, and the choice of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.framework.handle import Handle
from moorage.framework.status import SUCCESS, Status, error
from moorage.plugins.gpu_share.asking import Asking, GpuAsk
from moorage.plugins.gpu_share.devices import DeviceColumns, least_room
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot

_GPU_SHARE: Final = "GpuShare"


class RowRoom(msgspec.Struct, frozen=True):
    """The room of one node before a pod is placed there.

    Parameters
    ----------
    row
        Row of the node.
    free
        Free milli-GPU of each device.
    cpu_milli
        CPU that pods have not requested.
    model
        Index of the node's model in `DeviceColumns.models`.
    """

    row: int
    free: Sequence[int]
    cpu_milli: int
    model: int


class DeviceChooser(Protocol):
    """Chooses the device for a pod that asks for a share of one."""

    name: str

    def choose(self, ask: GpuAsk, cpu_milli: int, room: RowRoom) -> int:
        """Return the device; -1 where none has room."""
        ...


class Sharing:
    """The common part of the GPU plugins of one profile.

    Parameters
    ----------
    handle
        The profile's handle.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self._chooser: DeviceChooser | None = None
        self._asking: Asking | None = None
        self._devices: DeviceColumns | None = None

    def use_names(self, names: GpuShareArgs) -> None:
        """Set the names under which pods ask; GpuShare calls this."""
        self._asking = Asking(names)
        self._devices = device_columns(self.handle.snapshot, names)

    def use_chooser(self, chooser: DeviceChooser) -> None:
        """Set the policy that chooses devices.

        Raises
        ------
        ConfigError
            Another policy of the profile chooses them.
        """
        if self._chooser is not None:
            text = f"{self._chooser.name} and {chooser.name} both choose GPUs: enable one of them"
            raise ConfigError([text])
        self._chooser = chooser

    def ready(self, policy: str) -> Status:
        """Answer whether the profile has GpuShare, without which no device is reserved."""
        if self._devices is None:
            return error(f"{policy} scores the GPUs that {_GPU_SHARE} counts: enable {_GPU_SHARE}")
        return SUCCESS

    @property
    def asking(self) -> Asking:
        """The demand of pods; by default names as long as there is no GpuShare."""
        if self._asking is None:
            return Asking(GpuShareArgs())
        return self._asking

    @property
    def devices(self) -> DeviceColumns:
        """The columns of devices, up to date."""
        found = self.devices_before
        found.follow()
        return found

    @property
    def devices_before(self) -> DeviceColumns:
        """The columns of devices as they were when they were last asked for."""
        assert self._devices is not None, "the profile has no GpuShare"
        return self._devices

    def choose(self, ask: GpuAsk, cpu_milli: int, room: RowRoom) -> int:
        """Return the device for a share, by the policy of the profile; -1 for none."""
        if self._chooser is None:
            return least_room(room.free, ask.milli)
        return self._chooser.choose(ask, cpu_milli, room)


def sharing_of(handle: Handle) -> Sharing:
    """Return the common part of the GPU plugins that are built with one handle."""
    kept, key = handle.snapshot.companions, (_GPU_SHARE, handle.profile_name)
    found = kept.get(key)
    if not isinstance(found, Sharing) or found.handle is not handle:
        found = kept[key] = Sharing(handle)
    return found


def cpu_of(pod: PodInfo) -> int:
    """Return a pod's CPU request in millicores, 100 where a container states none."""
    return pod.part(RESOURCES).value.score.get("cpu", 0)


def device_columns(snapshot: Snapshot, names: GpuShareArgs) -> DeviceColumns:
    """Return the devices of a cluster: the same object for equal names.

    Parameters
    ----------
    snapshot
        The cluster.
    names
        The names under which pods ask.
    """
    key = ("GpuShareDevices", names)
    found = snapshot.companions.get(key)
    if not isinstance(found, DeviceColumns):
        found = snapshot.companions[key] = DeviceColumns(snapshot, Asking(names))
    return found
