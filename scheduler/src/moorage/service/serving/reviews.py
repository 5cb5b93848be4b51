"""Reviews sent to the API server: TokenReview and SubjectAccessReview.

Notes
-----
Retries as kubernetes v1.36 ``apiserver/pkg/util/webhook`` (``WithExponentialBackoff``,
``DefaultShouldRetry``): 500 InternalError, 504 Timeout, 429, answers with ``Retry-After`` and a
reset connection are tried again, five times in all; a refused connection is not. Ten seconds bound
all tries together: upstream's limit for a TokenReview, and for one try of a SubjectAccessReview.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.codec import decode_untyped, encode, from_dict
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import ApiError, DecodeError, MoorageError, RefusedError, TransportError
from moorage.base.rng import Random
from moorage.client.status import error_from_answer
from moorage.client.transport import Answer, Call, Transport
from moorage.observe.access import ReviewFacts

_TRIES: Final = 5
_WAIT_SECONDS: Final = 0.5
_WAIT_FACTOR: Final = 1.5
_WAIT_JITTER: Final = 0.2
_TIMEOUT_SECONDS: Final = 10.0

StatusT = TypeVar("StatusT")


class ReviewPath(msgspec.Struct, frozen=True):
    """The kind of a review and where it is sent."""

    kind: str
    api_version: str
    plural: str

    @property
    def path(self) -> str:
        """The path of the collection."""
        return f"/apis/{self.api_version}/{self.plural}"


TOKEN_REVIEW: Final = ReviewPath("TokenReview", "authentication.k8s.io/v1", "tokenreviews")
ACCESS_REVIEW: Final = ReviewPath(
    "SubjectAccessReview", "authorization.k8s.io/v1", "subjectaccessreviews"
)


class Reviewer:
    """Sends reviews of one kind.

    Parameters
    ----------
    transport
        Carries the calls.
    review
        The kind.
    facts
        Counts the reviews.
    clock, rng
        For durations, and for the jitter of retries.
    """

    def __init__(
        self,
        transport: Transport,
        review: ReviewPath,
        *,
        facts: ReviewFacts,
        clock: Clock,
        rng: Random,
    ) -> None:
        self._transport = transport
        self._review = review
        self._facts = facts
        self._clock = clock
        self._rng = rng

    async def status(self, spec: dict[str, Any], type_: type[StatusT]) -> StatusT:
        """Return the ``status`` of the review of a ``spec``.

        Parameters
        ----------
        spec
            The question.
        type_
            The struct to read the status into.

        Raises
        ------
        ApiError, TransportError
            The server does not answer, or refuses; the last of several tries.
        DecodeError
            The answer is no review.
        """
        whole = {"apiVersion": self._review.api_version, "kind": self._review.kind, "spec": spec}
        try:
            async with asyncio.timeout(aio.real_seconds(_TIMEOUT_SECONDS)):
                answer = await self._answer(encode(whole))
        except TimeoutError as error:
            raise TransportError(
                f"POST {self._review.path}: no answer in {_TIMEOUT_SECONDS:.0f} s"
            ) from error
        found = decode_untyped(answer.body)
        status = found.get("status") if isinstance(found, dict) else None
        if not isinstance(status, dict):
            raise DecodeError(f"the server answered a {self._review.kind} without a status")
        return from_dict(type_, status)

    async def _answer(self, body: bytes) -> Answer:
        wait_seconds = _WAIT_SECONDS
        for _ in range(_TRIES - 1):
            try:
                return await self._sent(body)
            except (ApiError, TransportError) as error:
                if not _may_pass(error):
                    raise
            await aio.sleep(wait_seconds * (1 + _WAIT_JITTER * self._rng.random()))
            wait_seconds *= _WAIT_FACTOR
        return await self._sent(body)

    async def _sent(self, body: bytes) -> Answer:
        call = Call("POST", self._review.path, body=body, timeout_seconds=_TIMEOUT_SECONDS)
        began_ns, code = self._clock.monotonic_ns(), None
        try:
            answer = await self._transport.request(call)
            code = answer.status
        finally:
            seconds = (self._clock.monotonic_ns() - began_ns) / NS_PER_SECOND
            self._facts.answered(code, seconds)
        if answer.status >= 400:
            raise error_from_answer(answer)
        return answer


def _may_pass(error: MoorageError) -> bool:
    """Whether trying again may help."""
    if isinstance(error, ApiError):
        again = error.retry_after_seconds is not None or error.code == 429
        return again or error.reason in ("InternalError", "Timeout")
    return not isinstance(error, RefusedError)
