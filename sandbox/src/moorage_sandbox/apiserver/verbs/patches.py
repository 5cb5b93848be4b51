"""The three patch types: JSON patch, merge patch, strategic merge patch.

Each is a function of (object, patch) to a new object; `writing` treats the result like a PUT.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.bounds import OF_BODY, check_bounds
from moorage.api.patch_operations import merge_patch
from moorage.base.errors import DecodeError
from moorage.kinds.json_patch import json_patch
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import bad_request, unsupported_media_type
from moorage_sandbox.apiserver.verbs.patch_strategic import strategic_merge
from moorage_sandbox.apiserver.wire.negotiate import content_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# A stored object names its fields once more in `managedFields`, some levels deeper.
_OF_PATCHED = msgspec.structs.replace(OF_BODY, depth_max=OF_BODY.depth_max + 8)

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
