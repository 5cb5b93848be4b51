"""Writes all metrics for Prometheus: as text, or as OpenMetrics if the reader asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder

from moorage.observe.catalogue import METRICS, Metric
from moorage.observe.series import Histogram

Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily

Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]
"""Values of the labels, in order, and the number."""

Source: TypeAlias = Callable[[], Iterable[Sample]]
"""Gives the samples of one metric as they are now."""


class Exposition:
    """The metrics of one process, in a registry of its own.

    Parameters
    ----------
    sources
        The sources by metric name; a metric of the catalogue without a source is declared without
        samples.
    disabled
        Names to leave out.

    Raises
    ------
    LookupError
        A source is for a metric that the catalogue does not have.
    """

    def __init__(self, sources: Mapping[str, Source], *, disabled: Collection[str] = ()) -> None:
        unknown = sorted(set(sources) - {metric.name for metric in METRICS})
        if unknown:
            raise LookupError(f"no such metrics: {', '.join(unknown)}")
        self._sources = sources
        self._disabled = frozenset(disabled)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    @property
    def sources(self) -> frozenset[str]:
        """Names of the metrics that have a source."""
        return frozenset(self._sources)

    def page_text(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type.

        Parameters
        ----------
        accept
            The media types the reader takes, as in HTTP.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def describe(self) -> Iterator[Family]:
        """Yield the families without samples, so that registering collects nothing."""
        for metric in METRICS:
            yield _family(metric)

    def collect(self) -> Iterator[Family]:
        """Yield the families with their samples of now."""
        for metric in METRICS:
            if metric.name in self._disabled:
                continue
            family = _family(metric)
            source = self._sources.get(metric.name)
            for labels, value in () if source is None else source():
                if isinstance(family, HistogramMetricFamily):
                    assert isinstance(value, Histogram)
                    buckets = list(value.cumulated())
                    family.add_metric(labels, buckets, value.total)
                else:
                    assert not isinstance(value, Histogram)
                    family.add_metric(labels, value)
            yield family


def _family(metric: Metric) -> Family:
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    if metric.kind == "gauge":
        return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
