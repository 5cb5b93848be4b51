"""Bearer tokens: asked about with a TokenReview, and remembered for a while.

Notes
-----
Kubernetes v1.36 ``apiserver/plugin/pkg/authenticator/token/webhook`` and
``pkg/authentication/token/cache``: an answer is kept, whether yes or no; an error is not. Calls
with the same token that come while its review is under way share that review.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.observe.access import AccessFacts
from moorage.service.serving.callers import Caller, UnauthenticatedError
from moorage.service.serving.expiring import ExpiringCache
from moorage.service.serving.reviews import Reviewer

_TOKENS_MAX: Final = 4096
"""As many as kube-scheduler's cache holds: 32 parts of 128."""

_INVALID: Final = "invalid bearer token"


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    error: str = ""


class TokenAuthenticator:
    """Finds the user of a bearer token.

    Parameters
    ----------
    reviewer
        Sends TokenReviews.
    ttl_ns
        How long an answer is kept, nanoseconds; 0 keeps none.
    clock
        For the age of the answers.
    facts
        Counts hits and reviews.
    """

    def __init__(
        self, reviewer: Reviewer, *, ttl_ns: int, clock: Clock, facts: AccessFacts
    ) -> None:
        self._reviewer = reviewer
        self._ttl_ns = ttl_ns
        self._facts = facts
        # Keys are digests: a look at the memory of this process shows no token from here.
        self._known: ExpiringCache[bytes, Caller | UnauthenticatedError] = ExpiringCache(
            clock, size_max=_TOKENS_MAX
        )
        self._under_way: dict[bytes, asyncio.Future[Caller]] = {}

    async def caller(self, token: str) -> Caller:
        """Return the user of a token.

        Raises
        ------
        UnauthenticatedError
            The token is not valid, or the server gave no answer.
        """
        key = hashlib.sha256(token.encode()).digest()
        known = self._known.get(key)
        self._facts.token_cache["miss" if known is None else "hit"] += 1
        if isinstance(known, UnauthenticatedError):
            raise known
        if known is not None:
            return known
        waiting = self._under_way.get(key)
        if waiting is not None:
            return await asyncio.shield(waiting)
        return await self._shared(key, token)

    async def _shared(self, key: bytes, token: str) -> Caller:
        """Ask the server, and let calls that come meanwhile share the answer."""
        future: asyncio.Future[Caller] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            caller = await self._reviewed(key, token)
        except UnauthenticatedError as error:
            future.set_exception(error)
            future.exception()  # perhaps nobody else waits for it
            raise
        except BaseException:
            future.cancel()
            raise
        else:
            future.set_result(caller)
            return caller
        finally:
            del self._under_way[key]

    async def _reviewed(self, key: bytes, token: str) -> Caller:
        try:
            status = await self._reviewer.status({"token": token}, _Status)
        except MoorageError as error:
            self._facts.token_fetches["error"] += 1
            raise UnauthenticatedError(f"the token could not be reviewed: {error}") from error
        if status.authenticated:
            self._facts.token_fetches["ok"] += 1
            user = status.user
            extra = {name: tuple(values) for name, values in user.extra.items()}
            caller = Caller(user.username, user.uid, tuple(user.groups), extra)
            self._known.put_value(key, caller, ttl_ns=self._ttl_ns)
            return caller
        if status.error:
            self._facts.token_fetches["error"] += 1
            raise UnauthenticatedError(status.error)
        self._facts.token_fetches["ok"] += 1
        refused = UnauthenticatedError(_INVALID)
        self._known.put_value(key, refused, ttl_ns=self._ttl_ns)
        raise refused
