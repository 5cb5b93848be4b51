"""Rules of roles and bindings.

Place in the flow: part of the validation of the group ``rbac.authorization.k8s.io``. Mirrors
kubernetes v1.36 pkg/apis/rbac/validation/validation.go and pkg/apis/rbac/v1/defaults.go.
"""

from __future__ import annotations

from moorage.apiserver.kind import FieldError, invalid, not_supported, required
from moorage.apiserver.kinds.name_rules import path_segment_name
from moorage.apiserver.kinds.tree import Json, child, objects, strings, text

GROUP = "rbac.authorization.k8s.io"


def default_binding(obj: Json) -> None:
    """Set the default API groups of roles and subjects, in place."""
    reference = obj.get("roleRef")
    if isinstance(reference, dict) and not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in objects(obj, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def check_role(new: Json, old: Json | None) -> list[FieldError]:
    """Check a role of a namespace."""
    del old
    return _check_rules(new, namespaced=True)


def check_cluster_role(new: Json, old: Json | None) -> list[FieldError]:
    """Check a role of the cluster."""
    del old
    errors = _check_rules(new, namespaced=False)
    rule = new.get("aggregationRule")
    if isinstance(rule, dict) and not objects(rule, "clusterRoleSelectors"):
        where = "aggregationRule.clusterRoleSelectors"
        errors.append(
            required(
                where, "at least one clusterRoleSelector required if aggregationRule is non-nil"
            )
        )
    return errors


def check_role_binding(new: Json, old: Json | None) -> list[FieldError]:
    """Check a binding within a namespace."""
    return _check_binding(new, old, ("ClusterRole", "Role"), namespaced=True)


def check_cluster_role_binding(new: Json, old: Json | None) -> list[FieldError]:
    """Check a binding for the whole cluster."""
    return _check_binding(new, old, ("ClusterRole",), namespaced=False)


def _check_rules(role: Json, *, namespaced: bool) -> list[FieldError]:
    errors = []
    for index, rule in enumerate(objects(role, "rules")):
        where = f"rules[{index}]"
        if not strings(rule, "verbs"):
            errors.append(required(f"{where}.verbs", "verbs must contain at least one value"))
        paths = strings(rule, "nonResourceURLs")
        if paths:
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(f"{where}.nonResourceURLs", paths, why))
            if strings(rule, "apiGroups") or strings(rule, "resources"):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(f"{where}.nonResourceURLs", paths, why))
            continue
        if not strings(rule, "apiGroups"):
            why = "resource rules must supply at least one api group"
            errors.append(required(f"{where}.apiGroups", why))
        if not strings(rule, "resources"):
            why = "resource rules must supply at least one resource"
            errors.append(required(f"{where}.resources", why))
    return errors


def _check_binding(
    new: Json, old: Json | None, kinds: tuple[str, ...], *, namespaced: bool
) -> list[FieldError]:
    reference = child(new, "roleRef")
    errors = []
    if text(reference, "apiGroup") != GROUP:
        errors.append(not_supported("roleRef.apiGroup", reference.get("apiGroup"), [GROUP]))
    if text(reference, "kind") not in kinds:
        errors.append(not_supported("roleRef.kind", reference.get("kind"), kinds))
    name = text(reference, "name")
    if not name:
        errors.append(required("roleRef.name"))
    errors += [invalid("roleRef.name", name, fault) for fault in path_segment_name(name) if name]
    for index, subject in enumerate(objects(new, "subjects")):
        errors += _check_subject(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and old.get("roleRef") != new.get("roleRef"):
        errors.append(invalid("roleRef", new.get("roleRef"), "cannot change roleRef"))
    return errors


def _check_subject(subject: Json, where: str, *, namespaced: bool) -> list[FieldError]:
    errors = []
    if not text(subject, "name"):
        errors.append(required(f"{where}.name"))
    kind, group = text(subject, "kind"), text(subject, "apiGroup")
    if kind == "ServiceAccount":
        if group:
            errors.append(not_supported(f"{where}.apiGroup", group, [""]))
        if not namespaced and not text(subject, "namespace"):
            errors.append(required(f"{where}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{where}.apiGroup", group, [GROUP]))
    else:
        errors.append(not_supported(f"{where}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return errors
