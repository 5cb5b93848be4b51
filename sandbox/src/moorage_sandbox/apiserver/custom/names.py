"""Check that the names of a definition are free within its group.

Place in the flow: `moorage_sandbox.apiserver.custom.definition` writes the answer into the
condition ``NamesAccepted``. Mirrors kubernetes v1.36 apiextensions-apiserver
pkg/controller/status/naming_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.resources import RESOURCES
from moorage.kinds.kind import Context, Obj

_PLURAL = "customresourcedefinitions"


def name_conflicts(obj: Obj, ctx: Context) -> tuple[str, str] | None:
    """Return (reason, message) of the first conflict, None when every name is free."""
    spec = obj["spec"]
    names, group = spec.get("names") or {}, spec.get("group")
    words, kinds = set(), set()
    for other in _others(obj, ctx):
        words |= set(_words(other))
        kinds |= {other.get("kind"), other.get("listKind")}
    for resource in RESOURCES:
        if resource.group == group:
            words |= {resource.plural, resource.singular, *resource.short_names}
            kinds |= {resource.kind, f"{resource.kind}List"}
    for key, reason in (("plural", "PluralConflict"), ("singular", "SingularConflict")):
        if names.get(key) in words:
            return reason, f'"{names[key]}" is already in use'
    for short in names.get("shortNames") or ():
        if short in words:
            return "ShortNamesConflict", f'"{short}" is already in use'
    for key, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        if names.get(key) in kinds:
            return reason, f'"{names[key]}" is already in use'
    return None


def _others(obj: Obj, ctx: Context) -> Iterator[Obj]:
    """Yield the accepted names of the other definitions of the group."""
    for other in ctx.stored_objects(_PLURAL):
        if other["metadata"]["name"] == obj["metadata"].get("name"):
            continue
        if other["spec"]["group"] == obj["spec"].get("group"):
            yield other.get("status", {}).get("acceptedNames") or {}


def _words(names: Obj) -> Iterator[str]:
    yield from (names[key] for key in ("plural", "singular") if names.get(key))
    yield from names.get("shortNames") or ()
