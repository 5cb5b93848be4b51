"""OpenAPI version 2 in protobuf, without its content, for clients that accept nothing else.

Place in the flow: `server` answers with it where a client of ``/openapi/v2`` accepts no JSON.
kubectl asks for it when ``/openapi/v3`` lacks a kind, to learn whether the server checks fields.
After an error answer, kubectl would report that error and not the missing kind.
"""

from __future__ import annotations

from typing import Final

from moorage_sandbox.apiserver.documents.openapi import TITLE

OPENAPI_PROTOBUF_V1: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Media type of this document."""
_OPENAPI_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

_DESCRIPTION = "Paths and definitions are served as JSON, and by /openapi/v3."
_BYTES = 2
_LENGTH_MAX = 127


def takes_only_openapi_protobuf(path: str, accept: str) -> bool:
    """Whether a request accepts OpenAPI version 2 in protobuf and in no other form."""
    ranges = [text.strip().lower() for text in accept.split(",") if text.strip()]
    known = {OPENAPI_PROTOBUF_V1, _OPENAPI_PROTOBUF_OLD}
    return path.rstrip("/") == "/openapi/v2" and bool(ranges) and known.issuperset(ranges)


def openapi_frame(version: str) -> bytes:
    """Return the document with the server's version and its title, and no paths.

    Notes
    -----
    Field numbers of gnostic openapiv2/OpenAPIv2.proto: Document (swagger 1, info 2), Info
    (title 1, version 2, description 3).
    """
    info = _field(1, TITLE.encode()) + _field(2, version.encode())
    info += _field(3, _DESCRIPTION.encode())
    return _field(1, b"2.0") + _field(2, info)


def _field(number: int, value: bytes) -> bytes:
    """Encode text or a message; longer values would need a length of several bytes."""
    assert len(value) <= _LENGTH_MAX, value
    return bytes([number << 3 | _BYTES, len(value)]) + value
