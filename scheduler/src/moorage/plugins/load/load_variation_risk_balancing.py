"""LoadVariationRiskBalancing: nodes with a low and steady load of cpu and memory first.

The risk of a node is the mean of its load with the pod and of the standard deviation of the load;
the score is what is left to 100. Of cpu and memory the worse one counts. A node without metrics has
0. The plugin is not part of the default profile.

Rules mirrored: scheduler-plugins v0.35 ``pkg/trimaran/loadvariationriskbalancing`` and
``resourcestats.go``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import CPU, MEMORY
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.base.errors import ConfigError
from moorage.config.scheduler_plugins.trimaran import (
    LoadVariationRiskBalancingArgs,
    validate_trimaran_args,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.loads.node_loads import CPU_LOAD, MEMORY_LOAD
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.plugins.load.load_columns import FloatArray, LoadColumns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView


class LoadVariationRiskBalancing:
    """Score plugin; registers no events.

    Raises
    ------
    ConfigError
        An argument has a fault.
    """

    name = "LoadVariationRiskBalancing"

    def __init__(self, args: LoadVariationRiskBalancingArgs, handle: Handle) -> None:
        faults = validate_trimaran_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._margin = args.safe_variance_margin
        self._root = args.safe_variance_sensitivity
        self._snapshot = handle.snapshot
        report = handle.loads.report_of(args.source)
        self._cpu = LoadColumns(handle.snapshot, report, CPU_LOAD)
        self._memory = LoadColumns(handle.snapshot, report, MEMORY_LOAD)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score what the risk of each node leaves to 100."""
        del state
        cpu_n, has_cpu_n = self._safety(self._cpu, CPU, pod.pod, view)
        memory_n, has_memory_n = self._safety(self._memory, MEMORY, pod.pod, view)
        both_n = has_cpu_n & has_memory_n
        score_n = np.where(both_n, np.minimum(cpu_n, memory_n), np.maximum(cpu_n, memory_n))
        return np.floor(score_n + 0.5).astype(np.int64)

    def _safety(
        self, columns: LoadColumns, resource: str, pod: Pod, view: NodeView
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the score by one resource, and the rows that have a metric of it."""
        columns.follow()
        known_n = view.take_rows(columns.known_n)
        capacity_n = view.take_rows(self._snapshot.allocatable(resource)).astype(np.float64)
        score_n = safety(
            view.take_rows(columns.mean_n) * capacity_n / 100,
            view.take_rows(columns.deviation_n) * capacity_n / 100,
            capacity_n,
            request=requested(pod, resource),
            margin=self._margin,
            root=self._root,
        )
        return np.where(known_n, score_n, 0.0), known_n


def safety(
    mean_n: FloatArray,
    deviation_n: FloatArray,
    capacity_n: FloatArray,
    *,
    request: float,
    margin: float,
    root: float,
) -> FloatArray:
    """Return 100 less the risk, of loads in the unit of the capacity; 0 without capacity.

    Parameters
    ----------
    mean_n, deviation_n, capacity_n
        float64, (rows,): average and standard deviation of the load, and the capacity.
    request
        What the pod adds.
    margin, root
        The deviation's multiplier, and its root; a root of less than 0 means none.
    """
    whole_n = np.where(capacity_n > 0, capacity_n, 1.0)
    load_n = (np.clip(mean_n, 0, capacity_n) + max(request, 0)) / whole_n
    spread_n = np.clip(np.clip(deviation_n, 0, capacity_n) / whole_n, 0, 1)
    if root >= 0:
        spread_n = spread_n ** (1 / root if root else np.inf)
    risk_n = (np.clip(load_n, 0, 1) + np.clip(spread_n * margin, 0, 1)) / 2
    return np.where(capacity_n > 0, (1 - risk_n) * MAX_NODE_SCORE, 0.0)


def requested(pod: Pod, resource: str) -> int:
    """Return the sum of the containers, or an init container if that is more, and the overhead."""
    containers, init = (
        [
            to_units(resource, parse_quantity(each.resources.requests.get(resource, 0)))
            for each in of
        ]
        for of in (pod.spec.containers, pod.spec.init_containers)
    )
    overhead = to_units(resource, parse_quantity(pod.spec.overhead.get(resource, 0)))
    return max(sum(containers), *init, 0) + overhead
