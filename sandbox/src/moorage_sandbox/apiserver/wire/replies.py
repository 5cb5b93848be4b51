"""Builds the reply to a call; a write that took effect is never reported as a failure.

Place in the flow: `server` builds replies here at the end of a call. After a write has taken
effect, an error in rendering it must not become a 500: the client would believe that the write was
refused. Examples are a column that fails, and a text that no header can hold.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from moorage.kinds.status import StatusError, success
from moorage_sandbox.apiserver.wire.negotiate import JSON
from moorage_sandbox.apiserver.wire.render import Renderer, encode
from moorage_sandbox.apiserver.wire.requests import Body, Reply, readable
from moorage_sandbox.storage.record import Record

_log = logging.getLogger(__name__)

# Longest total of all warnings of an answer, and longest warning where the total is exceeded, in
# characters (kubernetes v1.36 apiserver pkg/endpoints/filters/warning.go).
_WARNINGS_LENGTH_MAX = 4096
_WARNING_LENGTH_MAX = 256
# Characters that would end a header, or are not valid in text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def written_reply(
    status: int, renderer: Renderer, record: Record, warnings: Sequence[str] = ()
) -> Reply:
    """Reply to a write of one object; as the whole object where the form asked for fails."""
    try:
        body = renderer.one(record)
    except Exception:
        _log.exception("%s %s was written and cannot be shown", record.namespace, record.name)
        body = record.data
    if not warnings:
        return Reply(status=status, body=body + b"\n")
    return Reply(status=status, body=body + b"\n", headers=warning_headers(warnings))


def warning_headers(warnings: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the headers of warnings for a client."""
    return tuple(("Warning", f'299 - "{text}"') for text in _header_texts(warnings))


def deleted_reply(renderer: Renderer, records: Sequence[Record], version: int) -> Reply:
    """Reply to a delete of a collection; without the objects where rendering them fails."""
    try:
        body: Body = renderer.many(records, {"resourceVersion": str(version)})
        media_type = renderer.media_type
    except Exception:
        _log.exception("%d objects were deleted and cannot be shown", len(records))
        body, media_type = encode(success()) + b"\n", JSON
    return Reply(status=200, body=body, content_type=media_type)


def status_reply(error: StatusError) -> Reply:
    """Reply to a refused call."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.code == 401:
        headers = (("WWW-Authenticate", 'Bearer realm="moorage"'),)
    elif seconds := (error.details or {}).get("retryAfterSeconds"):
        headers = (("Retry-After", str(seconds)),)
    try:
        body = encode(error.body)
    except UnicodeEncodeError:
        # A message may repeat the client's bytes, which need not be text.
        body = encode(StatusError(error.code, error.reason, readable(error.message)).body)
    return Reply(status=error.code, body=body + b"\n", content_type=JSON, headers=headers)


def _header_texts(warnings: Sequence[str]) -> list[str]:
    """Return warnings in a form that headers can hold, each once."""
    found = list(dict.fromkeys(_CONTROL.sub(" ", readable(text)) for text in warnings))
    if sum(map(len, found)) > _WARNINGS_LENGTH_MAX:
        found = [text[:_WARNING_LENGTH_MAX] for text in found]
        found = found[: _WARNINGS_LENGTH_MAX // _WARNING_LENGTH_MAX]
    return [text.replace("\\", "\\\\").replace('"', '\\"') for text in found]
