"""ResourceQuota: its rules and its row; `usage` gives the use of one object.

Mirrors kubernetes v1.36 pkg/apis/core/validation (ValidateResourceQuota).
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.kinds.cells import AGE, NAME, column
from moorage.kinds.fields import defaults, rules, unchanging
from moorage.kinds.kind import FieldError, Obj, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.quantities import COUNTS, check_amount, resource_name

_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
# Names without a slash that a quota may bound.
_POD_AMOUNTS = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_STANDARD = (
    _POD_AMOUNTS
    | COUNTS
    | {
        "requests.storage",
        "ephemeral-storage",
        "requests.ephemeral-storage",
        "limits.ephemeral-storage",
    }
)
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
# Scope -> the names without a slash that it allows; other scopes allow all resources of pods.
_OF_PODS = frozenset({"pods"}) | _POD_AMOUNTS
_SCOPED = {
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_ONLY_THERE = (
    *("BestEffort", "NotBestEffort", "Terminating", "NotTerminating"),
    "CrossNamespacePodAffinity",
)
_ONLY_THERE_DETAIL = (
    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(_HUGE_PAGES)


def _hard(hard: Json | None, field: str) -> list[FieldError]:
    errors = []
    for name, value in (hard or {}).items():
        where = f"{field}[{name}]"
        errors += resource_name(name, where)
        if "/" not in name and not _is_standard(name):
            errors.append(invalid(where, name, "must be a standard resource for quota"))
        errors += check_amount(name, value, where)
    return errors


def _scopes(spec: Json, field: str) -> list[FieldError]:
    where, scopes = f"{field}.scopes", list(spec.get("scopes") or ())
    errors = []
    for each in scopes:
        if each not in _SCOPES:
            errors.append(invalid(where, scopes, "unsupported scope"))
        errors += _check_scoped(each, spec, (where, scopes))
    return errors + [
        invalid(where, scopes, "conflicting scopes") for pair in _OPPOSITES if pair <= set(scopes)
    ]


def _selectors(spec: Json, field: str) -> list[FieldError]:
    """Check a selector of scopes; the errors name no place in its list, as upstream's."""
    where, selector = f"{field}.scopeSelector.matchExpressions", child(spec, "scopeSelector")
    errors, scopes = [], set[str]()
    for each in objects(selector, "matchExpressions"):
        scope = text(each, "scopeName")
        if scope not in _SCOPES:
            errors.append(invalid(f"{where}.scopeName", scope, "unsupported scope"))
        errors += _check_scoped(scope, spec, (where, selector))
        errors += _check_operator(each, where)
        scopes.add(scope)
    return errors + [
        invalid(where, spec.get("scopes"), "conflicting scopes")
        for pair in _OPPOSITES
        if pair <= scopes
    ]


def _check_scoped(scope: str, spec: Json, shown: tuple[str, Any]) -> list[FieldError]:
    """Check that a scope applies to every bounded resource."""
    known = _SCOPED.get(scope, _OF_PODS)
    return [
        invalid(*shown, "unsupported scope applied to resource")
        for name in child(spec, "hard")
        if scope in _SCOPES and _is_standard(name) and name not in known
    ]


def _check_operator(each: Json, where: str) -> list[FieldError]:
    scope, operator, values = text(each, "scopeName"), text(each, "operator"), each.get("values")
    errors = []
    if scope in _ONLY_THERE and operator != "Exists":
        errors.append(invalid(f"{where}.operator", operator, _ONLY_THERE_DETAIL))
    if operator not in _OPERATORS:
        errors.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        errors.append(required(f"{where}.values", detail))
    elif operator not in ("In", "NotIn") and values:
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        errors.append(invalid(f"{where}.values", values, detail))
    return errors


def _used(obj: Obj, *, limits: bool) -> str:
    used, hard = child(obj, "status", "used"), child(obj, "status", "hard")
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits") is limits
    )


KINDS = (
    ServedKind(
        resource=resources.RESOURCE_QUOTAS,
        acted_on_by="admission",
        columns=(
            NAME,
            column(
                "Request",
                lambda obj: _used(obj, limits=False),
                "What is used, of what may be requested or made",
            ),
            column(
                "Limit",
                lambda obj: _used(obj, limits=True),
                "What is used, of what may be set as limits",
            ),
            AGE,
        ),
        defaults=defaults(unset={"spec": {}, "status": {}}),
        rules=rules(("spec.hard", _hard), ("spec", _scopes), ("spec", _selectors)),
        change=unchanging("spec.scopes spec.scopeSelector"),
    ),
)
