"""Requests and replies of the server, independent of any HTTP library.

`http` makes a `Request` from a real connection; an in-process transport makes one directly.
`server.ApiServer.handle` answers it with a `Reply`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping

import msgspec

from moorage.kinds.status import StatusError, bad_request
from moorage.kinds.users import User

__all__ = ["AUTHENTICATED", "Query", "Reply", "Request", "User", "authenticated"]

_WHOLE = re.compile("[+-]?[0-9]+")
_DURATION = re.compile(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
CALL_SECONDS = 60.0
"""Most time of a call: kube-apiserver's --request-timeout. Streams are exempt."""
AUTHENTICATED = "system:authenticated"
"""The group of all users but the anonymous one."""
_ANONYMOUS = "system:anonymous"
_INT64 = range(-(2**63), 2**63)
# Length of the longest int64 in characters; Python refuses to parse numbers of thousands.
_INT64_LENGTH_MAX = 20
# Longest part of a bad value that the message repeats.
_SHOWN = 60


def readable(text: str) -> str:
    """Return a text with invalid UTF-8 replaced, as Go's JSON shows it."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def authenticated(user: User) -> User:
    """Return a user with the group of all authenticated users."""
    if user.name == _ANONYMOUS or AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request.

    Parameters
    ----------
    method
        Upper case.
    path
        Decoded path, beginning with a slash, without the query.
    query
        Decoded (name, value) pairs in the order sent; a name may repeat.
    headers
        Header values by lower-case name.
    body
        The whole body.
    user
        None when no valid credentials came with the request.
    fault
        Reason why the body was not read; reported to a caller with the right to make the call.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User | None = None
    fault: StatusError | None = None


Body = bytes | AsyncIterator[bytes]
"""The body of an answer: all of it, or its pieces as they come."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request.

    Parameters
    ----------
    status
        HTTP status code.
    body
        All bytes, or a stream of chunks that the receiver must close (``aclose``) when it stops
        reading early.
    content_type
        Value of the header of this name.
    headers
        Further headers; a name may repeat.
    annotations
        Annotations of the audit event of the call.
    """

    status: int
    body: Body
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    annotations: Mapping[str, str] = {}


class Query:
    """Query parameters, read by type; a value that cannot be read is a 400.

    Parameters
    ----------
    pairs
        As in `Request.query`. Of a repeated name the first value counts.

    Attributes
    ----------
    dry_run
        Whether a write with valid options stores nothing.
    """

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self._values = dict(reversed(pairs))
        self.dry_run = "dryRun" in self._values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """Return the value, or an empty string."""
        return self._values.get(name, "")

    def flag(self, name: str) -> bool:
        """Return a yes/no value; present without a value means yes, as in Go's conversion."""
        if name not in self._values:
            return False
        # Everything but these two means true (apimachinery v1.36 pkg/conversion/queryparams).
        return self._values[name].lower() not in {"false", "0"}

    def whole(self, name: str) -> int | None:
        """Return a whole number, or None when the parameter is absent or empty.

        Raises
        ------
        StatusError
            400: not a whole number.
        """
        text = self._values.get(name, "")
        if not text:
            return None
        shown = f'strconv.ParseInt: parsing "{text[:_SHOWN]}"'
        if not _WHOLE.fullmatch(text):
            raise bad_request(f"{shown}: invalid syntax ({name})")
        if len(text) > _INT64_LENGTH_MAX or int(text) not in _INT64:
            raise bad_request(f"{shown}: value out of range ({name})")
        return int(text)


def time_limit_seconds(query: tuple[tuple[str, str], ...]) -> float:
    """Return how long a call may take: ``timeout``, if it is shorter than the server's limit.

    Notes
    -----
    apiserver v1.36 pkg/endpoints/filters/request_deadline.go: a timeout of 0 or less, and one above
    the server's, count as none. A watch has no such limit.
    """
    if not query:
        return CALL_SECONDS
    asked = Query(query)
    text = asked.text("timeout")
    if not text or asked.flag("watch") or not _DURATION.fullmatch(text) or text.startswith("-"):
        return CALL_SECONDS
    parts = _PART.findall(text[:_SHOWN])
    seconds = sum(float(number) * _UNITS_SECONDS[unit] for number, unit in parts)
    return seconds if 0 < seconds < CALL_SECONDS else CALL_SECONDS


def check_timeout(query: tuple[tuple[str, str], ...]) -> None:
    """Refuse a ``timeout`` that is no duration.

    Raises
    ------
    StatusError
        400: not a duration as Go reads it.

    Notes
    -----
    apiserver v1.36 pkg/endpoints/filters/request_deadline.go.
    """
    for name, text in query:
        if name == "timeout" and text and not _DURATION.fullmatch(text):
            raise bad_request(
                "invalid timeout specified in the request URL - time: invalid duration "
                f'"{text[:_SHOWN]}"'
            )


def version_number(text: str, *, field: str = "resourceVersion") -> int | None:
    """Read a resourceVersion parameter; None when it is empty.

    Raises
    ------
    StatusError
        400: not a number.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < _INT64_LENGTH_MAX):
        shown = text[:_SHOWN]
        raise StatusError(400, "BadRequest", f'Invalid value: "{shown}": {field} is not a number')
    return int(text)
