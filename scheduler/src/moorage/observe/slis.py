"""The results of the health checks, for ``/metrics/slis``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily


class HealthFacts:
    """Numbers about health checks; they change only when a health check is called.

    Attributes
    ----------
    last
        How each check last went, by (name, type): type is ``healthz``, ``livez`` or ``readyz``.
    checks
        How often each result came, by (name, type, ``success`` or ``error``).

    Notes
    -----
    Kubernetes v1.36 component-base ``metrics/prometheus/slis``.
    """

    def __init__(self) -> None:
        self.last: dict[tuple[str, str], bool] = {}
        self.checks: Counter[tuple[str, str, str]] = Counter()

    def checked(self, name: str, path: str, *, passed: bool) -> None:
        """Note the result of a check."""
        self.last[name, path] = passed
        self.checks[name, path, "success" if passed else "error"] += 1

    def page_text(self, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type.

        Parameters
        ----------
        accept
            The media types the reader takes, as in HTTP.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type

    def describe(self) -> Iterator[Family]:
        """Yield nothing, so that registering collects nothing."""
        yield from ()

    def collect(self) -> Iterator[Family]:
        """Yield the two families with their samples of now."""
        gauge = GaugeMetricFamily(
            "kubernetes_healthcheck",
            "How a health check last went, 1 where it passed",
            labels=("name", "type"),
        )
        for labels, passed in self.last.items():
            gauge.add_metric(labels, float(passed))
        counter = CounterMetricFamily(
            "kubernetes_healthchecks_total",
            "Health checks by how they went",
            labels=("name", "type", "status"),
        )
        for told, count in self.checks.items():
            counter.add_metric(told, count)
        yield gauge
        yield counter
