"""Content negotiation: the form of the answer that the client accepts, and the form of its body.

Forms: the object itself, a Table of rows to print (``kubectl get``), or metadata only. Bytes are
JSON, YAML made of it (`yaml_calls`), or protobuf (`protobuf`). Tables and custom resources have no
protobuf form; a client that accepts nothing else gets a 406.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

import msgspec

from moorage.kinds.status import not_acceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
SPOKEN = (JSON, YAML)
"""Media types of bodies and answers of custom resources."""
SPOKEN_BUILT_IN = (*SPOKEN, PROTOBUF)
"""Media types of bodies and answers of built-in kinds."""
_STREAMED = (JSON, PROTOBUF)
_META = "meta.k8s.io"
_METADATA_VERSIONS = ("v1",)
_TABLE_VERSIONS = ("v1", "v1beta1")
_AGGREGATED_FORM = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""Content type of aggregated discovery."""
OPENAPI_PROTOBUF = {
    version: f"application/com.github.proto-openapi.spec.v{version}.v1.0+protobuf"
    for version in (2, 3)
}
"""Content types of OpenAPI in protobuf, by version."""


class Form(Enum):
    """Forms of an object in an answer."""

    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


# `as=` of an Accept header -> form. Watches use the singular metadata form, too.
_FORMS = {
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


class Accepted(msgspec.Struct, frozen=True):
    """The best served form that a client accepts.

    Parameters
    ----------
    form
        Form of the object.
    media_type
        `JSON`, `YAML` or `PROTOBUF`.
    version
        Version of ``meta.k8s.io`` for a Table: ``v1`` or ``v1beta1``.
    """

    form: Form
    media_type: str = JSON
    version: str = "v1"


_AS_STORED = Accepted(Form.OBJECT)
# How many headers are remembered, and the longest such header (guesses: 64 KB together).
_REMEMBERED_HEADERS = 256
_REMEMBERED_LENGTH = 256


def negotiate(
    accept: str, *, streamed: bool = False, protobuf: bool = True, tables: bool = True
) -> Accepted:
    """Choose the first served form of an Accept header, best first.

    Parameters
    ----------
    accept
        The header.
    streamed
        For a watch, which has no YAML form.
    protobuf
        Whether the kind has a protobuf form.
    tables
        Whether the answer can be shown as a Table; a review cannot.

    Raises
    ------
    StatusError
        406: no form in the header is served.

    Notes
    -----
    apiserver v1.36 pkg/endpoints/handlers/negotiation/negotiate.go, and for custom resources
    apiextensions-apiserver pkg/apiserver/customresource_handler.go: objects in JSON and YAML only,
    metadata in protobuf too.
    """
    if not accept:
        return _AS_STORED
    if len(accept) <= _REMEMBERED_LENGTH:
        return _remembered(accept, streamed, protobuf, tables)
    return _negotiated(accept, streamed, protobuf, tables)


def _negotiated(accept: str, streamed: bool, protobuf: bool, tables: bool) -> Accepted:
    served = _STREAMED if streamed else SPOKEN_BUILT_IN
    for media_type, params in _preferences(accept):
        form = _form_of(media_type, params, served)
        if form is None or (form is Form.OBJECT and media_type == PROTOBUF and not protobuf):
            continue
        if form is Form.TABLE and not tables:
            continue
        version = "v1" if form is Form.OBJECT else params["v"]
        return Accepted(form, media_type if media_type in served else JSON, version)
    raise not_acceptable([f"{each};stream=watch" for each in served] if streamed else served)


# A client sends the same header with each call; refusals are not remembered.
_remembered = lru_cache(_REMEMBERED_HEADERS)(_negotiated)


def accepts_protobuf(accept: str) -> bool:
    """Whether a client prefers protobuf to JSON and YAML."""
    if PROTOBUF not in accept:
        return False
    for media_type, params in _preferences(accept):
        if _form_of(media_type, params, SPOKEN_BUILT_IN):
            return media_type == PROTOBUF
    return False


def accepts_yaml(accept: str) -> bool:
    """Whether a client prefers YAML to JSON."""
    if YAML not in accept:
        return False
    served = (each for each in _preferences(accept) if _form_of(*each))
    return next(served, ("",))[0] == YAML


def accepts_aggregated(accept: str) -> bool:
    """Whether a client prefers aggregated discovery to all other served forms."""
    for media_type, params in _preferences(accept):
        if media_type != JSON:
            continue
        wanted = params.get("as", "")
        if not wanted:
            return False
        if (wanted, params.get("g"), params.get("v")) == _AGGREGATED_FORM:
            return True
    return False


def accepts_openapi_protobuf(accept: str, version: int) -> bool:
    """Whether a client of a version of OpenAPI prefers protobuf to JSON.

    Notes
    -----
    kube-openapi pkg/handler and pkg/handler3: the older name of the type, with an @, is answered
    with the newer one.
    """
    for media_type, _ in _preferences(accept):
        if media_type.replace("@", ".") == OPENAPI_PROTOBUF[version]:
            return True
        if media_type in (JSON, "application/*", "*/*"):
            return False
    return False


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client takes an answer that is compressed with gzip."""
    return any(
        name == "gzip" and quality > 0
        for name, _, quality in map(_media_range, accept_encoding.split(","))
    )


def content_type(header: str) -> str:
    """Return the media type of a Content-Type header, without parameters, lower case."""
    return header.partition(";")[0].strip().lower()


def _preferences(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media ranges of a header, best first; equal ones in the order of the header."""
    ranges = [_media_range(text) for text in accept.split(",") if text.strip()]
    return [each[:2] for each in sorted(ranges, key=lambda each: -each[2])]


def _media_range(text: str) -> tuple[str, dict[str, str], float]:
    head, *rest = text.split(";")
    params = {}
    for part in rest:
        name, _, value = part.partition("=")
        params[name.strip().lower()] = value.strip()
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return head.strip().lower(), params, quality


def _form_of(
    media_type: str, params: dict[str, str], spoken: Sequence[str] = SPOKEN
) -> Form | None:
    if media_type in {"*/*", "application/*"}:
        return Form.OBJECT
    if media_type not in spoken:
        return None
    wanted = params.get("as", "")
    if not wanted:
        # Parameters without `as` (pretty=1, charset) do not change the form.
        return Form.OBJECT
    form = _FORMS.get(wanted)
    versions = _TABLE_VERSIONS if form is Form.TABLE else _METADATA_VERSIONS
    if params.get("g") != _META or params.get("v") not in versions:
        return None
    return None if form is Form.TABLE and media_type == PROTOBUF else form
