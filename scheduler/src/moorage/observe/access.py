"""The numbers of authentication and authorization on the secure port."""

from __future__ import annotations

from collections import Counter

from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histograms

_REVIEW = BUCKETS["apiserver_delegated_authn_request_duration_seconds"]
_JUDGED = BUCKETS["authentication_duration_seconds"]


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
        self.durations: Histograms[str] = Histograms(_REVIEW)

    def answered(self, code: int | None, seconds: float) -> None:
        """Count a review; no code: no answer came."""
        label = "<error>" if code is None else str(code)
        self.answers[label] += 1
        self.durations[label].observe(seconds)


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
        self.authentications: Histograms[str] = Histograms(_JUDGED)
        self.authorizations: Histograms[str] = Histograms(_JUDGED)

    def authenticated(self, result: str, seconds: float) -> None:
        """Count a call by how its authentication ended: success, failure or error."""
        self.authentications[result].observe(seconds)

    def authorized(self, result: str, seconds: float) -> None:
        """Count a call by how its authorization ended: allowed, no-opinion, denied or error."""
        self.authorizations[result].observe(seconds)
