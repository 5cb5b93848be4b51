"""Tokens of service accounts: issued for ``serviceaccounts/NAME/token``, and verified.

Place in the flow: `server` issues tokens here, `credentials` verifies them. A token is a JSON Web
Token as upstream's (kubernetes v1.36 pkg/serviceaccount), signed with a key of the cluster
(`token_keys`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.api.resources import SERVICE_ACCOUNTS
from moorage.base.clock import NS_PER_SECOND, Clock, rfc3339
from moorage.kinds.built_in import subresource_body
from moorage.kinds.kind import Obj, invalid
from moorage.kinds.status import invalid as invalid_status
from moorage_sandbox.apiserver.authentication.bound_objects import bound_claims, still_bound
from moorage_sandbox.apiserver.authentication.token_keys import (
    ALGORITHM,
    ISSUER,
    TokenKeys,
    as_text,
    from_text,
)
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.rbac.impersonation import ACCOUNT_PREFIX, account_groups
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.wire.bodies import decode_typed
from moorage_sandbox.apiserver.wire.requests import Request, User, authenticated
from moorage_sandbox.storage.store import Store

_RESOURCE, _ = subresource_body(SERVICE_ACCOUNTS, "token")
_SECONDS_MIN, _SECONDS, _SECONDS_MAX = 600, 3600, 1 << 32


class AccountTokens:
    """Issues and verifies the tokens of one cluster.

    Parameters
    ----------
    secret
        The key of the signatures is derived from it.
    store
        Holds the service accounts; a token becomes invalid when its account is deleted.
    clock
        Time of issue and expiry.
    """

    def __init__(self, secret: bytes, store: Store, clock: Clock) -> None:
        self.keys = TokenKeys(secret)
        self._store = store
        self._clock = clock

    def token_request(self, target: Target, request: Request) -> Obj:
        """Return the ``TokenRequest`` asked for, with a token in its status.

        Raises
        ------
        StatusError
            400: not a TokenRequest, or bound to an object that it cannot be bound to. 404: no such
            account, or bound object. 409: the bound object has another uid. 422: a duration that is
            too short or too long.
        """
        record = get_record(self._store, target)
        spec = decode_typed(request, _RESOURCE).get("spec", {})
        seconds = spec.get("expirationSeconds") or _SECONDS
        if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:
            short = seconds < _SECONDS_MIN
            limit = "less than 10 minutes" if short else "larger than 2^32 seconds"
            text = f"may not specify a duration {limit}"
            raise invalid_status(_RESOURCE, "", [invalid("spec.expirationSeconds", seconds, text)])
        bound: Obj | None = spec.get("boundObjectRef") or None
        account = {"name": target.name, "uid": record.uid}
        claims = {"namespace": target.namespace, "serviceaccount": account}
        if bound is not None:
            claims |= bound_claims(self._store, bound, (target.namespace, target.name))
        answered = {
            "audiences": spec.get("audiences") or [ISSUER],
            "expirationSeconds": seconds,
            "boundObjectRef": bound,
        }
        return self._issued(target, answered, claims)

    def _issued(self, target: Target, spec: Obj, own_claims: Obj) -> Obj:
        """Return a TokenRequest of this spec with a token of these claims of Kubernetes' own."""
        now, seconds = self._clock.now_ns() // NS_PER_SECOND, spec["expirationSeconds"]
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "kubernetes.io": own_claims,
            "nbf": now,
            "sub": f"{ACCOUNT_PREFIX}{target.namespace}:{target.name}",
        }
        return {
            "kind": _RESOURCE.kind,
            "apiVersion": _RESOURCE.api_version,
            "metadata": {"name": target.name, "namespace": target.namespace},
            "spec": spec,
            "status": {
                "token": self._signed(claims),
                "expirationTimestamp": rfc3339((now + seconds) * NS_PER_SECOND),
            },
        }

    def user(self, token: str) -> User | None:
        """Return the user of a token; None for a foreign or invalid token."""
        claims = self._claims_of(token)
        if claims is None or ISSUER not in claims["aud"]:
            return None
        return _user_of(claims)

    def reviewed(self, token: str, audiences: Sequence[str]) -> Obj:
        """Return the status of a ``TokenReview``: the user of the token, and its audiences.

        Parameters
        ----------
        token
            Token to review.
        audiences
            Audiences to accept; empty for this server.

        Notes
        -----
        kubernetes v1.36 pkg/registry/authentication/tokenreview/storage.go.
        """
        claims = self._claims_of(token)
        if claims is None:
            return {"user": {}, "error": "invalid bearer token"}
        wanted = list(audiences) or [ISSUER]
        common = [each for each in claims["aud"] if each in wanted]
        if not common:
            text = f"token audiences {_quoted(claims['aud'])} is invalid for the target audiences "
            return {"user": {}, "error": text + _quoted(wanted)}
        user = authenticated(_user_of(claims))
        return {"authenticated": True, "user": user.info, "audiences": common}

    def _claims_of(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token if this server issued it and it is still valid."""
        signed, _, signature = token.rpartition(".")
        if not self.keys.verify(signed, signature):
            return None
        claims: dict[str, Any] = msgspec.json.decode(from_text(signed.partition(".")[2]))
        if claims["exp"] <= self._clock.now_ns() // NS_PER_SECOND:
            return None
        account = claims["kubernetes.io"]
        key = (account["namespace"], account["serviceaccount"]["name"])
        record = self._store.shelf(SERVICE_ACCOUNTS.qualified).get(key)
        if record is None or record.uid != account["serviceaccount"]["uid"]:
            return None
        if not still_bound(self._store, account, self._clock.now_ns()):
            return None
        return claims

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": ALGORITHM, "kid": self.keys.name}
        signed = ".".join(as_text(msgspec.json.encode(part)) for part in (header, claims))
        return f"{signed}.{self.keys.sign(signed)}"


def _user_of(claims: dict[str, Any]) -> User:
    """Return the service account of a token as a user."""
    name, account = claims["sub"], claims["kubernetes.io"]["serviceaccount"]
    return User(name, account_groups(name), account["uid"])


def _quoted(words: Sequence[str]) -> str:
    """Return texts as Go's ``%q`` formats a list of them."""
    return f"[{' '.join(msgspec.json.encode(each).decode() for each in words)}]"
