"""JSON patches (RFC 6902), with kube-apiserver's bounds.

Place in the flow: a client sends such a patch, or a mutating admission policy computes one.
"""

from __future__ import annotations

from typing import Any, Final

import jsonpatch
import jsonpointer
import msgspec

from moorage.api.bounds import BODY_LIMIT_BYTES
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, bad_request, too_large

# kube-apiserver's maxJSONPatchOperations.
_OPERATIONS_MAX: Final = 10_000
_encode = msgspec.json.Encoder().encode


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
