"""Results in the form of scheduler_perf: ``dataItems``, as its dashboard reads them.

Source: kubernetes v1.36 test/integration/scheduler_perf/util.go (``DataItem``, ``DataItems``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage_lab.bench.scheduler_perf.cases import ThresholdMetric
from moorage_lab.bench.timing import percentile

PERCENTILES: Final = (50, 90, 95, 99)
_WITHOUT: Final = "not applicable"
"""Value of a label that another item has, but not this one."""


class DataItem(msgspec.Struct, frozen=True):
    """One measured metric.

    Parameters
    ----------
    data
        Numbers by bucket: ``Average``, ``Perc50``, ``Perc90``, ``Perc95``, ``Perc99``.
    unit
        Unit of the numbers.
    labels
        ``Name`` (test case, workload and operation), ``Metric``, and the labels of the metric.
    """

    data: dict[str, float]
    unit: str
    labels: dict[str, str]

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.labels["Metric"]


def document(items: Sequence[DataItem]) -> dict[str, Any]:
    """Return the document of a results file.

    Every item has every label, because the dashboard shows only items that have the chosen value
    of each label.
    """
    names = dict.fromkeys((name for item in items for name in item.labels), _WITHOUT)
    whole = [msgspec.structs.replace(item, labels={**names, **item.labels}) for item in items]
    return {"version": "v1", "dataItems": msgspec.to_builtins(whole)}


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """Return average and percentiles of samples, each percentile a sample of its own.

    Parameters
    ----------
    samples
        At least one.
    """
    data = {"Average": sum(samples) / len(samples)}
    return data | {f"Perc{each}": percentile(samples, each) for each in PERCENTILES}


def apply_threshold(items: Sequence[DataItem], bound: float, metric: ThresholdMetric) -> list[str]:
    """Add a bound to the items it is for; return a sentence for each item that misses it.

    Parameters
    ----------
    bound
        The threshold, 0 for none.
    """
    if not bound:
        return []
    missed, bucket = [], metric.data_bucket
    for item in items:
        if not metric.applies_to(item.metric, item.labels):
            continue
        item.data[f"{bucket}Threshold"] = bound
        value = item.data.get(bucket)
        if value is None:
            missed.append(f"{item.labels['Name']}: {metric.name} has no {bucket}")
        elif not (value < bound if metric.expect_lower else value > bound):
            wanted = "lower" if metric.expect_lower else "higher"
            missed.append(
                f"{item.labels['Name']}: expected {metric.name} {bucket} to be {wanted}: "
                f"got {value:.1f}, want {bound:g}"
            )
    return missed
