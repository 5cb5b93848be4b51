"""The fragmentation of a node, summed in the order of the published program.

The score of FGD is truncated to a whole number, and 50 stands for no change at all. A change that
comes out as -1e-12, because amounts were added in another order, is a 49. So the order of the sums
is a part of the policy: one sum for each category of idle GPU, over the typical pods in their
order, and then the sum of the categories.

Rules: ``NodeGpuShareFragAmount`` and ``GetNodePodFrag`` in ``pkg/utils/frag.go`` of
kubernetes-scheduler-simulator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.config.plugin_args_gpu import TypicalPod
from moorage.plugins.gpu_share.typical import (
    FloatArray,
    IntArray,
    NodeStates,
    Sizes,
    admitted,
    shares,
)

# Categories in the order in which their sums are added. Idle GPU that a kind of pods can use is in
# none of them; the devices without room for a share of it are in NO_GPU.
_NEITHER, _NO_GPU, _NO_CPU, _PLAIN_FITS, _PLAIN_FULL, _NO_MODEL = range(6)
_CATEGORIES = 6


class Fragmentation:
    """The idle GPU that typical pods cannot use.

    Parameters
    ----------
    pods
        Kinds of pods, the most frequent first.
    """

    def __init__(self, pods: Sequence[TypicalPod]) -> None:
        self._kinds = [frozenset(pod.models) for pod in pods]
        self._share_j1 = shares(pods)[:, None]
        self._cpu_j1 = np.array([[pod.cpu_milli] for pod in pods], np.int64)
        self._cpu_u = np.unique(self._cpu_j1)
        self._gpus_j1 = np.array([[pod.gpus] for pod in pods], np.int64)
        self._sizes = Sizes(np.array([pod.gpu_milli if pod.gpus else 0 for pod in pods], np.int64))
        self._plain_j1 = self._gpus_j1 == 0
        self._with_cpu_j1 = np.where(self._plain_j1, _PLAIN_FITS, _NO_GPU)
        self._names_models = any(self._kinds)
        self._refused_jm = np.zeros((0, 0), np.bool_)

    def fragmentation_of(self, states: NodeStates, models: Sequence[str]) -> FloatArray:
        """Return float64, (s,), milli-GPU, of nodes in given states.

        Parameters
        ----------
        states
            The nodes.
        models
            Names of the models, by index.
        """
        usable_us, count_us = self._sizes.room(states.free_sd)
        size_j = self._sizes.of_kind
        idle_s = np.add.reduce(np.maximum(states.free_sd, 0), axis=1)
        has_gpu_js = count_us[size_j] >= self._gpus_j1
        category_js = np.where(
            states.cpu_s >= self._cpu_j1,
            self._with_cpu_j1,
            np.where(self._plain_j1, _PLAIN_FULL, np.where(has_gpu_js, _NO_CPU, _NEITHER)),
        )
        if self._names_models:
            category_js[self._refused(models)[:, states.model_s]] = _NO_MODEL
        usable_js = usable_us[size_j] * (has_gpu_js & (category_js == _NO_GPU))
        amount_js = self._share_j1 * (idle_s - usable_js)
        # bincount adds in the order of its input: one kind after the other.
        count = len(idle_s)
        bin_js = category_js * count + np.arange(count)
        sums = np.bincount(bin_js.ravel(), amount_js.ravel(), _CATEGORIES * count)
        total_s: FloatArray = np.cumsum(sums.reshape(_CATEGORIES, count), axis=0)[-1]
        return total_s

    def cpu_step(self, cpu_s: IntArray) -> IntArray:
        """Return int64, (s,): the number of CPU requests of the kinds that have room.

        Parameters
        ----------
        cpu_s
            int64, (s,), millicores.
        """
        return np.searchsorted(self._cpu_u, cpu_s, side="right")

    def _refused(self, models: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Return bool, (kinds, models): whether a kind of pods does not admit a model."""
        if self._refused_jm.shape[1] != len(models):
            self._refused_jm = admitted(self._kinds, models).T == 0
        return self._refused_jm
