"""The numbers of authentication and authorization on the secure port."""

from __future__ import annotations

from collections import Counter

from moorage.observe.catalogue import METRICS
from moorage.observe.series import Histogram

_BOUNDS = {metric.name: metric.buckets for metric in METRICS}
_REVIEW = _BOUNDS["apiserver_delegated_authn_request_duration_seconds"]
_JUDGED = _BOUNDS["authentication_duration_seconds"]


class ReviewFacts:
    """Numbers about the reviews of one kind that were sent to the API server.

    Attributes
    ----------
    answers
        Reviews by the code of HTTP; ``<error>`` where no answer came.
    durations
        Seconds, by code.
    """

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.durations: dict[str, Histogram] = {}

    def answered(self, code: int | None, seconds: float) -> None:
        """Count a review; no code: no answer came."""
        label = "<error>" if code is None else str(code)
        self.answers[label] += 1
        _observe(self.durations, label, seconds, _REVIEW)


class AccessFacts:
    """Numbers about the callers of the secure port.

    Attributes
    ----------
    token_reviews, access_reviews
        The reviews that were sent.
    token_cache
        Looks into the cache of tokens: ``hit`` or ``miss``.
    token_fetches
        Reviews of tokens that were not in the cache: ``ok`` or ``error``.
    authentications, authorizations
        Seconds, by result.
    """

    def __init__(self) -> None:
        self.token_reviews = ReviewFacts()
        self.access_reviews = ReviewFacts()
        self.token_cache: Counter[str] = Counter(hit=0, miss=0)
        self.token_fetches: Counter[str] = Counter()
        self.authentications: dict[str, Histogram] = {}
        self.authorizations: dict[str, Histogram] = {}

    def authenticated(self, result: str, seconds: float) -> None:
        """Count a call by how its authentication ended: success, failure or error."""
        _observe(self.authentications, result, seconds, _JUDGED)

    def authorized(self, result: str, seconds: float) -> None:
        """Count a call by how its authorization ended: allowed, no-opinion, denied or error."""
        _observe(self.authorizations, result, seconds, _JUDGED)


def _observe(
    by_label: dict[str, Histogram], label: str, seconds: float, bounds: tuple[float, ...]
) -> None:
    histogram = by_label.get(label)
    if histogram is None:
        histogram = by_label[label] = Histogram(bounds)
    histogram.observe(seconds)
