"""GpuLookahead: the least loss of GPU that the pods to come will be able to use.

Two amounts are added for each node, both in milli-GPU:

1. The loss of placeable GPU, as in `gpu_fragmentation`, but exact, and looking further ahead. The
   fragmentation of FGD asks whether the *next* pod fits: a node with eight idle GPUs and CPU for
   two counts as eight usable GPUs. Here a kind of pods can use no more GPU than the node's CPU is
   expected to serve: one pod of the kind, and the mean of the typical pods for the CPU left.
2. The requested GPU, multiplied by the pressure on the node's model: the demand of the typical pods
   for each idle GPU of it. Pods that admit every model so leave scarce models to pods that need
   them. The pressure is the same on all nodes where no typical pod names a model.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage.base.errors import ConfigError
from moorage.config.plugin_args_gpu import GpuLookaheadArgs
from moorage.config.plugin_args_gpu import validate_gpu_lookahead_args as validate
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE, ScoreArray
from moorage.plugins.gpu_share.gradient import GradientPolicy
from moorage.plugins.gpu_share.known_states import KnownStates
from moorage.plugins.gpu_share.typical import FloatArray, TypicalPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_PER_MILLI: Final = 10_000  # raw scores count ten-thousandths of a milli-GPU: finer is noise
_MILLI_A_POINT: Final = 10  # behind the best node, a point of the score is a hundredth of a GPU
_NO_ROOM: Final = -float(1 << 50)


class GpuLookahead(GradientPolicy):
    """PreScore and Score plugin.

    Parameters
    ----------
    args
        The pods to come, and how far to look ahead.
    handle
        Snapshot and profile.

    Raises
    ------
    ConfigError
        The arguments are invalid, or another policy of the profile chooses devices.
    """

    name = "GpuLookahead"

    def __init__(self, args: GpuLookaheadArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._typical = TypicalPods(args.typical_pods, cpu_slack=args.cpu_slack)
        self._weight = args.pressure_weight
        known = KnownStates(self._typical.unusable)
        super().__init__(args, handle, unusable=known.amounts_of, grade=np.negative)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Return the negative loss, in ten-thousandths of a milli-GPU."""
        del state
        ask = self.ask_of(pod)
        gain_n: FloatArray = view.take_rows(self.grades(pod))
        if ask.gpus and self._weight and self._typical.names_models:
            model_n = view.take_rows(self._sharing.devices_before.model_n)
            gain_n = gain_n - self._pressure()[model_n] * ask.total_milli
        # Infinity is out of range of whole numbers.
        raw_n: ScoreArray = np.rint(np.maximum(gain_n * _PER_MILLI, _NO_ROOM)).astype(np.int64)
        return raw_n

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Return 100 for the best node alone; a point less for each hundredth of a GPU after 99."""
        del state, pod
        if not len(raw_n):
            return raw_n
        behind_n: ScoreArray = raw_n.max() - raw_n
        score_n = MAX_NODE_SCORE - 1 - behind_n // (_MILLI_A_POINT * _PER_MILLI)
        score_n[behind_n == 0] = MAX_NODE_SCORE
        return np.maximum(score_n, np.int64(MIN_NODE_SCORE))

    def _pressure(self) -> FloatArray:
        """Return float64, (models,): weighted demand for each idle GPU of a model."""
        devices = self._sharing.devices_before
        idle_m = np.bincount(devices.model_n, devices.idle_n, len(devices.models)).astype(np.int64)
        return self._weight * self._typical.pressure(idle_m, devices.models)
