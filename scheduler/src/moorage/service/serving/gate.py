"""The gate before every page: it finds the caller, and lets the call through or refuses it.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/endpoints/filters`` (``WithAuthentication``, ``WithAuthorization``)
and ``handlers/responsewriters/errors.go``, in the order of kube-scheduler's ``buildHandlerChain``.
"""

from __future__ import annotations

import json
import logging
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError
from moorage.observe.access import AccessFacts
from moorage.service.attempts.failure_status import failure_status
from moorage.service.serving.authentication import Authenticator
from moorage.service.serving.authorization import Authorizer
from moorage.service.serving.callers import ANONYMOUS, Caller, Credentials, UnauthenticatedError
from moorage.service.serving.rights import Rights

_log = logging.getLogger(__name__)

_JSON: Final = "application/json"


class Refused(msgspec.Struct, frozen=True):
    """The answer to a call that is not let through."""

    status: int
    body: bytes
    content_type: str = _JSON


class Gate:
    """Judges every call.

    Parameters
    ----------
    authenticator, authorizer
        Who calls, and whether the caller may.
    facts
        Counts the judgements.
    clock
        For their durations.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        facts: AccessFacts,
        clock: Clock,
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._facts = facts
        self._clock = clock

    async def admitted(self, credentials: Credentials, method: str, path: str) -> Refused | Rights:
        """Return why a call is refused, or the rights of its caller.

        Parameters
        ----------
        credentials
            What identifies the caller.
        method, path
            The call; the path decoded.
        """
        began_ns = self._clock.monotonic_ns()
        try:
            caller = await self._authenticator.caller(credentials)
        except UnauthenticatedError as error:
            _log.warning("unable to authenticate a caller of %s: %s", path, error)
            self._facts.authenticated("error", self._seconds_since(began_ns))
            return _unauthorized()
        self._facts.authenticated("success", self._seconds_since(began_ns))
        return await self._authorized(caller, method.lower(), path)

    async def _authorized(self, caller: Caller, verb: str, path: str) -> Refused | Rights:
        began_ns = self._clock.monotonic_ns()
        try:
            decision = await self._authorizer.authorize_call(caller, verb, path)
        except MoorageError as error:
            self._facts.authorized("error", self._seconds_since(began_ns))
            return _internal_error(path, error)
        result = "allowed" if decision.allowed else "denied" if decision.denied else "no-opinion"
        self._facts.authorized(result, self._seconds_since(began_ns))
        if decision.allowed:
            return Rights(
                self._authorizer, caller, all_open=not self._authorizer.asks_about(caller, path)
            )
        return _forbidden(caller, verb, path, decision.reason)

    def _seconds_since(self, began_ns: int) -> float:
        return (self._clock.monotonic_ns() - began_ns) / NS_PER_SECOND


def _unauthorized() -> Refused:
    return Refused(401, failure_status(401, "Unauthorized", "Unauthorized") + b"\n")


def _forbidden(caller: Caller, verb: str, path: str, reason: str) -> Refused:
    name = json.dumps(caller.name or ANONYMOUS.name, ensure_ascii=False)
    message = f"forbidden: User {name} cannot {verb} path {json.dumps(path, ensure_ascii=False)}"
    text = f"{message}: {reason}" if reason else message
    return Refused(403, failure_status(403, "Forbidden", text, details={}) + b"\n")


def _internal_error(path: str, error: MoorageError) -> Refused:
    # The angle brackets of a path must not become markup.
    text = f"Internal Server Error: {json.dumps(path)}: {error}\n"
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Refused(500, safe.encode(errors="replace"), "text/plain; charset=utf-8")
