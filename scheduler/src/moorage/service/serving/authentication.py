"""Finds the caller: by front proxy, client certificate or bearer token; else nobody in particular.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/authentication/authenticatorfactory/delegating.go``: the ways are
tried in this order, the first that finds a caller wins. A call without credentials is anonymous; a
call whose credentials are all invalid is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.service.serving.callers import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Caller,
    Credentials,
    PeerCertificate,
    UnauthenticatedError,
    checked,
)
from moorage.service.serving.front_proxy import named_caller
from moorage.service.serving.tokens import TokenAuthenticator
from moorage.service.serving.trust import Trust

_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"


class Authenticator:
    """Finds the caller of a call.

    Parameters
    ----------
    trust
        Returns the authorities of the moment.
    tokens
        Finds the users of tokens; None where there is no server to ask: tokens are ignored.
    clock
        For the validity of certificates.
    """

    def __init__(
        self, trust: Callable[[], Trust], tokens: TokenAuthenticator | None, *, clock: Clock
    ) -> None:
        self._trust = trust
        self._tokens = tokens
        self._clock = clock

    async def caller(self, credentials: Credentials) -> Caller:
        """Return who makes a call.

        Raises
        ------
        UnauthenticatedError
            There are credentials, and none of them is valid.
        """
        faults: list[str] = []
        found = self._certified(credentials, faults)
        if found is None:
            found = await self._of_token(credentials, faults)
        if found is not None:
            return _with_group(found)
        if faults:
            raise UnauthenticatedError("; ".join(faults))
        return ANONYMOUS

    def _certified(self, credentials: Credentials, faults: list[str]) -> Caller | None:
        """Return the caller whom the connection's certificate proves; note why it proves none."""
        certificate, trust = credentials.certificate, self._trust()
        if certificate is None:
            return None
        if certificate.expires_seconds <= self._clock.now_ns() / NS_PER_SECOND:
            faults.append("the client certificate has expired")
            return None
        if trust.front.signed(certificate.chain):
            proxies = trust.names.proxies
            if not proxies or certificate.name in proxies:
                found = named_caller(credentials, trust.names)
                if found is not None:
                    return found
        if trust.clients.signed(certificate.chain) and certificate.name:
            return _subject(certificate)
        faults.append("the client certificate is of no authority that identifies users")
        return None

    async def _of_token(self, credentials: Credentials, faults: list[str]) -> Caller | None:
        token = _bearer(credentials)
        if not token or self._tokens is None:
            return None
        try:
            return await self._tokens.caller(checked(token))
        except UnauthenticatedError as error:
            faults.append(str(error))
            return None


def _bearer(credentials: Credentials) -> str:
    for value in credentials.values("authorization")[:1]:
        scheme, _, rest = value.strip().partition(" ")
        if scheme.lower() == "bearer":
            return rest.partition(" ")[0]
    return ""


def _subject(certificate: PeerCertificate) -> Caller:
    digest = hashlib.sha256(certificate.chain[0]).hexdigest()
    return Caller(
        certificate.name,
        groups=certificate.organizations,
        extra={_CREDENTIAL_ID: (f"X509SHA256={digest}",)},
    )


def _with_group(caller: Caller) -> Caller:
    """Add the group of all callers that are known."""
    known = AUTHENTICATED in caller.groups or UNAUTHENTICATED in caller.groups
    if known or caller.name == ANONYMOUS.name:
        return caller
    return msgspec.structs.replace(caller, groups=(*caller.groups, AUTHENTICATED))
