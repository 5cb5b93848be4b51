"""Stopping and stepping the time of a sandbox: the calls of ``moorage time``.

Like `loading` a path that Kubernetes does not have. Only administrators may use it, because it
moves the clock of the whole cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moorage.base.aio import SPEED_MAX
from moorage.base.clock import rfc3339_micro
from moorage.kinds.status import StatusError, bad_request, method_not_allowed
from moorage_sandbox.apiserver.rbac.authorizer import MASTERS
from moorage_sandbox.apiserver.wire.render import encode
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User

if TYPE_CHECKING:
    from moorage.base.timeline import Timeline

TIME_PATH = "/moorage.dev/v1/time"

# Longest step: a year at once would take longer than a person waits.
_SECONDS_MAX = 366 * 86_400


class Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of a call.

    Parameters
    ----------
    speed
        Virtual seconds in a real second; 0 stops time.
    step
        Stop after so many seconds; None to run on.
    """

    speed: float
    step: float | None = None


def time_answer(timeline: Timeline | None, request: Request, user: User) -> Reply:
    """Return the state of the clock, after the change in the body if there is one.

    Raises
    ------
    StatusError
        400: the change is malformed. 403: not an administrator. 405: neither GET nor POST. 409: the
        time of this cluster cannot be changed.
    """
    if request.method not in ("GET", "POST"):
        raise method_not_allowed()
    if timeline is None:
        text = "the time of this cluster cannot be changed; start it with `moorage up --speed 0`"
        raise StatusError(409, "Conflict", text)
    if request.method == "POST":
        if MASTERS not in user.groups:
            raise StatusError(403, "Forbidden", f"only {MASTERS} may change the time")
        _change(timeline, request.body)
    state = timeline.state()
    body = {"now": rfc3339_micro(state.now_ns), "speed": state.speed}
    if state.end_ns is not None:
        body["until"] = rfc3339_micro(state.end_ns)
    return Reply(status=200, body=encode(body) + b"\n")


def _change(timeline: Timeline, body: bytes) -> None:
    try:
        change = msgspec.json.decode(body, type=Change)
    except msgspec.DecodeError as error:
        raise bad_request(f"not a change of time: {error}") from error
    stopping = change.speed == 0 and change.step is None
    if not stopping and not 1 <= change.speed <= SPEED_MAX:
        raise bad_request(f"speed: must be 0, or between 1 and {SPEED_MAX:g}")
    if change.step is None:
        timeline.run(change.speed)
    elif 0 < change.step <= _SECONDS_MAX:
        timeline.advance_for(change.step, change.speed)
    else:
        raise bad_request(f"step: must be more than 0 and at most {_SECONDS_MAX} seconds")
