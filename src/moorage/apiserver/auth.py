"""Who is calling: a bearer token or a client certificate becomes a `User`.

There is no authorization here: whoever is known may do everything, as the one administrator of a
cluster on his own machine. Whoever is not known gets 401, except on health paths.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from moorage.apiserver.requests import User

_BEARER = "bearer "


class Authenticator:
    """Knows the tokens; trusts the TLS layer to have checked certificates.

    Parameters
    ----------
    tokens
        Token -> user.
    accounts
        Says whose token one of a service account is; None where there are none.
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
        """Return who sends these headers over this connection, None when nobody known.

        Parameters
        ----------
        headers
            By lower-case name.
        peer_certificate
            As `ssl.SSLSocket.getpeercert` returns it: only present when it was signed by the
            cluster's CA. Its common name is the user, its organizations are the groups.
        """
        if peer_certificate:
            user = _certificate_user(peer_certificate)
            if user is not None:
                return user
        value = headers.get("authorization", "")
        if not value.lower().startswith(_BEARER):
            return None
        token = value[len(_BEARER) :].strip()
        # Bytes of a header that are no UTF-8 come as surrogates.
        found = self._token_user(token.encode(errors="surrogateescape"))
        if found is None and self._accounts is not None:
            return self._accounts(token)
        return found

    def _token_user(self, sent: bytes) -> User | None:
        found = None
        for token, user in self._tokens.items():
            # Compared in constant time, so that a token cannot be guessed letter by letter.
            if hmac.compare_digest(token, sent):
                found = user
        return found


def _certificate_user(certificate: Mapping[str, Any]) -> User | None:
    name = ""
    groups = []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, tuple(groups)) if name else None
