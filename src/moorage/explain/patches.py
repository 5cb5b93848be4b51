"""Changed pods: a change is a JSON patch, so that a user can apply exactly what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jsonpatch

from moorage.api.codec import from_dict, to_dict
from moorage.api.pod import Pod

Operation = dict[str, Any]
"""One operation of RFC 6902: op, path, value."""


def put(path: str, value: Any) -> Operation:
    """Set a member of an object, whether or not it is there."""
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Remove a member, or an entry of a list."""
    return {"op": "remove", "path": path}


def escaped(key: str) -> str:
    """Return a key as a part of a path: ``example.com/gpu`` is ``example.com~1gpu``."""
    return key.replace("~", "~0").replace("/", "~1")


def patched(pod: Pod, operations: Sequence[Operation]) -> Pod:
    """Return a pod with a patch applied."""
    return from_dict(Pod, jsonpatch.JsonPatch(operations).apply(to_dict(pod)))
