"""Safe access to parts of objects that a client sent.

Place in the flow: used by defaulting, validation and columns. `schema.check` refuses wrong JSON
types before these steps. Null, however, is a legal value anywhere and means absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]


def child(obj: Mapping[str, Any], *path: str) -> Json:
    """Return the object at this path, or an empty one that is not attached."""
    value: Any = obj
    for key in path:
        value = value.get(key)
        if value is None:
            return {}
    return value  # type: ignore[no-any-return]


def text(obj: Mapping[str, Any], *path: str) -> str:
    """Return the string at this path, or an empty one."""
    found = _member(obj, path)
    return found if isinstance(found, str) else ""


def number(obj: Mapping[str, Any], *path: str) -> int:
    """Return the integer at this path, or 0."""
    found = _member(obj, path)
    return found if isinstance(found, int) else 0


def name_or_prefix(obj: Json) -> str:
    """Return the name of an object, or the prefix of the name that the server will make."""
    return text(obj, "metadata", "name") or text(obj, "metadata", "generateName")


def items(obj: Mapping[str, Any], *path: str) -> list[Any]:
    """Return the list at this path, or an empty one that is not attached."""
    found = _member(obj, path)
    return found if isinstance(found, list) else []


def strings(obj: Mapping[str, Any], *path: str) -> list[str]:
    """Return the list of strings at this path."""
    found = _member(obj, path)
    if not found:
        return []
    return [entry for entry in found if isinstance(entry, str)]


def objects(obj: Mapping[str, Any], *path: str) -> list[Json]:
    """Return the list of objects at this path; nulls in the list are left out."""
    found = _member(obj, path)
    # Most lists of most objects are absent; a pod asks for dozens of them.
    if not found:
        return []
    return [entry for entry in found if isinstance(entry, dict)]


def _member(obj: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = obj
    for key in path:
        value = value.get(key)
        if value is None:
            return None
    return value


def attach(obj: Json, key: str) -> Json:
    """Return the object under a key, attaching an empty one where there is none."""
    found = obj.get(key)
    if found is None:
        found = obj[key] = {}
    return found


def fill(obj: Json, defaults: Mapping[str, Any]) -> None:
    """Set the keys that are absent or null."""
    for key, value in defaults.items():
        if obj.get(key) is None:
            obj[key] = value


def fill_empty(obj: Json, defaults: Mapping[str, Any]) -> None:
    """Set the keys that are absent, null or empty strings: fields without a pointer in Go."""
    for key, value in defaults.items():
        if obj.get(key) in (None, ""):
            obj[key] = value


def containers(spec: Mapping[str, Any]) -> Iterator[Json]:
    """Every container of a pod spec: init, regular, ephemeral."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from objects(spec, key)


def condition(obj: Mapping[str, Any], kind: str) -> Json | None:
    """Return the status condition of this type, or None."""
    for entry in objects(obj, "status", "conditions"):
        if entry.get("type") == kind:
            return entry
    return None


def put_condition(status: Json, condition: Json, now: str) -> None:
    """Put a condition into a status, in place; its time changes only with its value."""
    conditions = status.setdefault("conditions", [])
    since = {"lastTransitionTime": now}
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"] and old.get("lastTransitionTime"):
                since = {"lastTransitionTime": old["lastTransitionTime"]}
            conditions[index] = condition | since
            return
    conditions.append(condition | since)


def put_finalizer(obj: Json, finalizer: str) -> bool:
    """Give an object a finalizer, in place; return whether it was missing."""
    finalizers = attach(obj, "metadata").setdefault("finalizers", [])
    if finalizer in finalizers:
        return False
    finalizers.append(finalizer)
    return True
