"""Makes replies of what a call came to; what has been written is never told as a failure.

Place in the flow: `server` comes here at the end of a call. Once a write has taken effect, an error
in showing it (a column that fails, a text that is no header) must not become the answer 500:
the client would take the write for refused.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from moorage.apiserver.negotiate import JSON
from moorage.apiserver.record import Record
from moorage.apiserver.render import Renderer, encode
from moorage.apiserver.requests import Body, Reply, readable
from moorage.apiserver.status import StatusError, success

_log = logging.getLogger(__name__)

# Bounds of all warnings of an answer, and of each where that is exceeded, characters
# (kubernetes v1.36 apiserver pkg/endpoints/filters/warning.go).
_WARNINGS_LENGTH_MAX = 4096
_WARNING_LENGTH_MAX = 256
# Characters that would end a header, or are none of a text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def written_reply(
    status: int, renderer: Renderer, record: Record, warnings: Sequence[str] = ()
) -> Reply:
    """Answer a write of one object; shown whole where the form asked for cannot be made."""
    try:
        body = renderer.one(record)
    except Exception:
        _log.exception("%s %s was written and cannot be shown", record.namespace, record.name)
        body = record.data
    headers = tuple(("Warning", f'299 - "{text}"') for text in _header_texts(warnings))
    return Reply(status=status, body=body + b"\n", headers=headers)


def deleted_reply(renderer: Renderer, records: Sequence[Record], version: int) -> Reply:
    """Answer a delete of a collection; without the objects where they cannot be shown."""
    try:
        body: Body = renderer.many(records, {"resourceVersion": str(version)})
        media_type = renderer.media_type
    except Exception:
        _log.exception("%d objects were deleted and cannot be shown", len(records))
        body, media_type = encode(success()) + b"\n", JSON
    return Reply(status=200, body=body, content_type=media_type)


def status_reply(error: StatusError) -> Reply:
    """Answer a refusal."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.code == 401:
        headers = (("WWW-Authenticate", 'Bearer realm="moorage"'),)
    elif seconds := (error.details or {}).get("retryAfterSeconds"):
        headers = (("Retry-After", str(seconds)),)
    try:
        body = encode(error.body)
    except UnicodeEncodeError:
        # A message may repeat what was sent, and that need not be text.
        body = encode(StatusError(error.code, error.reason, readable(error.message)).body)
    return Reply(status=error.code, body=body + b"\n", content_type=JSON, headers=headers)


def _header_texts(warnings: Sequence[str]) -> list[str]:
    """Return warnings as they can stand in headers, each once."""
    found = list(dict.fromkeys(_CONTROL.sub(" ", readable(text)) for text in warnings))
    if sum(map(len, found)) > _WARNINGS_LENGTH_MAX:
        found = [text[:_WARNING_LENGTH_MAX] for text in found]
        found = found[: _WARNINGS_LENGTH_MAX // _WARNING_LENGTH_MAX]
    return [text.replace("\\", "\\\\").replace('"', '\\"') for text in found]
