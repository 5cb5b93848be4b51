"""What calls to the API server report."""

from __future__ import annotations

from collections import Counter

from moorage.observe.catalogue import METRICS
from moorage.observe.series import Histogram

_BUCKETS = next(m.buckets for m in METRICS if m.name == "rest_client_request_duration_seconds")


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
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.answers: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Histogram] = {}

    def answered(self, method: str, code: int | None, seconds: float) -> None:
        """Count a call; None: no answer came."""
        self.answers["<error>" if code is None else str(code), method] += 1
        histogram = self.durations.get(method)
        if histogram is None:
            histogram = self.durations[method] = Histogram(_BUCKETS)
        histogram.observe(seconds)
