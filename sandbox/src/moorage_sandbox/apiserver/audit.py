"""The audit log: one line of JSON for each call, as in kube-apiserver's audit log.

Level Metadata, stage ResponseComplete (kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/audit):
the caller, the object and the outcome, no bodies. A watch, or a log that is followed, leaves two
lines: ResponseStarted, and ResponseComplete when it ends. A log that cannot be written does not
stop the server. Missing lines are counted; a message reports their begin, another one their end.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Any, Final, Self

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import UsageError
from moorage.base.ids import new_uid
from moorage.base.rng import Random
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.rbac.impersonation import requested_user
from moorage_sandbox.apiserver.wire.requests import AUTHENTICATED, Reply, Request, User, readable

TRACEPARENT: Final = "moorage.dev/traceparent"
"""The annotation of an event with the caller's span, as the caller sent it."""

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class AuditLog:
    """Appends events to a file that only its owner can read.

    Parameters
    ----------
    path
        The file; its content is kept.
    clock
        Time stamps.
    rng
        Ids of the events.

    Raises
    ------
    UsageError
        The file cannot be opened.
    """

    def __init__(self, path: Path, *, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._missing = 0
        self._torn = False
        try:
            path.touch(mode=0o600)
            # Unbuffered: a line is in the file, or known to be missing, when the call is answered.
            self._file: IO[bytes] = path.open("ab", buffering=0)
        except OSError as error:
            raise UsageError(f"cannot write the audit log to {path}: {error.strerror}") from error

    def now(self) -> str:
        """Return the time that `write` takes as the arrival of the call."""
        return rfc3339_micro(self._clock.now_ns())

    def write_call(self, request: Request, reply: Reply, received: str) -> Reply:
        """Write the event of a call that was answered; return the answer to send."""
        try:
            event = self._event(request, reply, received)
        except Exception as error:
            self._note_missing(error)
            return reply
        if isinstance(reply.body, bytes):
            self._write(event)
            return reply
        self._write(event | {"stage": "ResponseStarted"})
        stream = _Stream(reply.body, lambda: self._write(event | {"stageTimestamp": self.now()}))
        return msgspec.structs.replace(reply, body=stream)

    def _write(self, event: dict[str, Any]) -> None:
        try:
            self._append(_line(event))
        except Exception as error:
            self._note_missing(error)
            return
        if self._missing:
            _log.warning("the audit log is written again; %d events are missing", self._missing)
            self._missing = 0

    def _note_missing(self, error: Exception) -> None:
        # The call has been answered, so an error in here must not turn it into a failure.
        if not self._missing:
            _log.error("the audit log cannot be written, events are missing: %s", error)
        self._missing += 1

    def _append(self, line: bytes) -> None:
        # An incomplete line is ended, so that this line stands on its own.
        wanted = b"\n" + line if self._torn else line
        written = self._file.write(wanted)
        if written != len(wanted):
            self._torn = self._torn or written > 0
            raise OSError("no room left for a whole line")
        self._torn = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _event(self, request: Request, reply: Reply, received: str) -> dict[str, Any]:
        wanted = attributes_of(request)
        query = "&".join(f"{name}={value}" for name, value in request.query)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": new_uid(self._rng),
            "stage": "ResponseComplete",
            "requestURI": f"{request.path}?{query}" if query else request.path,
            "verb": wanted.verb,
            "user": {},
            "userAgent": request.headers.get("user-agent", ""),
            "responseStatus": {"metadata": {}, "code": reply.status},
            "requestReceivedTimestamp": received,
            "stageTimestamp": self.now(),
        }
        if request.user is not None:
            event["user"] = _shown(request.user)
            asked = requested_user(request.headers)
            if asked is not None:
                event["impersonatedUser"] = _shown(asked)
        annotations = dict(reply.annotations)
        parent = request.headers.get("traceparent")
        if parent:
            annotations[TRACEPARENT] = parent
        if annotations:
            event["annotations"] = annotations
        if not wanted.path:
            reference = {
                "resource": wanted.resource,
                "namespace": wanted.namespace,
                "name": wanted.name,
                "apiGroup": wanted.group,
                "apiVersion": request.path.strip("/").split("/")[2 if wanted.group else 1],
                "subresource": wanted.subresource,
            }
            event["objectRef"] = {key: value for key, value in reference.items() if value}
        return event


class _Stream:
    """The body of an answer, whose end is reported once: also if nobody has read from it.

    Parameters
    ----------
    chunks
        The body.
    end
        Called at the end.
    """

    def __init__(self, chunks: AsyncIterator[bytes], end: Callable[[], None]) -> None:
        self._chunks = chunks
        self._end: Callable[[], None] | None = end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except BaseException:
            self._report_end()
            raise

    async def aclose(self) -> None:
        """Close the body."""
        try:
            close = getattr(self._chunks, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._report_end()

    def _report_end(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()


def _line(event: dict[str, Any]) -> bytes:
    try:
        return _encode(event) + b"\n"
    except UnicodeEncodeError:
        # A name or header that is not UTF-8.
        return _encode(_readable(event)) + b"\n"


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {key: _readable(each) for key, each in value.items()}
    return [_readable(each) for each in value] if isinstance(value, list) else value


def _shown(user: User) -> dict[str, Any]:
    groups = list(dict.fromkeys([*user.groups, AUTHENTICATED]))
    return {"username": user.name, "groups": groups}
