"""The nouns of access: a caller, the credentials of a call, and the error of invalid ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.base.errors import MoorageError

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"


class Caller(msgspec.Struct, frozen=True):
    """The caller of a path.

    Parameters
    ----------
    name, uid
        The user's name and uid; the uid may be empty.
    groups
        The groups of the user.
    extra
        Further facts about the user, handed on to reviews.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS: Final = Caller("system:anonymous", groups=(UNAUTHENTICATED,))


class PeerCertificate(msgspec.Struct, frozen=True):
    """The client certificate of a connection; its chain was verified when the connection began.

    Parameters
    ----------
    name, organizations
        Common name and organizations of its subject.
    expires_seconds
        End of its validity, seconds since the epoch.
    chain
        The verified chain, DER, the client's own certificate first.
    """

    name: str
    organizations: tuple[str, ...]
    expires_seconds: float
    chain: tuple[bytes, ...]


class Credentials(msgspec.Struct, frozen=True):
    """The credentials of a call, which identify its caller.

    Parameters
    ----------
    headers
        Names in lower case, with their values, as they came.
    certificate
        The certificate of the connection, if the client presented one.
    """

    headers: tuple[tuple[str, str], ...] = ()
    certificate: PeerCertificate | None = None

    def values(self, name: str) -> list[str]:
        """Return the values of a header, without empty ones; the name in any case."""
        wanted = name.lower()
        return [value for header, value in self.headers if header == wanted and value]


class UnauthenticatedError(MoorageError):
    """The credentials of a call are not valid, or could not be checked."""


def checked(text: str) -> str:
    """Return a text of a header that identifies a caller.

    Raises
    ------
    UnauthenticatedError
        Its bytes are no UTF-8: it cannot be sent on, and replaced bytes would make two callers one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnauthenticatedError("a header that identifies the caller is not UTF-8") from error
    return text
