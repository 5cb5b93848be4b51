"""Reads a server's audit log while it grows: which user called what, and when.

Only calls of impersonated users are read, so a measurement names each of its processes by a user.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

_REQUESTS = b'"impersonatedUser"'


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Object(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an audit event that are read."""

    verb: str
    user_agent: str
    impersonated_user: _User
    response_status: _Answer
    received: str = msgspec.field(name="requestReceivedTimestamp")
    answered: str = msgspec.field(name="stageTimestamp")
    object_ref: _Object = _Object()


class AuditedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a server has answered.

    Parameters
    ----------
    user
        The impersonated user.
    agent
        The ``User-Agent`` header.
    verb, resource, subresource, name
        The act, and its object.
    code
        HTTP status of the answer.
    received, answered
        Arrival of the call and time of its answer by the server's clock, seconds since the epoch.
    """

    user: str
    agent: str
    verb: str
    resource: str
    subresource: str
    name: str
    code: int
    received: float
    answered: float


class AuditTail:
    """The calls in an audit log, each read once.

    Parameters
    ----------
    path
        The log. It need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._decode = msgspec.json.Decoder(_Line).decode

    def fresh(self) -> Iterator[AuditedCall]:
        """Yield the calls of impersonated users that were logged since the last look."""
        if self._file is None:
            if not self._path.exists():
                return
            self._file = self._path.open("rb")
        lines = (self._rest + self._file.read()).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if _REQUESTS in line:
                yield _call(self._decode(line))

    def close(self) -> None:
        """Close the log."""
        if self._file is not None:
            self._file.close()


def _call(line: _Line) -> AuditedCall:
    return AuditedCall(
        user=line.impersonated_user.username,
        agent=line.user_agent,
        verb=line.verb,
        resource=line.object_ref.resource,
        subresource=line.object_ref.subresource,
        name=line.object_ref.name,
        code=line.response_status.code,
        received=datetime.fromisoformat(line.received).timestamp(),
        answered=datetime.fromisoformat(line.answered).timestamp(),
    )
