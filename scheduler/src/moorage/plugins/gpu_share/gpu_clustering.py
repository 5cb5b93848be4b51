"""GpuClustering: nodes whose pods ask for GPUs as the pod does.

Rules: ``pkg/simulator/plugin/gpu_clustering_score.go`` of the simulator of "Beware of
Fragmentation"; Xiao et al., "Gandiva", OSDI 2018.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage.framework.cycle_state import CycleState
from moorage.framework.points import MIN_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.devices import tag_of
from moorage.plugins.gpu_share.policy import GPU_MOST, RowPolicy
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_BY_USE: Final = 25  # the part of the score that rises with the GPU in use
_SAME_ONLY: Final = 75
_SAME_AMONG_OTHERS: Final = 50
_EMPTY: Final = 25


class GpuClustering(RowPolicy):
    """PreScore and Score plugin; takes no arguments."""

    name = "GpuClustering"

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score nodes by the kinds of their GPU pods, and by the GPU in use among equals."""
        del state
        ask, devices = self.ask_of(pod), self.devices
        if ask.gpus == 0:
            return np.zeros(len(view), np.int64)
        own, tags = tag_of(ask), devices.tags
        by_tags = [_by_tags(own, tags[row]) for row in view.row_numbers().tolist()]
        base_n = _BY_USE * (GPU_MOST - view.take_rows(devices.idle_n)) // GPU_MOST
        return np.array(by_tags, np.int64) + np.maximum(base_n, MIN_NODE_SCORE)


def _by_tags(own: str, tags: frozenset[str]) -> int:
    if not tags:
        return _EMPTY
    if own not in tags:
        return 0
    return _SAME_ONLY if len(tags) == 1 else _SAME_AMONG_OTHERS
