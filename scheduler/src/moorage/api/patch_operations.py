"""Patches: operations of a JSON patch (RFC 6902), and merge patches (RFC 7386).

Each is a change of an object that a user can apply as it is.
"""

from __future__ import annotations

from typing import Any

Operation = dict[str, Any]
"""One operation: op, path, value."""


def put(path: str, value: Any) -> Operation:
    """Set a member of an object, whether or not it is there."""
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Remove a member, or an entry of a list."""
    return {"op": "remove", "path": path}


def escaped(key: str) -> str:
    """Return a key as a part of a path: ``example.com/gpu`` is ``example.com~1gpu``."""
    return key.replace("~", "~0").replace("/", "~1")


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
