"""TargetLoadPacking: fills nodes up to a load of their cpu, and spreads pods beyond it.

The score rises with the load that a node would have with the pod, up to the target, and falls
steeply after it. A node without metrics has 0. The plugin is not part of the default profile.

Rules mirrored: scheduler-plugins v0.35 ``pkg/trimaran/targetloadpacking``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage.api.names import CPU
from moorage.api.pod import Container, Pod
from moorage.api.quantity import milli, parse_quantity
from moorage.base.errors import ConfigError
from moorage.config.scheduler_plugins.trimaran import (
    TargetLoadPackingArgs,
    validate_target_load_packing_args,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.loads.node_loads import CPU_LOAD
from moorage.framework.points import ScoreArray
from moorage.plugins.load.load_columns import CpuCapacities, LoadColumns
from moorage.plugins.load.unmeasured_pods import UnmeasuredPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_FULL: Final = 100.0


class TargetLoadPacking:
    """Score plugin; registers no events.

    Raises
    ------
    ConfigError
        An argument has a fault.
    """

    name = "TargetLoadPacking"

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        faults = validate_target_load_packing_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._target = float(args.target_utilization)
        self._multiplier = float(args.default_requests_multiplier)
        self._default_cpu = milli(parse_quantity(args.default_requests.get(CPU, 0)))
        report = handle.loads.report_of(args.source)
        self._columns = LoadColumns(handle.snapshot, report, CPU_LOAD)
        self._capacities = CpuCapacities(handle.snapshot.table)
        self._unmeasured = UnmeasuredPods(
            handle.snapshot.table, handle.clock, lambda pod: self._predicted(pod.pod)
        )

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score the load that each node would have with the pod."""
        del state
        loads = self._columns.follow()
        if loads is None:
            return np.zeros(len(view), np.int64)
        newest_n = view.take_rows(self._columns.newest_n)
        capacity_n = view.take_rows(self._capacities.by_row())
        unmeasured_n = view.take_rows(self._unmeasured.cpu_of_rows(loads.end_seconds))
        used_n = newest_n / _FULL * capacity_n + self._predicted(pod.pod) + unmeasured_n
        has_cpu_n = capacity_n > 0
        percent_n = np.where(has_cpu_n, _FULL * used_n / np.where(has_cpu_n, capacity_n, 1), 0.0)
        target = self._target
        rising_n = (_FULL - target) * percent_n / target + target
        falling_n = target * (_FULL - percent_n) / (_FULL - target)
        score_n = np.where(percent_n > target, falling_n, rising_n)
        score_n = np.where((percent_n > _FULL) | np.isnan(newest_n), 0.0, score_n)
        return np.floor(score_n + 0.5).astype(np.int64)

    def _predicted(self, pod: Pod) -> int:
        """Return the millicores that a pod is taken to use: limits, else more than requests."""
        overhead = milli(parse_quantity(pod.spec.overhead.get(CPU, 0)))
        return overhead + sum(self._predicted_of(each) for each in pod.spec.containers)

    def _predicted_of(self, container: Container) -> int:
        limits, requests = container.resources.limits, container.resources.requests
        if CPU in limits:
            return milli(parse_quantity(limits[CPU]))
        if CPU in requests:
            return int(milli(parse_quantity(requests[CPU])) * self._multiplier + 0.5)
        return self._default_cpu
