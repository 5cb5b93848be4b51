"""Authentication: a bearer token or a client certificate becomes a `User`.

Authorization is the subject of `rbac`. Without roles every authenticated user may do everything, as
the only administrator of a local cluster. A call without valid credentials gets a 401, except on
health paths.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from moorage_sandbox.apiserver.wire.requests import User

_BEARER = "bearer "


class Authenticator:
    """Authenticates by token; trusts the TLS layer to have checked certificates.

    Parameters
    ----------
    tokens
        Token -> user.
    accounts
        Returns the user of a service account's token; None where there are no accounts.
    """

    def __init__(
        self,
        tokens: Mapping[str, User],
        accounts: Callable[[str], User | None] | None = None,
    ) -> None:
        self._accounts = accounts
        self._tokens = {token.encode(): user for token, user in tokens.items()}

    def user(
        self, headers: Mapping[str, str], peer_certificate: Mapping[str, Any] | None
    ) -> User | None:
        """Return the user of these headers and this connection, None without valid credentials.

        Parameters
        ----------
        headers
            By lower-case name.
        peer_certificate
            As for `certificate_user`.
        """
        user = certificate_user(peer_certificate)
        if user is not None:
            return user
        value = headers.get("authorization", "")
        if not value.lower().startswith(_BEARER):
            return None
        token = value[len(_BEARER) :].strip()
        # Bytes of a header that are not UTF-8 are decoded as surrogates.
        found = self._token_user(token.encode(errors="surrogateescape"))
        if found is None and self._accounts is not None:
            return self._accounts(token)
        return found

    def _token_user(self, sent: bytes) -> User | None:
        token_user = None
        for token, user in self._tokens.items():
            # Compared in constant time, so that a token cannot be guessed letter by letter.
            if hmac.compare_digest(token, sent):
                token_user = user
        return token_user


def certificate_user(certificate: Mapping[str, Any] | None) -> User | None:
    """Return the user of a client's certificate; None without a certificate that names one.

    Parameters
    ----------
    certificate
        As `ssl.SSLSocket.getpeercert` returns it: only present when it was signed by the cluster's
        CA. Its common name is the user, its organizations are the groups.
    """
    name = ""
    groups = []
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, tuple(groups)) if name else None
