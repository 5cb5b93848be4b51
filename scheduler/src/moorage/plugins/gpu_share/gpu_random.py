"""GpuRandom: any feasible node and any device with room, each with the same chance.

Rules: ``pkg/simulator/plugin/random_score.go`` of the simulator of "Beware of Fragmentation".
"""

from __future__ import annotations

import numpy as np

from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.framework.status import Status
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.policy import Policy
from moorage.plugins.gpu_share.sharing import RowRoom
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_DRAWN: StateKey[int] = StateKey("PreScoreGpuRandom")


class GpuRandom(Policy):
    """PreScore and Score plugin; takes no arguments."""

    name = "GpuRandom"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._random = handle.streams.stream(f"{self.name}/{handle.profile_name}")

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Draw one of the feasible nodes."""
        rows = feasible.row_numbers()
        state.write(_DRAWN, int(rows[self._random.randrange(len(rows))]))
        return super().pre_score(state, pod, feasible)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Return 100 for the drawn node, 0 for the others.

        Raises
        ------
        StateMissingError
            PreScore of this plugin is not enabled.
        """
        del pod
        drawn_n = view.row_numbers() == state.read(_DRAWN)
        return np.where(drawn_n, np.int64(MAX_NODE_SCORE), np.int64(0))

    def choose(self, ask: GpuAsk, cpu_milli: int, room: RowRoom) -> int:
        """Draw one of the devices with room; -1 where none has room."""
        del cpu_milli
        fitting = [device for device, left in enumerate(room.free) if left >= ask.milli]
        return self._random.choice(fitting) if fitting else -1
