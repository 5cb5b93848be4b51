"""The call of an apply: its body and its field manager.

Place in the flow: read by `writing` before `managers` judges it. Messages follow kubernetes v1.36
apimachinery pkg/apis/meta/v1/validation and apiserver pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

import msgspec

from moorage.api.bounds import OF_BODY
from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, bad_request
from moorage_sandbox.apiserver.verbs.applying.managers import LAST_APPLIED
from moorage_sandbox.apiserver.verbs.write_options import MANAGER_LENGTH_MAX
from moorage_sandbox.apiserver.wire.bodies import Sent, decode_json
from moorage_sandbox.apiserver.wire.requests import Query, Request, readable


def read_configuration(request: Request) -> Sent:
    """Decode the body of an apply: YAML, of which JSON is a part.

    Raises
    ------
    StatusError
        400: not YAML, too deep or too many values. 413: too large.
    """
    try:
        sent = Sent(request.body, decode_json(request))
    except StatusError as error:
        if error.code != 400:
            raise
        sent = _read_yaml(request.body)
    metadata = sent.decoded.get("metadata") if isinstance(sent.decoded, dict) else None
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return sent


def _read_yaml(body: bytes) -> Sent:
    # Only clients other than kubectl send YAML, so the import of its parser is put off until then.
    from moorage.api.yaml_text import read_yaml

    repeated: list[str] = []
    try:
        documents = read_yaml(body, OF_BODY, repeated=repeated)
    except DecodeError as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if len(documents) > 1:
        raise bad_request("error decoding YAML: more than one document")
    return Sent(b"", documents[0] if documents else None, tuple(repeated))


def manager_name(request: Request, query: Query) -> str:
    """Return the field manager: the parameter, or the name in the User-Agent header."""
    agent = readable(request.headers.get("user-agent", "")).partition("/")[0]
    return query.text("fieldManager") or agent[:MANAGER_LENGTH_MAX] or "unknown"


def refresh_last_applied(new: Obj, config: Obj, manager: str) -> None:
    """Keep the annotation of kubectl's client-side apply true, in place on ``new``.

    Notes
    -----
    Source: kubernetes v1.36 apimachinery pkg/util/managedfields/internal/lastappliedupdater.go.
    A client-side apply that follows then knows the configuration of this apply.
    """
    annotations = (new["metadata"].get("annotations") or {}) if manager == "kubectl" else {}
    if LAST_APPLIED in annotations:
        text = msgspec.json.encode(config, order="sorted").decode() + "\n"
        new["metadata"]["annotations"] = annotations | {LAST_APPLIED: text}
