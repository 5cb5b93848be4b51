"""Who makes a call: the ways to prove it, their order, and proofs that do not hold."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.service.serving.authentication import Authenticator
from moorage.service.serving.callers import (
    ANONYMOUS,
    Caller,
    Credentials,
    PeerCertificate,
    UnauthenticatedError,
)
from moorage.service.serving.trust import Bundle, ProxyNames, Trust

CLOCK = ManualClock()
LATER = CLOCK.now_ns() / NS_PER_SECOND + 60
USERS, PROXIES = b"authority of users", b"authority of proxies"
TRUST = Trust(
    Bundle("users", frozenset({USERS})),
    Bundle("proxies", frozenset({PROXIES})),
    ProxyNames(
        users=("X-Remote-User", "X-User"),
        groups=("X-Remote-Group",),
        uids=("X-Remote-Uid",),
        extra_prefixes=("X-Remote-Extra-",),
        proxies=("aggregator",),
    ),
)
KNOWN = "system:authenticated"
CREDENTIAL = "authentication.kubernetes.io/credential-id"


class Tokens:
    """Knows two tokens."""

    async def caller(self, token: str) -> Caller:
        if token == "nobody's":
            raise UnauthenticatedError("invalid bearer token")
        return Caller(token, groups=("dev",))


def certificate(
    name: str, authority: bytes, *organizations: str, expires: float = LATER
) -> PeerCertificate:
    return PeerCertificate(name, organizations, expires, (name.encode(), authority))


def certified(name: str, *organizations: str) -> Caller:
    digest = hashlib.sha256(name.encode()).hexdigest()
    groups = (*organizations, KNOWN)
    return Caller(name, groups=groups, extra={CREDENTIAL: (f"X509SHA256={digest}",)})


def headers(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in values.items())


PROXY = certificate("aggregator", PROXIES)
NAMED = headers(x_remote_user="jane", x_remote_group="dev", x_remote_uid="u1")


@pytest.mark.parametrize(
    ("credentials", "caller"),
    [
        pytest.param(Credentials(), ANONYMOUS, id="no credentials: anonymous"),
        pytest.param(
            Credentials(headers(authorization="Basic eDp5")),
            ANONYMOUS,
            id="a password is not looked at",
        ),
        pytest.param(
            Credentials(headers(authorization="Bearer ")), ANONYMOUS, id="an empty token is none"
        ),
        pytest.param(
            Credentials(headers(authorization="bearer jane")),
            Caller("jane", groups=("dev", KNOWN)),
            id="a token",
        ),
        pytest.param(
            Credentials((), certificate("jane", USERS, "dev", "ops")),
            certified("jane", "dev", "ops"),
            id="a certificate: its organizations are the groups",
        ),
        pytest.param(
            Credentials(headers(authorization="Bearer joe"), certificate("jane", USERS)),
            certified("jane"),
            id="a certificate counts before a token",
        ),
        pytest.param(
            Credentials(headers(authorization="Bearer joe"), certificate("jane", b"other")),
            Caller("joe", groups=("dev", KNOWN)),
            id="a token counts where the certificate identifies nobody",
        ),
        pytest.param(
            Credentials(NAMED, PROXY),
            Caller("jane", "u1", ("dev", KNOWN)),
            id="a proxy names its user",
        ),
        pytest.param(
            Credentials(headers(x_user="joe"), PROXY),
            Caller("joe", groups=(KNOWN,)),
            id="a proxy names its user in the second header",
        ),
        pytest.param(
            Credentials(
                (
                    *headers(x_remote_user="joe"),
                    ("x-remote-extra-a%2fb", "1"),
                    ("x-remote-extra-a%2fb", "2"),
                ),
                PROXY,
            ),
            Caller("joe", groups=(KNOWN,), extra={"a/b": ("1", "2")}),
            id="a proxy names further facts",
        ),
        pytest.param(
            Credentials(NAMED, certificate("joe", USERS)),
            certified("joe"),
            id="headers of a user that is no proxy are not looked at",
        ),
        pytest.param(
            Credentials(NAMED), ANONYMOUS, id="headers without a certificate are not looked at"
        ),
    ],
)
async def test_the_caller_is_the_one_that_is_proved(credentials: Credentials, caller: Any) -> None:
    tokens: Any = Tokens()
    found = await Authenticator(lambda: TRUST, tokens, clock=CLOCK).caller(credentials)
    assert found == caller


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        pytest.param(
            Credentials(headers(authorization="Bearer nobody's")),
            "invalid bearer token",
            id="a token that is not valid",
        ),
        pytest.param(
            Credentials(headers(authorization="Bearer \udcff")),
            "a header that identifies the caller is not UTF-8",
            id="a token that is no text",
        ),
        pytest.param(
            Credentials(headers(x_remote_user="\udcff"), PROXY),
            "a header that identifies the caller is not UTF-8",
            id="a user of a proxy that is no text",
        ),
        pytest.param(
            Credentials((), certificate("jane", b"other")),
            "the client certificate is of no authority that identifies users",
            id="a certificate of an authority that is not trusted any more",
        ),
        pytest.param(
            Credentials((), certificate("jane", USERS, expires=LATER - 60)),
            "the client certificate has expired",
            id="a certificate that expired while its connection was open",
        ),
        pytest.param(
            Credentials(NAMED, certificate("somebody", PROXIES)),
            "the client certificate is of no authority that identifies users",
            id="a proxy that is not on the list",
        ),
        pytest.param(
            Credentials(NAMED, PeerCertificate("aggregator", (), LATER, ())),
            "the client certificate is of no authority that identifies users",
            id="a certificate without a verified chain",
        ),
        pytest.param(
            Credentials((), certificate("", USERS)),
            "the client certificate is of no authority that identifies users",
            id="a certificate without a name",
        ),
        pytest.param(
            Credentials(headers(authorization="Bearer nobody's"), certificate("jane", b"other")),
            "the client certificate is of no authority that identifies users; invalid bearer token",
            id="neither certificate nor token",
        ),
    ],
)
async def test_credentials_that_prove_nobody_are_refused(
    credentials: Credentials, message: str
) -> None:
    tokens: Any = Tokens()
    with pytest.raises(UnauthenticatedError) as caught:
        await Authenticator(lambda: TRUST, tokens, clock=CLOCK).caller(credentials)
    assert str(caught.value) == message


async def test_without_a_server_to_ask_tokens_are_ignored() -> None:
    credentials = Credentials(headers(authorization="Bearer jane"))
    assert await Authenticator(Trust, None, clock=CLOCK).caller(credentials) == ANONYMOUS
