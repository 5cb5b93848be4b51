"""GpuFragmentation: fragmentation gradient descent (FGD), the node whose fragmentation grows least.

Rules: "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), as in
``pkg/simulator/plugin/fgd_score.go`` of its simulator. The score is truncated to a whole number
there, and ties are frequent; ranking by the exact growth places pods differently.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage.base.errors import ConfigError
from moorage.config.plugin_args_gpu import GpuFragmentationArgs
from moorage.config.plugin_args_gpu import validate_gpu_fragmentation_args as validate
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.categories import Fragmentation
from moorage.plugins.gpu_share.gradient import GradientPolicy
from moorage.plugins.gpu_share.known_states import KnownStates
from moorage.plugins.gpu_share.typical import FloatArray
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_SLOPE_MILLI: Final = 1000  # growth of the fragmentation at which the score is 26


class GpuFragmentation(GradientPolicy):
    """PreScore and Score plugin.

    Parameters
    ----------
    args
        The pods to come.
    handle
        Snapshot and profile.

    Raises
    ------
    ConfigError
        The arguments are invalid, or another policy of the profile chooses devices.
    """

    name = "GpuFragmentation"

    def __init__(self, args: GpuFragmentationArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        typical = Fragmentation(args.typical_pods)
        known = KnownStates(typical.fragmentation_of, typical.cpu_step)
        super().__init__(args, handle, unusable=known.amounts_of, grade=_scores)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score 50 where the fragmentation stays, more where it shrinks; 0 without room."""
        del state
        return view.take_rows(self.grades(pod))


def _scores(loss: FloatArray) -> ScoreArray:
    with np.errstate(over="ignore"):
        scores = MAX_NODE_SCORE / (1 + np.exp(loss / _SLOPE_MILLI))
    return scores.astype(np.int64)
