"""The parameters of ``pods/log``, read and checked."""

from __future__ import annotations

import msgspec

from moorage.api.resources import ResourceType
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.kinds.kind import FieldError, forbidden, invalid
from moorage.kinds.status import bad_request
from moorage.kinds.status import invalid as invalid_object
from moorage_sandbox.apiserver.wire.requests import Query

_OPTIONS = ResourceType("", "v1", "PodLogOptions", "podlogoptions", "podlogoptions", True)


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a log that a call asks for.

    Parameters
    ----------
    follow
        Whether the log goes on until the container ends.
    previous
        Whether the log is that of the run before the present run.
    timestamps
        Whether each line begins with its time.
    since_ns
        Lines from this moment on, wall-clock nanoseconds.
    tail
        So many lines from the end; None for all.
    limit_bytes
        At most so many bytes; None for all.
    """

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_ns: int = 0
    tail: int | None = None
    limit_bytes: int | None = None


def read_log_options(query: Query, pod_name: str, now_ns: int) -> LogOptions:
    """Read the parameters of a call.

    Raises
    ------
    StatusError
        400: a value cannot be read. 422: a value is out of range, or two contradict each other.

    Notes
    -----
    Rules and messages: kubernetes v1.36 pkg/apis/core/validation, ValidatePodLogOptions.
    """
    tail, limit = query.whole("tailLines"), query.whole("limitBytes")
    seconds, moment = query.whole("sinceSeconds"), query.text("sinceTime")
    errors: list[FieldError] = []
    if tail is not None and tail < 0:
        errors.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and moment:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(forbidden("", text))
    elif seconds is not None and seconds < 1:
        errors.append(invalid("sinceSeconds", seconds, "must be greater than 0"))
    if errors:
        raise invalid_object(_OPTIONS, pod_name, errors)
    since_ns = 0 if seconds is None else now_ns - seconds * NS_PER_SECOND
    return LogOptions(
        follow=query.flag("follow"),
        previous=query.flag("previous"),
        timestamps=query.flag("timestamps"),
        since_ns=_moment_ns(moment) if moment else since_ns,
        tail=tail,
        limit_bytes=limit,
    )


def _moment_ns(text: str) -> int:
    try:
        return parse_rfc3339(text)
    except (ValueError, OverflowError) as error:
        raise bad_request(f"sinceTime: {text[:60]!r} is no time of RFC 3339") from error
