"""Long lists in pages: the rest of a list is kept as it was when the first page was read.

So the pages of one list belong together however much is written in between. What is kept is
bounded in number and in time; a token that comes too late is told 410, and gets a new token to
go on with as things are now.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict

import msgspec

from moorage.apiserver.record import Record
from moorage.apiserver.status import StatusError, bad_request
from moorage.apiserver.store import Key, Shelf
from moorage.base.clock import NS_PER_SECOND, Clock

# etcd forgets old revisions every five minutes; clients are written for that.
KEPT_NS = 300 * NS_PER_SECOND
# A guess: far more lists than are ever read in pages at the same time.
KEPT_LISTS = 64

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


class _Kept(msgspec.Struct, frozen=True):
    records: tuple[Record, ...]
    until_ns: int


class PageKeeper:
    """Keeps lists that are being read in pages.

    Parameters
    ----------
    clock
        Says when a list has been kept long enough.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # (resource, version of the list) -> all records of that resource at that version.
        self._kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()

    def keep(self, resource: str, version: int, shelf: Shelf) -> None:
        """Remember a resource as it is now, under the version of the list being read."""
        self._drop_old()
        until_ns = self._clock.monotonic_ns() + KEPT_NS
        self._kept[resource, version] = _Kept(tuple(shelf.records()), until_ns)
        self._kept.move_to_end((resource, version))
        while len(self._kept) > KEPT_LISTS:
            self._kept.popitem(last=False)

    def records(self, resource: str, version: int) -> tuple[Record, ...] | None:
        """Return all records as they were at a version, in key order; None if forgotten."""
        self._drop_old()
        kept = self._kept.get((resource, version))
        return kept.records if kept else None

    def forget(self) -> None:
        """Forget every list; who reads on is told to start over."""
        self._kept.clear()

    def _drop_old(self) -> None:
        now_ns = self._clock.monotonic_ns()
        for key in [key for key, kept in self._kept.items() if kept.until_ns <= now_ns]:
            del self._kept[key]


def too_old(token: Token) -> StatusError:
    """410 for a token that came too late, with one that goes on without consistency."""
    again = Token(version=-1, namespace=token.namespace, name=token.name)
    return StatusError(410, "Expired", TOO_OLD, metadata={"continue": encode_token(again)})
