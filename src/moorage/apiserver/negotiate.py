"""Which form of an object the client accepts, and which form its body has.

Forms: the object itself, a Table of rows to print (``kubectl get``), or metadata only. Bytes are
JSON, or YAML made of it (`yaml_calls`); a client that takes only protobuf is told 406.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from moorage.apiserver.status import not_acceptable

JSON = "application/json"
YAML = "application/yaml"
SPOKEN = (JSON, YAML)
"""Media types of bodies and answers."""
_META = "meta.k8s.io"
_AGGREGATED_FORM = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""Content type of discovery in one piece."""


class Form(Enum):
    """How objects are shown."""

    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


# `as=` of an Accept header -> form. The singular metadata form is also what watches ask for.
_FORMS = {
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


def accepted_form(accept: str, *, streamed: bool = False) -> Form:
    """Choose the first form served of those an Accept header names, best first.

    Parameters
    ----------
    accept
        The header.
    streamed
        For a watch, which is told in JSON only.

    Raises
    ------
    StatusError
        406: none of them is served.
    """
    if not accept:
        return Form.OBJECT
    ranges = [_media_range(text) for text in accept.split(",") if text.strip()]
    # Sorting is stable: equal preferences stay in the order sent.
    spoken = (JSON,) if streamed else SPOKEN
    for media_type, params, _ in sorted(ranges, key=lambda each: -each[2]):
        form = _form_of(media_type, params, spoken)
        if form is not None:
            return form
    raise not_acceptable(spoken)


def accepts_yaml(accept: str) -> bool:
    """Whether YAML is what a client likes best of what is served."""
    if YAML not in accept:
        return False
    ranges = [_media_range(text) for text in accept.split(",") if text.strip()]
    served = (each for each in sorted(ranges, key=lambda each: -each[2]) if _form_of(*each[:2]))
    return next(served, ("",))[0] == YAML


def accepts_aggregated(accept: str) -> bool:
    """Whether discovery in one piece is what a client likes best of what is served."""
    ranges = [_media_range(text) for text in accept.split(",") if text.strip()]
    for media_type, params, _ in sorted(ranges, key=lambda each: -each[2]):
        if media_type != JSON:
            continue
        wanted = params.get("as", "")
        if not wanted:
            return False
        if (wanted, params.get("g"), params.get("v")) == _AGGREGATED_FORM:
            return True
    return False


def content_type(header: str) -> str:
    """Return the media type of a Content-Type header, without parameters, lower case."""
    return header.partition(";")[0].strip().lower()


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
    if params.get("g") == _META and params.get("v") == "v1":
        return _FORMS.get(wanted)
    return None
