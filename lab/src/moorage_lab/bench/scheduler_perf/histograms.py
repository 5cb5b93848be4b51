"""The scheduler's histograms as data items: averages and quantiles in milliseconds.

Everything since the scheduler's start is in them, as in kube-scheduler's results: the suite resets
metrics between workloads only.

Source: kubernetes v1.36 test/integration/scheduler_perf/util.go (``metricsCollector``),
component-base/metrics/testutil (``HistogramVec.Quantile``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from moorage_lab.bench.scheduler_perf.cases import (
    THROUGHPUT,
    LabelValues,
    MetricsCollectorConfig,
    ThresholdMetric,
)
from moorage_lab.bench.scheduler_perf.data_items import PERCENTILES, DataItem

DEFAULT: Final = MetricsCollectorConfig(
    {
        "scheduler_framework_extension_point_duration_seconds": [LabelValues("extension_point")],
        "scheduler_scheduling_attempt_duration_seconds": [LabelValues("result")],
        "scheduler_pod_scheduling_sli_duration_seconds": None,
        "scheduler_plugin_execution_duration_seconds": [
            LabelValues("plugin"),
            LabelValues("extension_point"),
        ],
        "scheduler_queueing_hint_execution_duration_seconds": [
            LabelValues("plugin"),
            LabelValues("event"),
        ],
        "scheduler_event_handling_duration_seconds": [LabelValues("event")],
        "scheduler_podgroup_scheduling_attempt_duration_seconds": [LabelValues("result")],
    }
)
"""The histograms of a test case that names none."""

_MS: Final = 1000.0


def collects(config: MetricsCollectorConfig | None, selected: ThresholdMetric) -> bool:
    """Whether a selected number can be among the data items of a configuration."""
    if selected.name == THROUGHPUT:
        return True
    wanted = (config or DEFAULT).metrics
    if selected.name not in wanted:
        return False
    values = {each.label: each.values for each in wanted[selected.name] or ()}
    return all(
        label in values and ((given := values[label]) is None or value in given)
        for label, value in selected.labels.items()
    )


class _Merged:
    """Histograms with the same values of some labels, added up."""

    def __init__(self) -> None:
        self._total = 0.0
        self.buckets: dict[float, float] = {}
        """Cumulated counts by upper bound, seconds."""

    def add(self, seconds: float) -> None:
        """Add to the sum of everything observed, seconds."""
        self._total += seconds

    @property
    def average(self) -> float:
        """The mean of everything observed, seconds."""
        return self._total / self.count

    @property
    def count(self) -> float:
        """Number of observations."""
        return self.buckets.get(math.inf, 0.0)

    def quantile(self, q: float) -> float:
        """Return a quantile as Prometheus estimates it, linear within a bucket, seconds."""
        ordered = sorted(self.buckets.items())
        rank = q * self.count
        lower, below = 0.0, 0.0
        for bound, cumulated in ordered:
            if cumulated >= rank:
                if math.isinf(bound):
                    return lower
                return lower + (bound - lower) * (rank - below) / (cumulated - below or 1.0)
            lower, below = bound, cumulated
        return lower


def histogram_items(text: str, config: MetricsCollectorConfig | None, name: str) -> list[DataItem]:
    """Return the data items of the histograms on a page of metrics.

    Parameters
    ----------
    text
        The page, in Prometheus' text format.
    config
        The histograms and labels; None for the default.
    name
        The label ``Name`` of the items.
    """
    wanted = (config or DEFAULT).metrics
    items = []
    for metric, merged in _merged(text, wanted).items():
        for values, histogram in sorted(merged.items()):
            if not histogram.count:
                continue
            data = {"Average": histogram.average * _MS}
            for each in PERCENTILES:
                data[f"Perc{each}"] = histogram.quantile(each / 100) * _MS
            items.append(DataItem(data, "ms", {"Name": name, "Metric": metric, **dict(values)}))
    return items


_Values = tuple[tuple[str, str], ...]


def _merged(
    text: str, wanted: Mapping[str, Sequence[LabelValues] | None]
) -> dict[str, dict[_Values, _Merged]]:
    merged_by_name: dict[str, dict[_Values, _Merged]] = {name: {} for name in sorted(wanted)}
    for family in text_string_to_metric_families(text):
        if family.name not in wanted:
            continue
        labels = wanted[family.name] or ()
        for sample in family.samples:
            for values in _collected(sample.labels, labels):
                merged = merged_by_name[family.name].setdefault(values, _Merged())
                if sample.name.endswith("_bucket"):
                    bound = float(sample.labels["le"])
                    merged.buckets[bound] = merged.buckets.get(bound, 0.0) + sample.value
                elif sample.name.endswith("_sum"):
                    merged.add(sample.value)
    return merged_by_name


def _collected(
    labels_of_metric: Mapping[str, str], labels: Sequence[LabelValues]
) -> Iterator[_Values]:
    """Yield the values of the collected labels, if the sample is collected at all."""
    for each in labels:
        value = labels_of_metric.get(each.label)
        if value is None or (each.values is not None and value not in each.values):
            return
    yield tuple((each.label, labels_of_metric[each.label]) for each in labels)
