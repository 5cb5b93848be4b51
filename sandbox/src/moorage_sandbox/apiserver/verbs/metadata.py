"""The server's part of ``metadata``: names, uid, times, owners of fields.

The kinds check whether a name is valid.
"""

from __future__ import annotations

from moorage.base.clock import Clock, rfc3339
from moorage.base.ids import name_suffix, new_uid
from moorage.base.rng import Random
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, bad_request
from moorage_sandbox.apiserver.catalog import Target

# Names may be 63 letters where they become labels; the prefix is cut so that the suffix fits
# (apiserver v1.36 pkg/storage/names).
_PREFIX_LENGTH_MAX = 63 - 5

# Digits of the largest resourceVersion of upstream, which is an unsigned number of 64 bits.
_DIGITS_MAX = 20

# Written by the server only; the client's values are replaced.
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_NEVER_SENT = (*_SYSTEM_FIELDS, "resourceVersion", "selfLink")


def agree_with_path(obj: Obj, target: Target) -> None:
    """Fill in the namespace from the path and check that names agree, in place.

    Raises
    ------
    StatusError
        400: the object names another namespace or another name than the path.
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace") or ""
    if target.served.kind.resource.namespaced:
        if namespace and namespace != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        meta["namespace"] = target.namespace
    elif not namespace:
        meta.pop("namespace", None)
    if target.name:
        name = meta.get("name") or ""
        if not name:
            raise bad_request("name must be provided")
        if name != target.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({target.name})"
            )


def drop_system_fields(meta: Obj) -> None:
    """Drop the fields of a new object that the server alone writes, in place."""
    for field in _NEVER_SENT:
        meta.pop(field, None)


def stamp_new(obj: Obj, clock: Clock, rng: Random) -> None:
    """Give a new object its uid and creation time, in place."""
    meta = obj["metadata"]
    meta["uid"] = new_uid(rng)
    meta["creationTimestamp"] = rfc3339(clock.now_ns())


def generate_name(prefix: str, rng: Random) -> str:
    """Return a name made of a prefix and five random letters."""
    return prefix[:_PREFIX_LENGTH_MAX] + name_suffix(rng)


def keep_system_fields(new: Obj, old: Obj) -> None:
    """Copy the fields that only the server writes, in place on ``new``."""
    meta, before = new["metadata"], old["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        meta.pop(field, None)
    for field in (*_SYSTEM_FIELDS, "generateName"):
        # A changed value stays, for validation to refuse it; an absent value counts as unchanged.
        if not meta.get(field) and field in before:
            meta[field] = before[field]
    meta.pop("selfLink", None)
    meta.pop("managedFields", None)


def object_version(meta: Obj) -> int:
    """Return the version that an object in a call carries; 0 where it carries none.

    Notes
    -----
    apiserver v1.36 pkg/storage/api_object_versioner.go, ObjectResourceVersion: "0" is no version.
    A text that is no number is a 500 there; here it is a version that no object has, -1.
    """
    text = meta.get("resourceVersion") or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return int(text) if is_number else -bool(text)


def check_never_stored(obj: Obj) -> None:
    """Refuse to create from an object that was read: its resourceVersion says that it exists.

    Raises
    ------
    StatusError
        500.

    Notes
    -----
    apiserver v1.36 pkg/storage/errors.go, ErrResourceVersionSetOnCreate: an error without a reason,
    hence 500. kubectl clears the version before it creates.
    """
    if object_version(obj["metadata"]):
        text = "resourceVersion should not be set on objects to be created"
        raise StatusError(500, "", text)
