"""The numbers of calls to the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from moorage.observe.catalogue import METRICS
from moorage.observe.series import Histogram

_BOUNDS = {metric.name: metric.buckets for metric in METRICS}
_SECONDS = _BOUNDS["rest_client_request_duration_seconds"]
_BYTES = _BOUNDS["rest_client_request_size_bytes"]


class CallFacts:
    """Numbers about calls to one server.

    Parameters
    ----------
    host
        The server's host and port.

    Attributes
    ----------
    answers
        Calls by (code, method); ``<error>`` where no answer came.
    durations
        Seconds, by method.
    sent, received
        Bytes of the bodies, by method; of calls and answers that have one.
    retries
        Calls sent again by (code of the answer before, method).
    waits
        Seconds under a limit of our own, by method.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.answers: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Histogram] = {}
        self.sent: dict[str, Histogram] = {}
        self.received: dict[str, Histogram] = {}
        self.retries: Counter[tuple[str, str]] = Counter()
        self.waits: dict[str, Histogram] = {}

    def answered(
        self, method: str, code: int | None, seconds: float, *, sent: int = 0, received: int = 0
    ) -> None:
        """Count a call.

        Parameters
        ----------
        method, code
            Of HTTP; no code: no answer came.
        seconds
            Until the whole answer was there.
        sent, received
            Bytes of the bodies.
        """
        self.answers[_code(code), method] += 1
        _observe(self.durations, method, seconds, _SECONDS)
        if sent:
            _observe(self.sent, method, sent, _BYTES)
        if received:
            _observe(self.received, method, received, _BYTES)

    def retried(self, method: str, code: int | None) -> None:
        """Count a call that is sent again; no code: no answer came."""
        self.retries[_code(code), method] += 1

    def held(self, method: str, seconds: float) -> None:
        """Observe how long a call waited for its turn."""
        _observe(self.waits, method, seconds, _SECONDS)


def _code(code: int | None) -> str:
    return "<error>" if code is None else str(code)


def _observe(
    by_method: dict[str, Histogram], method: str, value: float, bounds: Sequence[float]
) -> None:
    histogram = by_method.get(method)
    if histogram is None:
        histogram = by_method[method] = Histogram(bounds)
    histogram.observe(value)
