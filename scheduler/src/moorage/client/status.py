"""Reading failure: from an answer with status >= 400, or a watch ERROR, to a typed exception."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from moorage.api.codec import NOT_JSON
from moorage.base.errors import ApiError, api_error
from moorage.client.transport import Answer, LineStream

_STATUS_BYTES_MAX = 1 << 20  # a guess: far above any Status
_RETRY_SECONDS_MAX = 60.0  # a guess: longer than a server under load asks for
_TEXT_BYTES_MAX = 512  # guess: enough of a proxy's HTML page to recognise it


class StatusCause(msgspec.Struct, frozen=True):
    """An entry of ``Status.details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """``Status.details``: the subject of the failure."""

    name: str = ""
    kind: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """``meta/v1 Status`` as far as a client acts on it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


_STATUS = msgspec.json.Decoder(Status)


def read_status(body: bytes) -> Status | None:
    """Decode a ``Status`` body; None if the bytes are no ``Status``."""
    try:
        return _STATUS.decode(body)
    except NOT_JSON:
        return None


def error_from_answer(answer: Answer) -> ApiError:
    """Build the exception for an answer whose status is 400 or more.

    Parameters
    ----------
    answer
        The answer; its body need not be a ``Status`` (a proxy may have written it).
    """
    retry_after = retry_after_seconds(answer.headers)
    status = read_status(answer.body)
    if status is None or not (status.message or status.reason):
        text = answer.body[:_TEXT_BYTES_MAX].decode("utf-8", "replace").strip()
        message = text or f"the server answered {answer.status} without a reason"
        return api_error(answer.status, "", message, retry_after_seconds=retry_after)
    return error_from_status(status, code=answer.status, retry_after=retry_after)


async def refuse_failed(stream: LineStream) -> None:
    """Read the answer of a stream that was not opened.

    Raises
    ------
    ApiError
        The status is 400 or more.
    """
    if stream.status >= 400:
        lines: list[bytes] = []
        size = 0
        async for line in stream:
            lines.append(line)
            size += len(line)
            if size > _STATUS_BYTES_MAX:
                break
        raise error_from_answer(Answer(stream.status, stream.headers, b"\n".join(lines)))


def error_from_status(
    status: Status, *, code: int = 0, retry_after: float | None = None
) -> ApiError:
    """Build the exception for a ``Status``; a `code` other than 0 replaces the code inside."""
    if retry_after is None and status.details and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    return api_error(
        code or status.code or 500, status.reason, status.message, retry_after_seconds=retry_after
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return ``Retry-After`` in seconds, a minute at most; None if absent or not a whole number.

    Notes
    -----
    The HTTP-date form is not read, as in kubernetes v1.36 client-go rest/with_retry.go. That client
    waits as long as it is told: a server could keep a binding under way for years.
    """
    text = headers.get("retry-after", "").strip()
    if not (text.isascii() and text.isdigit()):
        return None
    return min(float(text), _RETRY_SECONDS_MAX)


def too_large_resource_version(error: ApiError) -> bool:
    """Whether the server has not yet seen the resourceVersion asked for (504 Timeout).

    Notes
    -----
    Mirrors kubernetes v1.36 client-go tools/cache/reflector.go, which for servers before 1.17
    reads the message; the message has kept its wording, so reading the message serves all versions.
    """
    return error.code == 504 and "too large resource version" in error.message.lower()
