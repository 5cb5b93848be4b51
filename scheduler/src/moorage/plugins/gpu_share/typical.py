"""The GPUs of a node that the pods to come can use, and the GPUs that they cannot.

Idle GPU is fragmented for a kind of pods that cannot be placed on the node, and so is the part of
idle GPU on devices without room for one pod of the kind. The fragmentation of a node is the
expected fragmented amount for a pod drawn from the typical pods.

Rules: "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), section 3, as in
``pkg/utils/frag.go`` of its simulator.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.config.plugin_args_gpu import TypicalPod

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SUMS_TO_ONE: Final = 1e-9


class NodeStates(NamedTuple):
    """The free resources of nodes, real or imagined; s counts the states.

    Parameters
    ----------
    cpu_s
        int64, (s,), millicores.
    free_sd
        int64, (s, devices), milli-GPU; negative for a device that the node does not have.
    model_s
        int64, (s,): index of the model.
    """

    cpu_s: IntArray
    free_sd: IntArray
    model_s: IntArray


def shares(pods: Sequence[TypicalPod]) -> FloatArray:
    """Return float64, (kinds,): how frequent each kind of pods is, summing to 1.

    Shares that sum to 1 already are not divided, so that they stay what they are to the last bit.
    """
    given: FloatArray = np.array([pod.share for pod in pods], np.float64)
    total = sum(pod.share for pod in pods)
    return given if abs(total - 1) < _SUMS_TO_ONE else given / total


def admitted(kinds: Sequence[Collection[str]], models: Sequence[str]) -> FloatArray:
    """Return float64, (models, kinds): 1 where a kind of pods admits a model.

    Parameters
    ----------
    kinds
        The models that each kind names; none for every model.
    models
        Names of the models, by index.
    """
    return np.array([[float(not each or model in each) for each in kinds] for model in models])


class Sizes:
    """The milli-GPU of one device that kinds of pods ask for, each size once.

    Parameters
    ----------
    milli_j
        int64, (kinds,), milli-GPU; 0 for a kind that asks for no GPU.

    Attributes
    ----------
    of_kind
        int64, (kinds,): index of the size of a kind.
    """

    def __init__(self, milli_j: IntArray) -> None:
        milli_u, self.of_kind = np.unique(milli_j, return_inverse=True)
        self._milli_u1 = milli_u[:, None]

    def room(self, free_sd: IntArray) -> tuple[IntArray, IntArray]:
        """Return idle milli-GPU on the devices with room for a size, and their number.

        Parameters
        ----------
        free_sd
            As of `NodeStates`.

        Returns
        -------
        tuple
            int64, (sizes, s), twice.
        """
        # Sums over the first axis take whole rows at a time; over the last, a few devices.
        free_d1s = np.ascontiguousarray(free_sd.T)[:, None, :]
        fits_dus = free_d1s >= self._milli_u1
        room_us: IntArray = np.add.reduce(fits_dus * np.maximum(free_d1s, 0), axis=0)
        count_us: IntArray = np.add.reduce(fits_dus.view(np.int8), axis=0, dtype=np.int64)
        return room_us, count_us


class TypicalPods:
    """The pods that are expected.

    Parameters
    ----------
    pods
        Kinds of pods; at least one asks for GPUs.
    cpu_slack
        Limits what a kind can use of a node to the GPUs that the node's CPU is expected to serve,
        in units of the mean of the typical pods. None for no limit.
    """

    def __init__(self, pods: Sequence[TypicalPod], *, cpu_slack: float | None = None) -> None:
        with_gpus = [pod for pod in pods if pod.gpus]
        self._models = [frozenset(pod.models) for pod in with_gpus]
        self._share_j = shares(pods)[[pod.gpus > 0 for pod in pods]]
        self._share_j1 = self._share_j[:, None]
        self._cpu_j = np.array([pod.cpu_milli for pod in with_gpus], np.int64)
        self._cpu_j1 = self._cpu_j[:, None]
        self._gpus_j1 = np.array([[pod.gpus] for pod in with_gpus], np.int64)
        milli_j = np.array([pod.gpu_milli for pod in with_gpus], np.int64)
        self._sizes = Sizes(milli_j)
        self._total_j = self._gpus_j1[:, 0] * milli_j
        self._total_j1 = self._total_j[:, None]
        self._milli_per_cpu = 0.0
        self._limited = cpu_slack is not None
        cpu_mean = float((self._share_j * self._cpu_j).sum())
        if cpu_slack is not None and cpu_mean > 0:
            self._milli_per_cpu = (
                cpu_slack * float((self._share_j * self._total_j).sum()) / cpu_mean
            )
        else:
            self._limited = False
        self.names_models = any(self._models)
        """Whether any kind of pods admits some models only."""
        self._admitted_mj = np.zeros((0, len(with_gpus)))

    def placeable(self, states: NodeStates, models: Sequence[str]) -> FloatArray:
        """Return float64, (s,), milli-GPU: the idle GPU that a typical pod can use, on average.

        Parameters
        ----------
        states
            The nodes.
        models
            Names of the models, by index.
        """
        room_us, count_us = self._sizes.room(states.free_sd)
        size_j = self._sizes.of_kind
        spare_js = states.cpu_s - self._cpu_j1
        fits_js = (count_us[size_j] >= self._gpus_j1) & (spare_js >= 0)
        usable_js = room_us[size_j] * self._share_j1
        if self._limited:
            served_js = (self._total_j1 + self._milli_per_cpu * spare_js) * self._share_j1
            np.minimum(usable_js, served_js, out=usable_js)
        usable_js *= fits_js
        if self.names_models:
            usable_js *= self._admitted(models).T[:, states.model_s]
        # One kind after the other: the sum does not depend on the number of states.
        placeable: FloatArray = np.cumsum(usable_js, axis=0)[-1]
        return placeable

    def unusable(self, states: NodeStates, models: Sequence[str]) -> FloatArray:
        """Return float64, (s,), milli-GPU: the idle GPU that a typical pod cannot use, on average.

        Parameters
        ----------
        states, models
            As of `placeable`.
        """
        idle_s = np.add.reduce(np.maximum(states.free_sd, 0), axis=1)
        unusable: FloatArray = idle_s - self.placeable(states, models)
        return unusable

    def pressure(self, idle_m: IntArray, models: Sequence[str]) -> FloatArray:
        """Return float64, (models,): the demand for a model for each idle GPU of it.

        The typical pods are scaled so that they ask for all idle GPUs together. Each kind asks the
        models that it admits in proportion to their idle GPUs. 1 is the mean over all idle GPUs.

        Parameters
        ----------
        idle_m
            int64, (models,), milli-GPU.
        models
            Names of the models, by index.
        """
        admitted_mj = self._admitted(models)
        demand_j = self._share_j * self._total_j
        supply_j = (admitted_mj * idle_m[:, None]).sum(axis=0)
        scale = float(idle_m.sum()) / float(demand_j.sum())
        asked_j = np.divide(demand_j, supply_j, out=np.zeros_like(demand_j), where=supply_j > 0)
        pressure_m: FloatArray = (admitted_mj * asked_j).sum(axis=1) * scale
        return pressure_m

    def _admitted(self, models: Sequence[str]) -> FloatArray:
        """Return float64, (models, kinds): 1 where a kind of pods admits a model."""
        if len(models) != len(self._admitted_mj):
            self._admitted_mj = admitted(self._models, models)
        return self._admitted_mj
