"""Long lists in pages: the token that says where the next page goes on.

The pages of one list belong together however much is written in between: each shows what there was
when the first page was read (`Store.records_at`). Nothing is kept for that but the log of changes,
which is bounded; a token older than the log is told 410, and gets a new token to go on with as
things are now.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from moorage.apiserver.status import StatusError, bad_request
from moorage.apiserver.store import Key

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Token(msgspec.Struct, frozen=True, rename={"version": "rv"}):
    """What a ``continue`` parameter says.

    Parameters
    ----------
    version
        resourceVersion of the list; -1 to go on with whatever is there now.
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
    """Return a token as text for a URL."""
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode_token(text: str) -> Token:
    """Read a token.

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
    """410 for a token that came too late, with one that goes on without consistency."""
    again = Token(version=-1, namespace=token.namespace, name=token.name)
    return StatusError(410, "Expired", TOO_OLD, metadata={"continue": encode_token(again)})
