"""Long lists in pages: the token with the position of the next page.

All pages of a list show the state at the first page, regardless of writes in between
(`Store.records_at`). Only the log of changes is kept for that, and it is bounded. A token older
than the log gets a 410 with a new token, which continues with the present state.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from moorage.kinds.status import StatusError, bad_request
from moorage_sandbox.storage.store import Key

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Token(msgspec.Struct, frozen=True, rename={"version": "rv"}):
    """The content of a ``continue`` parameter.

    Parameters
    ----------
    version
        resourceVersion of the list; -1 to continue with the present state.
    namespace, name
        Key of the last object sent.
    """

    version: int
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """Key of the last object sent."""
        return (self.namespace, self.name)


def encode_token(token: Token) -> str:
    """Return a token encoded for a URL."""
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode_token(text: str) -> Token:
    """Return the position in a list that a continue token encodes.

    Raises
    ------
    StatusError
        400: not a token of this server.
    """
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=Token)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error


def too_old(token: Token) -> StatusError:
    """410 for an expired token, with a token that continues without consistency."""
    again = Token(version=-1, namespace=token.namespace, name=token.name)
    return StatusError(410, "Expired", TOO_OLD, metadata={"continue": encode_token(again)})
