"""Calls whose body is protobuf, and answers to clients that prefer it.

Place in the flow: `moorage_sandbox.apiserver.chain` converts such a call here on its way in and
out, so that all other parts know JSON only. Lists and watches are written by `rendering`.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from moorage.kinds.status import bad_request, unsupported_media_type
from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.wire.bodies import check_length
from moorage_sandbox.apiserver.wire.negotiate import (
    JSON,
    PROTOBUF,
    SPOKEN,
    accepts_protobuf,
)
from moorage_sandbox.apiserver.wire.requests import Reply, Request

_log = logging.getLogger(__name__)

_OPTIONS: Final = ("v1", "DeleteOptions")
# (API version, kind) whose messages have been built; see `is_first`.
_prepared: set[tuple[str, str]] = set()


def kind_of_body(method: str, addressed: tuple[str, str]) -> tuple[str, str]:
    """Return the (API version, kind) of a body that does not name its own.

    Parameters
    ----------
    method
        Of the call.
    addressed
        (API version, kind) that the path addresses.
    """
    return _OPTIONS if method == "DELETE" else addressed


def has_message(kind: tuple[str, str]) -> bool:
    """Whether objects of an (API version, kind) have a protobuf form."""
    return facts.message_of(*kind) is not None


def is_first(request: Request, kind: tuple[str, str]) -> bool:
    """Whether a call is the first in protobuf about objects of an (API version, kind).

    Importing the runtime takes 120 ms, and the messages of a kind take 30 (2-core machine,
    2026-11-28).
    """
    headers = request.headers
    if PROTOBUF not in headers.get("accept", "") and PROTOBUF not in headers.get(
        "content-type", ""
    ):
        return False
    return kind not in _prepared and has_message(kind)


def prepare(kind: tuple[str, str]) -> None:
    """Import the runtime, and build the messages of an (API version, kind) that has them."""
    if kind in _prepared:
        return
    from moorage_sandbox.apiserver.protobuf.runtime import message_class

    message = facts.message_of(*kind)
    if message is not None:
        message_class(message)
        _prepared.add(kind)


def call_from_protobuf(request: Request, default: tuple[str, str]) -> Request:
    """Return a call in protobuf with its body in JSON.

    Parameters
    ----------
    request
        A call with a body in protobuf.
    default
        (API version, kind) of a body that does not name its own.

    Raises
    ------
    StatusError
        400: not such an object. 413: too large. 415: the kind has no protobuf form.
    """
    check_length(request.body)
    # Clients that speak JSON need not wait for the import of the runtime.
    from moorage_sandbox.apiserver.protobuf.codec import ProtobufError
    from moorage_sandbox.apiserver.protobuf.envelope import NoMessageError, read_object

    if not has_message(default):
        raise unsupported_media_type(SPOKEN)
    prepare(default)
    try:
        body = msgspec.json.encode(read_object(request.body, default))
    except NoMessageError as error:
        raise bad_request(str(error)) from error
    except ProtobufError as error:
        what = f"the object provided is unrecognized (must be of type {default[1]})"
        raise bad_request(f"{what}: {error}") from error
    headers = {**request.headers, "content-type": JSON}
    return msgspec.structs.replace(request, headers=headers, body=body)


def reply_in_protobuf(request: Request, reply: Reply) -> Reply:
    """Return an answer in protobuf if the client prefers protobuf and the kind has such a form."""
    body = reply.body
    if reply.content_type != JSON or not isinstance(body, bytes) or not body:
        return reply
    if not accepts_protobuf(request.headers.get("accept", "")):
        return reply
    try:
        written = _written(body)
    except Exception:
        # The call may have written something; most clients that prefer protobuf read JSON, too.
        _log.exception("%s %s is answered in JSON", request.method, request.path)
        return reply
    if written is None:
        return reply
    return msgspec.structs.replace(reply, body=written, content_type=PROTOBUF)


def _written(body: bytes) -> bytes | None:
    """Return a JSON document in protobuf; None for a kind without such a form."""
    obj = msgspec.json.decode(body)
    if not isinstance(obj, dict) or not has_message(
        (obj.get("apiVersion", ""), obj.get("kind", ""))
    ):
        return None
    from moorage_sandbox.apiserver.protobuf.envelope import write_object

    return write_object(obj)
