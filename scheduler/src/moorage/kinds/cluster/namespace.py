"""Namespace: created with a finalizer that waits for its contents to be deleted."""

from __future__ import annotations

from typing import Final

from moorage.api import resources
from moorage.api.names import dns_label_faults, qualified_name_faults
from moorage.api.resources import ResourceType
from moorage.kinds.cells import AGE, NAME, column
from moorage.kinds.fields import defaults, rules, selectable
from moorage.kinds.kind import Context, FieldError, Obj, invalid
from moorage.kinds.served import Part, ServedKind
from moorage.kinds.tree import Json, attach, items, text

PERMANENT: Final = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that admission keeps (kubernetes v1.36 admission/namespace/lifecycle)."""


def _default_label(obj: Json) -> None:
    """Set the name as a label, so that selectors can find the namespace."""
    name = text(obj, "metadata", "name")
    if name:
        attach(attach(obj, "metadata"), "labels")["kubernetes.io/metadata.name"] = name


def _prepare(obj: Json, ctx: Context, resource: ResourceType) -> None:
    spec = attach(obj, "spec")
    found = spec.get("finalizers") or []
    if "kubernetes" not in found:
        spec["finalizers"] = [*found, "kubernetes"]


def _take_finalizers(stored: Json, sent: Json) -> None:
    attach(stored, "spec")["finalizers"] = items(sent, "spec", "finalizers")


def _keep_finalizers(new: Obj, old: Obj, ctx: Context) -> None:
    """Keep the finalizers of the contents: only the subresource ``finalize`` changes them."""
    _take_finalizers(new, old)


_OWN_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _finalizers(names: list[str] | None, where: str) -> list[FieldError]:
    """Check the finalizers of the contents (ValidateNamespace in v1.36)."""
    return [error for name in names or () for error in _finalizer(name, where)]


def _finalizer(name: str | None, where: str) -> list[FieldError]:
    """Check the name of a finalizer (ValidateFinalizerName in v1.36)."""
    name = name or ""
    faults = qualified_name_faults(name)
    if not faults and "/" not in name and name not in _OWN_FINALIZERS:
        faults = ["name is neither a standard finalizer name nor is it fully qualified"]
    return [invalid(where, name, fault) for fault in faults]


def _check_part(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check the new finalizers, each by its place (ValidateNamespaceFinalizeUpdate in v1.36)."""
    names = enumerate(items(new, "spec", "finalizers"))
    return [error for at, name in names for error in _finalizer(name, f"spec.finalizers[{at}]")]


def _check_phase(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check that the phase fits the deletion (ValidateNamespaceStatusUpdate in v1.36)."""
    deleted = "deletionTimestamp" in new["metadata"]
    expected = "Terminating" if deleted else "Active"
    phase = text(new, "status", "phase")
    if phase == expected:
        return []
    when = "not empty" if deleted else "empty"
    fault = f"may only be '{expected}' if `deletionTimestamp` is {when}"
    return [invalid("status.Phase", phase, fault)]


KINDS = (
    ServedKind(
        resource=resources.NAMESPACES,
        acted_on_by="the server, which empties a deleted one",
        columns=(NAME, column("Status", "status.phase", "Active or Terminating"), AGE),
        defaults=defaults(_default_label, unset={"spec": {}}, empty={"status.phase": "Active"}),
        on_create=_prepare,
        on_update=_keep_finalizers,
        fields=selectable("status.phase"),
        name_rule=dns_label_faults,
        rules=rules(("spec.finalizers", _finalizers)),
        check_status=_check_phase,
        parts={"finalize": Part(take=_take_finalizers, check=_check_part)},
    ),
)
