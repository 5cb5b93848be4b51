"""Role, ClusterRole and their bindings; `apiserver.rbac` of the sandbox applies them to calls.

Mirrors kubernetes v1.36 pkg/apis/rbac/{v1/defaults.go,validation/validation.go}.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults
from moorage.kinds.cells import AGE, CREATED_AT, NAME, column, reference, wide
from moorage.kinds.fields import Rule, each, if_present, name_rule, needed, rules, unchanging
from moorage.kinds.kind import FieldError, Obj, invalid, not_supported, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, objects, strings, text
from moorage.kinds.values.name_rules import path_segment_name
from moorage.kinds.values.selectors import check_label_selector

_GROUP = "rbac.authorization.k8s.io"


def _default_groups(obj: Json) -> None:
    role = obj.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        role["apiGroup"] = _GROUP
    for subject in objects(obj, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _GROUP


def _rule(rule: Json, where: str, *, namespaced: bool) -> list[FieldError]:
    errors = []
    if not strings(rule, "verbs"):
        errors.append(required(f"{where}.verbs", "verbs must contain at least one value"))
    paths, parts = strings(rule, "nonResourceURLs"), ("apiGroups", "resources")
    if not paths:
        for key, noun in zip(parts, ("api group", "resource"), strict=True):
            if not strings(rule, key):
                detail = f"resource rules must supply at least one {noun}"
                errors.append(required(f"{where}.{key}", detail))
        return errors
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        errors.append(invalid(f"{where}.nonResourceURLs", paths, detail))
    if any(strings(rule, key) for key in (*parts, "resourceNames")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        errors.append(invalid(f"{where}.nonResourceURLs", paths, detail))
    return errors


_ONE_SELECTOR = "at least one clusterRoleSelector required if aggregationRule is non-nil"
_aggregation = rules(
    ("clusterRoleSelectors", needed(_ONE_SELECTOR)),
    ("clusterRoleSelectors", each(check_label_selector)),
)


def _among(*allowed: str) -> Rule:
    """Return the rule of a text out of a closed list; an absent text is shown as null."""
    return lambda value, where: (
        [] if (value or "") in allowed else [not_supported(where, value, allowed)]
    )


def _subject(subject: Json, where: str, *, namespaced: bool) -> list[FieldError]:
    errors = [] if text(subject, "name") else [required(f"{where}.name")]
    kind, group = text(subject, "kind"), text(subject, "apiGroup")
    if kind == "ServiceAccount":
        errors += name_rule(dns_subdomain_faults)(subject.get("name"), f"{where}.name")
        errors += _among("")(group, f"{where}.apiGroup")
        if not namespaced and not text(subject, "namespace"):
            errors.append(required(f"{where}.namespace"))
        return errors
    if kind in ("User", "Group"):
        return errors + _among(_GROUP)(group, f"{where}.apiGroup")
    return errors + _among("ServiceAccount", "User", "Group")(kind, f"{where}.kind")


def _subjects(kind: str) -> Any:
    def listed(obj: Obj) -> str:
        found = [each for each in objects(obj, "subjects") if each.get("kind") == kind]
        pairs = [(text(each, "namespace"), text(each, "name")) for each in found]
        return ", ".join(f"{home}/{name}" if home else name for home, name in pairs)

    return listed


def _role(resource: resources.ResourceType, *, namespaced: bool) -> ServedKind:
    return ServedKind(
        resource=resource,
        acted_on_by="authorization",
        created_by_put=True,
        grants_rights=True,
        columns=(NAME, CREATED_AT),
        name_rule=path_segment_name,
        rules=rules(
            ("rules", each(partial(_rule, namespaced=namespaced))),
            ("aggregationRule", if_present(_aggregation)),
        ),
    )


def _binding(resource: resources.ResourceType, *kinds: str, namespaced: bool) -> ServedKind:
    return ServedKind(
        resource=resource,
        acted_on_by="authorization",
        created_by_put=True,
        grants_rights=True,
        columns=(
            NAME,
            column("Role", lambda obj: reference(obj, "roleRef"), "The role that is granted"),
            AGE,
            wide("Users", _subjects("User"), "Users it is granted to"),
            wide("Groups", _subjects("Group"), "Groups it is granted to"),
            wide(
                "ServiceAccounts",
                _subjects("ServiceAccount"),
                "Service accounts it is granted to",
            ),
        ),
        defaults=_default_groups,
        name_rule=path_segment_name,
        rules=rules(
            ("roleRef.apiGroup", _among(_GROUP)),
            ("roleRef.kind", _among(*kinds)),
            ("roleRef.name", name_rule(path_segment_name, empty="required")),
            ("subjects", each(partial(_subject, namespaced=namespaced))),
        ),
        change=unchanging(
            "roleRef", lambda field, value: invalid(field, value, "cannot change roleRef")
        ),
    )


KINDS = (
    _role(resources.ROLES, namespaced=True),
    _role(resources.CLUSTER_ROLES, namespaced=False),
    _binding(resources.ROLE_BINDINGS, "ClusterRole", "Role", namespaced=True),
    _binding(resources.CLUSTER_ROLE_BINDINGS, "ClusterRole", namespaced=False),
)
