"""GpuPacking: shared devices first, then free devices of used nodes, then unused nodes.

Rules: ``pkg/simulator/plugin/gpu_packing_score.go`` of the simulator of "Beware of Fragmentation";
Weng et al., "MLaaS in the wild", NSDI 2022.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.devices import ABSENT
from moorage.plugins.gpu_share.policy import RowPolicy
from moorage.plugins.gpu_share.typical import IntArray
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_FREE_DEVICES: Final = 50  # greatest score where a wholly free device of a used node is taken
_UNUSED_NODE: Final = 33  # greatest score of a node without GPU pods
_STEPS: Final = 10


class GpuPacking(RowPolicy):
    """PreScore and Score plugin; takes no arguments."""

    name = "GpuPacking"

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score by the devices that the pod would take: the fullest with room for it."""
        del state
        ask, devices = self.ask_of(pod), self.devices
        score_n = np.zeros(len(view), np.int64)
        if ask.gpus == 0 or devices.free_nd.shape[1] == 0:
            return score_n
        whole_n, count_n = view.take_rows(devices.whole_n), view.take_rows(devices.count_n)
        unused_n = whole_n == count_n
        free_nd = np.sort(view.take_rows(devices.free_nd), axis=1)
        fits_nd = (free_nd >= ask.milli) & (free_nd != ABSENT)
        taken_nd = fits_nd & (fits_nd.cumsum(axis=1) <= ask.gpus)
        fresh_n = (taken_nd & (free_nd == WHOLE_GPU_MILLI)).sum(axis=1)
        score_n[:] = np.where(
            fresh_n > 0,
            np.maximum(_FREE_DEVICES - fresh_n, _UNUSED_NODE),
            np.maximum(MAX_NODE_SCORE - _hundredths(free_nd, taken_nd) // _STEPS, _FREE_DEVICES),
        )
        score_n[unused_n] = np.maximum(_UNUSED_NODE - whole_n, whole_n)[unused_n]
        score_n[fits_nd.sum(axis=1) < ask.gpus] = 0
        return np.minimum(score_n, MAX_NODE_SCORE)


def _hundredths(
    free_nd: IntArray, taken_nd: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
) -> IntArray:
    """Return int64, (n,): percent of the taken devices that are free, each rounded down."""
    percent_nd = np.where(taken_nd, free_nd * MAX_NODE_SCORE // WHOLE_GPU_MILLI, 0)
    summed: IntArray = percent_nd.sum(axis=1)
    return summed
