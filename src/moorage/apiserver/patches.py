"""The three patch types: JSON patch, merge patch, strategic merge patch.

Each is a function of (object, patch) to a new object; `writing` treats the result like a PUT.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer

from moorage.apiserver.kind import Kind, Obj
from moorage.apiserver.negotiate import content_type
from moorage.apiserver.patch_strategic import strategic_merge
from moorage.apiserver.status import StatusError, bad_request, unsupported_media_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_ACCEPTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


def patch_type(header: str) -> str:
    """Return which patch type a Content-Type header names.

    Raises
    ------
    StatusError
        415: none served here; server-side apply is named, because clients may ask for it.
    """
    name = content_type(header)
    if name.startswith("application/apply-patch"):
        raise StatusError(
            415,
            "UnsupportedMediaType",
            "server-side apply is not served here; use client-side apply (kubectl apply without "
            "--server-side) or one of the patch types: " + ", ".join(_ACCEPTED),
        )
    if name not in _ACCEPTED:
        raise unsupported_media_type(_ACCEPTED)
    return name


def apply_patch(obj: Obj, patch: Any, type_name: str, kind: Kind) -> Any:
    """Return the patched object; ``obj`` may be changed or shared and must not be used again.

    Raises
    ------
    StatusError
        400: not a patch of this type. 422: a JSON patch that does not fit the object.
    """
    if type_name == JSON_PATCH:
        return _json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request(f"a patch of type {type_name} must be a JSON object")
    if type_name == MERGE_PATCH:
        return merge_patch(obj, patch)
    try:
        return strategic_merge(obj, patch, kind)
    except (ValueError, TypeError) as error:
        raise bad_request(f"the patch does not fit the object: {error}") from error


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386): null deletes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _json_patch(obj: Obj, patch: Any) -> Any:
    if not isinstance(patch, list):
        raise bad_request("a JSON patch must be a list of operations")
    try:
        return jsonpatch.JsonPatch(patch).apply(obj, in_place=True)
    except (jsonpatch.InvalidJsonPatch, TypeError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        # The words of kube-apiserver, with the reason put behind them.
        raise StatusError(
            422,
            "Invalid",
            f"the server rejected our request due to an error in our request: {error}",
            details={},
        ) from error
