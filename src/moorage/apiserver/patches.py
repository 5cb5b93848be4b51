"""The three patch types: JSON patch, merge patch, strategic merge patch.

Each is a function of (object, patch) to a new object; `writing` treats the result like a PUT.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from moorage.api.bounds import check_bounds
from moorage.apiserver.bodies import BODY_LIMIT_BYTES, OF_BODY
from moorage.apiserver.negotiate import content_type
from moorage.apiserver.patch_strategic import strategic_merge
from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import (
    StatusError,
    bad_request,
    too_large,
    unsupported_media_type,
)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# kube-apiserver's maxJSONPatchOperations.
_OPERATIONS_MAX = 10_000
# A stored object names its fields once more in `managedFields`, some levels deeper.
_OF_PATCHED = msgspec.structs.replace(OF_BODY, depth_max=OF_BODY.depth_max + 8)
_encode = msgspec.json.Encoder().encode

_ACCEPTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)


def patch_type(header: str, kind: ServedKind) -> str:
    """Return the patch type of a Content-Type header.

    Raises
    ------
    StatusError
        415: no patch type that is served.
    """
    name = content_type(header)
    accepted = [each for each in _ACCEPTED if each != STRATEGIC_PATCH]
    accepted.append(APPLY_PATCH)
    if kind.shape.merges_strategically:
        accepted.append(STRATEGIC_PATCH)
    if name not in accepted:
        raise unsupported_media_type(accepted)
    return name


def apply_patch(
    obj: Obj, patch: Any, type_name: str, kind: ServedKind, *, small: bool = False
) -> Any:
    """Return the patched object; ``obj`` may be changed or shared and must not be used again.

    Parameters
    ----------
    obj, patch
        The object and the decoded patch.
    type_name
        Media type of the patch.
    kind
        Kind of the object.
    small
        Object and patch are small as documents (`bodies.are_small`), so a merge is within bounds.

    Raises
    ------
    StatusError
        400: not a patch of this type, or a patch that makes the object too deep or too large. 422:
        a JSON patch that does not fit the object.
    """
    if type_name == JSON_PATCH:
        patched = json_patch(obj, patch)
    elif not isinstance(patch, dict):
        raise bad_request(f"a patch of type {type_name} must be a JSON object")
    elif type_name == MERGE_PATCH:
        patched = merge_patch(obj, patch)
    else:
        try:
            patched = strategic_merge(obj, patch, kind.resource)
        except (ValueError, TypeError) as error:
            raise bad_request(f"the patch does not fit the object: {error}") from error
    if small and type_name != JSON_PATCH:
        return patched
    try:
        # A series of small patches could make an object that no body may contain.
        check_bounds(patched, _OF_PATCHED)
    except DecodeError as error:
        raise bad_request(f"the object as patched is {error}") from error
    return patched


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


def _apply_operations(obj: Any, patch: list[Any]) -> Any:
    """Apply operations one by one, with a bound on the size of all copies.

    Notes
    -----
    Both bounds are kube-apiserver's (v1.36 endpoints/handlers/patch.go). Without them, a few
    operations that copy the object into itself would double it each time.
    """
    if len(patch) > _OPERATIONS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {_OPERATIONS_MAX}"
        raise StatusError(413, "RequestEntityTooLarge", f"{text}, got {len(patch)}")
    # Parses all operations, so that nothing is applied of a malformed patch.
    jsonpatch.JsonPatch(patch)
    copied = 0
    for operation in patch:
        if operation.get("op") == "copy":
            source = jsonpointer.JsonPointer(operation.get("from")).resolve(obj)
            copied += len(_encode(source))
            if copied > BODY_LIMIT_BYTES:
                raise too_large(BODY_LIMIT_BYTES)
        obj = jsonpatch.JsonPatch([operation]).apply(obj, in_place=True)
    return obj


def json_patch(obj: Obj, patch: Any) -> Any:
    """Apply a JSON patch (RFC 6902); ``obj`` must not be used again.

    Raises
    ------
    StatusError
        400: not a JSON patch. 413: the result is too large. 422: it does not fit the object.
    """
    if not isinstance(patch, list):
        raise bad_request("a JSON patch must be a list of operations")
    try:
        return _apply_operations(obj, patch)
    except (jsonpatch.InvalidJsonPatch, TypeError, AttributeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        # The words of kube-apiserver, followed by the reason without the object it quotes.
        why = str(error).partition(" in {")[0]
        raise StatusError(
            422,
            "Invalid",
            f"the server rejected our request due to an error in our request: {why}",
            details={},
        ) from error
