"""The fragmentation of a whole cluster as one pod after another is placed, for experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.config.plugin_args_gpu import TypicalPod
from moorage.plugins.gpu_share.devices import DeviceColumns
from moorage.plugins.gpu_share.typical import NodeStates, TypicalPods
from moorage.snapshot.snapshot import Snapshot

_AT_ONCE: Final = 2048  # states in one computation: some megabytes


class FragmentationLog:
    """Notes the changed node of every step, and computes the fragmentation of all steps at once.

    Parameters
    ----------
    typical
        The pods for which GPU is fragmented.
    snapshot, devices
        The cluster at the first step.
    """

    def __init__(
        self, typical: Sequence[TypicalPod], snapshot: Snapshot, devices: DeviceColumns
    ) -> None:
        self._typical = TypicalPods(typical)
        self._snapshot = snapshot
        self._devices = devices
        devices.follow()
        self._rows = list(range(snapshot.num_nodes))
        self._nodes = len(self._rows)
        self._states = [self._state(row) for row in self._rows]

    def note_step(self, row: int | None) -> None:
        """Note one step: the row that got a pod, None where nothing changed."""
        self._devices.follow()
        self._rows.append(-1 if row is None else row)
        self._states.append(self._states[0] if row is None else self._state(row))

    def totals(self) -> list[tuple[float, int]]:
        """Return the fragmented and the idle milli-GPU of the cluster after each step."""
        placeable = self._placeable()
        idle = [sum(free) for _, free, _ in self._states]
        by_row = [idle[row] - placeable[row] for row in range(self._nodes)]
        idle_by_row = idle[: self._nodes]
        fragmented_sum, idle_sum = sum(by_row), sum(idle_by_row)
        totals = []
        for step in range(self._nodes, len(self._rows)):
            row = self._rows[step]
            if row >= 0:
                fragmented = idle[step] - placeable[step]
                fragmented_sum += fragmented - by_row[row]
                idle_sum += idle[step] - idle_by_row[row]
                by_row[row], idle_by_row[row] = fragmented, idle[step]
            totals.append((fragmented_sum, idle_sum))
        return totals

    def _placeable(self) -> list[float]:
        placeable: list[float] = []
        width = self._devices.free_nd.shape[1]
        for start in range(0, len(self._states), _AT_ONCE):
            part = self._states[start : start + _AT_ONCE]
            states = NodeStates(
                np.array([cpu for cpu, _, _ in part], np.int64),
                np.array([[*free, *[-1] * (width - len(free))] for _, free, _ in part], np.int64),
                np.array([model for _, _, model in part], np.int64),
            )
            placeable += self._typical.placeable(states, self._devices.models).tolist()
        return placeable

    def _state(self, row: int) -> tuple[int, list[int], int]:
        snapshot, devices = self._snapshot, self._devices
        cpu = snapshot.allocatable("cpu").item(row) - snapshot.requested("cpu").item(row)
        free = devices.free_nd[row, : devices.count_n.item(row)].tolist()
        return cpu, free, devices.model_n.item(row)
