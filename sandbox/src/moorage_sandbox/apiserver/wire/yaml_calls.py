"""Calls with a YAML body, and answers to clients that accept YAML.

Place in the flow: `chain` converts such a call here on its way in and out, so all other modules see
JSON only. Patches have media types of their own and stay unchanged.
"""

from __future__ import annotations

import logging

import msgspec

from moorage.api.bounds import OF_BODY
from moorage.base.errors import DecodeError
from moorage.kinds.status import bad_request
from moorage_sandbox.apiserver.wire.bodies import check_length
from moorage_sandbox.apiserver.wire.negotiate import JSON, YAML, accepts_yaml
from moorage_sandbox.apiserver.wire.requests import Reply, Request

_log = logging.getLogger(__name__)

# YAML is written at about half a megabyte a second (2-core machine, 2026-11-22), and other calls
# wait meanwhile. Longer answers stay JSON, which every reader of YAML can read.
WRITTEN_BYTES_MAX = 1024 * 1024


def call_in_json(request: Request) -> Request:
    """Return a call in YAML with its body in JSON.

    Raises
    ------
    StatusError
        400: not YAML. 413: too large.
    """
    check_length(request.body)
    # Few clients send YAML, so the import of its library is put off until then.
    from moorage.api.yaml_text import read_one

    try:
        body = msgspec.json.encode(read_one(request.body, OF_BODY))
    except DecodeError as error:
        raise bad_request(f"yaml: {error}") from error
    headers = {**request.headers, "content-type": JSON}
    return msgspec.structs.replace(request, headers=headers, body=body)


def reply_in_yaml(request: Request, reply: Reply) -> Reply:
    """Return an answer in YAML if the client prefers YAML."""
    if not accepts_yaml(request.headers.get("accept", "")) or reply.content_type != JSON:
        return reply
    body = reply.body
    if not isinstance(body, bytes) or not body:
        return reply
    if len(body) <= WRITTEN_BYTES_MAX:
        from moorage.api.yaml_text import write_yaml

        try:
            body = write_yaml(msgspec.json.decode(body), sort_keys=True).encode()
        except Exception:
            # The call may have written something; its answer stays JSON, which is YAML, too.
            _log.exception("an answer cannot be written as YAML")
    return msgspec.structs.replace(reply, body=body, content_type=YAML)
