"""The numbers of calls to the API server."""

from __future__ import annotations

from collections import Counter

from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histograms

_SECONDS = BUCKETS["rest_client_request_duration_seconds"]
_BYTES = BUCKETS["rest_client_request_size_bytes"]


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
        self.durations: Histograms[str] = Histograms(_SECONDS)
        self.sent: Histograms[str] = Histograms(_BYTES)
        self.received: Histograms[str] = Histograms(_BYTES)
        self.retries: Counter[tuple[str, str]] = Counter()
        self.waits: Histograms[str] = Histograms(_SECONDS)

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
        self.durations[method].observe(seconds)
        if sent:
            self.sent[method].observe(sent)
        if received:
            self.received[method].observe(received)

    def retried(self, method: str, code: int | None) -> None:
        """Count a call that is sent again; no code: no answer came."""
        self.retries[_code(code), method] += 1

    def call_delayed(self, method: str, seconds: float) -> None:
        """Observe how long a call waited for its turn."""
        self.waits[method].observe(seconds)


def _code(code: int | None) -> str:
    return "<error>" if code is None else str(code)
