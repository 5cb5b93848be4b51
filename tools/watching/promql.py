"""Queries of Prometheus whose names come from the catalogue of metrics."""

from __future__ import annotations

from typing import Final

from moorage.observe.catalogue import METRICS, Metric

JOB: Final = 'job=~"$job"'
"""How a panel chooses its scheduler: by a variable of the dashboard."""

_BY_NAME: Final = {metric.name: metric for metric in METRICS}
_TARGET: Final = ("job", "instance", "pod")
"""Labels that Prometheus adds."""


def series(name: str, *more: str, of: str = "", **labels: str) -> str:
    """Return a selector of a metric.

    Parameters
    ----------
    name
        The metric.
    more
        Matchers about labels of the target, as text.
    of
        ``bucket``, ``sum`` or ``count`` of a histogram.
    labels
        Patterns of the metric's labels.

    Raises
    ------
    LookupError
        There is no such metric or label, or a metric is not told.
    """
    metric = _metric(name)
    if bool(of) != (metric.kind == "histogram"):
        raise LookupError(f"{name} is a {metric.kind}")
    unknown = sorted(set(labels) - set(metric.labels))
    if unknown:
        raise LookupError(f"{name} has no label {', '.join(unknown)}")
    matchers = [*(f'{label}=~"{pattern}"' for label, pattern in sorted(labels.items())), *more]
    suffix = f"_{of}" if of else ""
    return f"{name}{suffix}{{{', '.join(matchers)}}}" if matchers else f"{name}{suffix}"


def rate(name: str, *more: str, window: str = "5m", of: str = "", **labels: str) -> str:
    """Return the rate of a counter, or of a part of a histogram, a second."""
    if _metric(name).kind == "gauge":
        raise LookupError(f"{name} is a gauge")
    return f"rate({series(name, *more, of=of, **labels)}[{window}])"


def total(query: str, *by: str) -> str:
    """Return a sum by labels."""
    return f"sum by ({', '.join(by)}) ({query})" if by else f"sum({query})"


def quantile(share: float, name: str, *more: str, by: tuple[str, ...] = (), **labels: str) -> str:
    """Return a quantile of a histogram by labels."""
    for label in by:
        if label not in (*_metric(name).labels, *_TARGET):
            raise LookupError(f"{name} has no label {label}")
    buckets = total(rate(name, *more, of="bucket", **labels), "le", *by)
    return f"histogram_quantile({share:g}, {buckets})"


def _metric(name: str) -> Metric:
    metric = _BY_NAME.get(name)
    if metric is None:
        raise LookupError(f"the catalogue has no metric {name}")
    if metric.unused:
        raise LookupError(f"{name} has no samples: {metric.unused}")
    return metric
