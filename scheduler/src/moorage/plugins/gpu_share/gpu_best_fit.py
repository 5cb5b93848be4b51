"""GpuBestFit: nodes with the least CPU and GPU left next to the pod.

Rules: ``pkg/simulator/plugin/best_fit_score.go`` of the simulator of "Beware of Fragmentation".
"""

from __future__ import annotations

import numpy as np

from moorage.framework.cycle_state import CycleState
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.policy import CPU_MOST, GPU_MOST, RowPolicy
from moorage.plugins.gpu_share.sharing import cpu_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView


class GpuBestFit(RowPolicy):
    """PreScore and Score plugin; takes no arguments."""

    name = "GpuBestFit"

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score the mean of the two shares that would be left, small ones high."""
        del state
        cpu, gpu = cpu_of(pod), self.ask_of(pod).total_milli
        left_n = ((self.free_cpu(view) - cpu) / CPU_MOST) * 0.5
        left_n = left_n + ((view.take_rows(self.devices.idle_n) - gpu) / GPU_MOST) * 0.5
        score_n = np.trunc((1 - left_n) * MAX_NODE_SCORE).astype(np.int64)
        return np.clip(score_n, MIN_NODE_SCORE, MAX_NODE_SCORE)
