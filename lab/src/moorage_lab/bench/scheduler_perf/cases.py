"""Test cases: a workload template, and the workloads that give it numbers.

Source: kubernetes v1.36 test/integration/scheduler_perf/scheduler_perf.go (``testCase``,
``Workload``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage_lab.bench.scheduler_perf.operations import Operation

THROUGHPUT: Final = "SchedulingThroughput"
"""Name of the metric that counts pods which got a node, in a second."""


class LabelValues(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The values of a label that are collected; none given means every value."""

    label: str
    values: list[str] | None = None


class MetricsCollectorConfig(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True
):
    """The histograms of the scheduler that are collected, each by some labels."""

    metrics: dict[str, list[LabelValues] | None] = {}


class ThresholdMetric(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The number that a threshold is compared with.

    Parameters
    ----------
    name, labels
        The data item: its label ``Metric``, and labels that it must have.
    data_bucket
        ``Average``, ``Perc50``, ...
    expect_lower
        Whether the threshold is an upper bound.
    """

    name: str = ""
    labels: dict[str, str] = {}
    data_bucket: str = ""
    expect_lower: bool = False

    def applies_to(self, metric: str, labels: Mapping[str, str]) -> bool:
        """Whether a data item of a metric with some labels is meant."""
        return metric == self.name and all(labels.get(k) == v for k, v in self.labels.items())


AVERAGE_THROUGHPUT: Final = ThresholdMetric(name=THROUGHPUT, data_bucket="Average")
"""The number of a case that selects none."""


class Workload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The numbers of one run of a test case.

    Parameters
    ----------
    params
        Parameters by name: numbers, texts or booleans.
    labels
        Labels in addition to those of the test case.
    threshold
        Bound of the measured number, or bounds by topic; 0 for none.
    threshold_metric_selector
        The measured number; None for that of the test case.
    feature_gates
        Gates on top of those of the test case.
    """

    name: str
    params: dict[str, Any] = {}
    labels: list[str] = []
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: ThresholdMetric | None = None
    feature_gates: dict[str, bool] = {}

    def bound(self, topic: str) -> float:
        """Return the threshold for a topic, 0 for none."""
        if isinstance(self.threshold, dict):
            return self.threshold.get(topic, 0.0)
        return self.threshold


class WrittenCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A test case as the file has it; its operations are not read yet.

    Parameters
    ----------
    scheduler_api_client_qps, scheduler_api_client_burst
        Limits of the scheduler's calls in a second, and at once; newer than v1.36.
    """

    name: str
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: MetricsCollectorConfig | None = None
    workload_template: list[dict[str, Any]] = []
    workloads: list[Workload] = []
    scheduler_config_path: str = ""
    default_pod_template_path: str = ""
    labels: list[str] = []
    default_threshold_metric_selector: ThresholdMetric | None = None
    scheduler_api_client_qps: float = msgspec.field(default=0.0, name="schedulerApiClientQPS")
    scheduler_api_client_burst: int = 0


class TestCase(msgspec.Struct, frozen=True, kw_only=True):
    """A test case that was read.

    Parameters
    ----------
    written
        Everything but the operations.
    operations
        The workload template.
    unknown
        Opcodes that moorage does not know, in order.
    folder
        The folder that paths of the case start from.
    """

    __test__ = False  # no test of ours, for pytest

    written: WrittenCase
    operations: tuple[Operation, ...]
    unknown: tuple[str, ...]
    folder: Path

    @property
    def name(self) -> str:
        """Name of the test case."""
        return self.written.name

    def gates(self, workload: Workload) -> Mapping[str, bool]:
        """Return the feature gates of a workload."""
        return {**self.written.feature_gates, **workload.feature_gates}

    def threshold_metric(self, workload: Workload) -> ThresholdMetric:
        """Return the number that the threshold of a workload is compared with."""
        return (
            workload.threshold_metric_selector
            or self.written.default_threshold_metric_selector
            or AVERAGE_THROUGHPUT
        )
