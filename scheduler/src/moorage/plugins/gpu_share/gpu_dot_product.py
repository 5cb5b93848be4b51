"""GpuDotProduct: nodes whose free CPU and GPU are least like the request, as in Tetris.

Rules: ``pkg/simulator/plugin/dot_product_score.go`` of the simulator of "Beware of Fragmentation";
Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014.
"""

from __future__ import annotations

import numpy as np

from moorage.framework.cycle_state import CycleState
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.policy import CPU_MOST, GPU_MOST, RowPolicy
from moorage.plugins.gpu_share.sharing import cpu_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView


class GpuDotProduct(RowPolicy):
    """PreScore and Score plugin; takes no arguments."""

    name = "GpuDotProduct"

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score a small product of the free and the requested amounts high."""
        del state
        cpu, gpu = cpu_of(pod), self.ask_of(pod).total_milli
        idle_n = view.take_rows(self.devices.idle_n)
        dot_n = (self.free_cpu(view) / CPU_MOST) * (cpu / CPU_MOST)
        dot_n = dot_n + (idle_n / GPU_MOST) * (gpu / GPU_MOST)
        score_n = np.trunc(MAX_NODE_SCORE * (1 - dot_n / 2)).astype(np.int64)
        return np.clip(score_n, MIN_NODE_SCORE, MAX_NODE_SCORE)
