"""Calls whose body is YAML, and answers to clients that take it.

Place in the flow: `server` lets every call pass through here on its way in and out, so that all
behind it knows JSON only. Patches have media types of their own and stay as they are.
"""

from __future__ import annotations

import msgspec

from moorage.apiserver.bodies import BODY_LIMIT_BYTES
from moorage.apiserver.negotiate import JSON, YAML, accepts_yaml, content_type
from moorage.apiserver.requests import Reply, Request
from moorage.apiserver.status import bad_request, too_large

# YAML is written at about half a megabyte a second (2-core machine, 2026-11-22), and nobody else
# is answered meanwhile. Longer answers stay JSON, which every reader of YAML reads.
WRITTEN_BYTES_MAX = 1024 * 1024


def call_in_json(request: Request) -> Request:
    """Return a call with its body in JSON.

    Raises
    ------
    StatusError
        400: not YAML. 413: too large.
    """
    if request.method == "PATCH" or not request.body:
        return request
    if content_type(request.headers.get("content-type", "")) != YAML:
        return request
    if len(request.body) > BODY_LIMIT_BYTES:
        raise too_large(BODY_LIMIT_BYTES)
    # Few send YAML; the others need not wait for the import of its library.
    from moorage.apiserver.yaml_text import load

    try:
        body = msgspec.json.encode(load(request.body))
    except ValueError as error:
        raise bad_request(f"yaml: {error}") from error
    headers = {**request.headers, "content-type": JSON}
    return msgspec.structs.replace(request, headers=headers, body=body)


def reply_accepted(request: Request, reply: Reply) -> Reply:
    """Return an answer in the form its client likes best."""
    if not accepts_yaml(request.headers.get("accept", "")) or reply.content_type != JSON:
        return reply
    body = reply.body
    if not isinstance(body, bytes) or not body:
        return reply
    if len(body) <= WRITTEN_BYTES_MAX:
        from moorage.apiserver.yaml_text import dump

        body = dump(msgspec.json.decode(body))
    return msgspec.structs.replace(reply, body=body, content_type=YAML)
