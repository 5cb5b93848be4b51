"""What the preemption plugins count for metrics: evaluations, victims, broken budgets, groups.

kube-scheduler has these metrics since 1.37, with the gate GenericWorkload. Victims of single pods
and the durations of evictions are counted in ``service``.

Source: kubernetes v1.37 ``pkg/scheduler/metrics/metrics.go`` and
``pkg/scheduler/framework/preemption``.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final, Literal

from moorage.base.clock import NS_PER_SECOND
from moorage.config.gate_table import V1_36, WORKLOAD_PREEMPTION
from moorage.framework.handle import Handle
from moorage.framework.plugin_metrics import Labels, PluginMetrics
from moorage.framework.status import Status

Entity = Literal["pod", "podgroup"]
"""What preempts, a label of most of the metrics."""

# Number of observations kept between two reads of the metrics; a guess.
_MOST: Final = 10_000


class PreemptionCounts:
    """Counters of one plugin of one profile; without the gate nothing is counted.

    Parameters
    ----------
    handle
        The handle of the plugin.

    Attributes
    ----------
    enabled
        Whether kube-scheduler of the emulated version has the metrics.
    """

    def __init__(self, handle: Handle) -> None:
        self.enabled = handle.gates.version != V1_36 and handle.gates(WORKLOAD_PREEMPTION)
        self._clock = handle.clock
        self._group_attempts: Counter[Labels] = Counter()
        self._violations: Counter[Labels] = Counter()
        self._group_victims: deque[tuple[Labels, float]] = deque(maxlen=_MOST)
        self._disruptions: deque[tuple[Labels, float]] = deque(maxlen=_MOST)
        self._evaluations: deque[tuple[Labels, float]] = deque(maxlen=_MOST)

    def metrics(self) -> PluginMetrics:
        """Return the counters by the names of their metrics."""
        return PluginMetrics(
            counters={
                "scheduler_workload_preemption_attempts_total": self._group_attempts,
                "scheduler_preemption_pdb_violations_total": self._violations,
            },
            observations={
                "scheduler_workload_preemption_victims": self._group_victims,
                "scheduler_preemption_workload_disruptions": self._disruptions,
                "scheduler_preemption_evaluation_duration_seconds": self._evaluations,
            },
        )

    def meter_ns(self) -> int:
        """Return the time to hand in as the beginning of an evaluation, monotonic nanoseconds."""
        return self._clock.monotonic_ns() if self.enabled else 0

    def evaluated(self, preemptor: Entity, status: Status, *, since_ns: int) -> None:
        """Note that the search for victims is over."""
        if self.enabled:
            seconds = (self.meter_ns() - since_ns) / NS_PER_SECOND
            self._evaluations.append(((preemptor, status.code.text), seconds))

    def chosen(self, preemptor: Entity, *, victims: int, violations: int, groups: int) -> None:
        """Note the victims that were chosen.

        Parameters
        ----------
        preemptor
            What preempts.
        victims
            Number of pods to evict.
        violations
            How many of them a PodDisruptionBudget protects.
        groups
            How many groups are evicted as a whole.
        """
        if not (self.enabled and victims):
            return
        self._violations[(preemptor,)] += violations
        if groups:
            self._disruptions.append(((preemptor,), groups))
        if preemptor == "podgroup":
            self._group_victims.append(((), victims))

    def group_attempted(self, status: Status) -> None:
        """Note the outcome of an attempt to preempt for a group."""
        if self.enabled:
            self._group_attempts[(status.code.text,)] += 1
