"""Rules, defaults and columns of ResourceQuota and LimitRange.

Place in the flow: their rows in `group_core`. Mirrors kubernetes v1.36 pkg/apis/core/validation
(ValidateResourceQuota, ValidateLimitRange), pkg/apis/core/v1/defaults.go and pkg/printers.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import is_extended_resource, qualified_name_faults
from moorage.apiserver.kind import (
    Column,
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.cells import AGE, NAME, age, name_of
from moorage.apiserver.kinds.check_resources import check_quantity, nano_of
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.pod_defaults import canonical_quantity
from moorage.apiserver.kinds.tree import Json, attach, child, map_values, objects, text

QUOTA_COLUMNS = (
    NAME,
    Column("Request", description="What is used, of what may be requested or made"),
    Column("Limit", description="What is used, of what may be set as limits"),
    AGE,
)
LIMIT_RANGE_COLUMNS = (
    NAME,
    Column("Created At", description="When the object was created"),
)
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
# Names without a slash that a quota may bound, by unit of their amounts.
_POD_AMOUNTS = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_OTHER_AMOUNTS = frozenset(
    {
        "requests.storage",
        "ephemeral-storage",
        "requests.ephemeral-storage",
        "limits.ephemeral-storage",
    }
)
_COUNTS = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
# Scope -> the names without a slash that it allows; other scopes allow all resources of pods.
_OF_PODS = frozenset({"pods"}) | _POD_AMOUNTS
_SCOPED = {
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_LIMIT_TYPES = frozenset({"Container", "PersistentVolumeClaim", "Pod"})
_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_NANO = 10**9
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def quota_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a quota's row."""
    status = child(obj, "status")
    used, hard = child(status, "used"), child(status, "hard")
    shown = [(name, f"{name}: {used.get(name, '0')}/{hard[name]}") for name in sorted(hard)]
    limits = [cell for name, cell in shown if name.startswith("limits")]
    requests = [cell for name, cell in shown if not name.startswith("limits")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now_ns)]


def limit_range_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a limit range's row."""
    return [name_of(obj), text(obj, "metadata", "creationTimestamp")]


def default_quota(obj: Json) -> None:
    """Set a quota's amounts to the API server's canonical form."""
    map_values(attach(obj, "spec"), "hard", canonical_quantity)
    for key in ("hard", "used"):
        map_values(attach(obj, "status"), key, canonical_quantity)


def default_limit_range(obj: Json) -> None:
    """Derive a container's missing defaults: limit from max, request from limit."""
    for item in objects(attach(obj, "spec"), "limits"):
        for part in _PARTS:
            map_values(item, part, canonical_quantity)
        if text(item, "type") != "Container":
            continue
        for part, source in (("default", "max"), ("defaultRequest", "default")):
            item[part] = child(item, source) | child(item, part)
        item["defaultRequest"] = child(item, "min") | item["defaultRequest"]
        for part in ("default", "defaultRequest"):
            if not item[part]:
                del item[part]


def check_quota(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a quota."""
    spec = child(new, "spec")
    errors = []
    for name, value in child(spec, "hard").items():
        where = f"spec.hard[{name}]"
        errors += _check_quota_name(name, where)
        errors += check_quantity(value, where) or _check_whole(name, value, where)
    scopes = list(spec.get("scopes") or ())
    for each in scopes:
        if each not in _SCOPES:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        errors += _check_scoped(each, spec, ("spec.scopes", scopes))
    for pair in _OPPOSITES:
        if pair <= set(scopes):
            errors.append(invalid("spec.scopes", scopes, "conflicting scopes"))
    for index, each in enumerate(objects(spec, "scopeSelector", "matchExpressions")):
        errors += _check_scope(each, f"spec.scopeSelector.matchExpressions[{index}]")
        shown = ("spec.scopeSelector.matchExpressions", child(spec, "scopeSelector"))
        errors += _check_scoped(text(each, "scopeName"), spec, shown)
    if old is not None:
        for key in ("scopes", "scopeSelector"):
            if spec.get(key) != child(old, "spec").get(key):
                errors.append(immutable(f"spec.{key}", spec.get(key)))
    return errors


def _is_standard(name: str) -> bool:
    return name in _POD_AMOUNTS | _OTHER_AMOUNTS | _COUNTS or name.startswith(_HUGE_PAGES)


def _check_quota_name(name: str, where: str) -> list[FieldError]:
    faults = qualified_name_faults(name)
    if faults:
        return [invalid(where, name, fault) for fault in faults]
    if "/" in name or _is_standard(name):
        return []
    return [
        invalid(where, name, "must be a standard resource type or fully qualified"),
        invalid(where, name, "must be a standard resource for quota"),
    ]


def _check_whole(name: str, value: Any, where: str) -> list[FieldError]:
    nano = nano_of(value)
    counted = name in _COUNTS or is_extended_resource(name)
    if counted and nano is not None and nano % _NANO:
        return [invalid(where, str(value), "must be an integer")]
    return []


def _check_scoped(scope: str, spec: Json, shown: tuple[str, Any]) -> list[FieldError]:
    """Check that a scope applies to every bounded resource."""
    if scope not in _SCOPES:
        return []
    known = _SCOPED.get(scope, _OF_PODS)
    detail = "unsupported scope applied to resource"
    return [
        invalid(*shown, detail)
        for name in child(spec, "hard")
        if _is_standard(name) and name not in known
    ]


def _check_scope(each: Json, where: str) -> list[FieldError]:
    scope, operator, values = text(each, "scopeName"), text(each, "operator"), each.get("values")
    errors = []
    if scope not in _SCOPES:
        errors.append(not_supported(f"{where}.scopeName", scope, _SCOPES))
    if operator not in _OPERATORS:
        errors.append(not_supported(f"{where}.operator", operator, _OPERATORS))
    elif operator in ("In", "NotIn") and not values:
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        errors.append(FieldError("FieldValueRequired", f"{where}.values", "", detail))
    elif operator not in ("In", "NotIn") and values:
        detail = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"
        errors.append(invalid(f"{where}.values", values, detail))
    return errors


def check_limit_range(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a limit range."""
    errors = []
    seen: set[str] = set()
    for index, item in enumerate(objects(new, "spec", "limits")):
        where, kind = f"spec.limits[{index}]", text(item, "type")
        faults = qualified_name_faults(kind)
        if not faults and "/" not in kind and kind not in _LIMIT_TYPES:
            faults = ["must be a standard limit type or fully qualified"]
        errors += [invalid(f"{where}.type", kind, fault) for fault in faults]
        if kind in seen:
            errors.append(duplicate(f"{where}.type", kind))
        seen.add(kind)
        for part in _PARTS:
            for name, value in child(item, part).items():
                errors += check_quantity(value, f"{where}.{part}[{name}]")
            if kind == "Pod" and part.startswith("default") and child(item, part):
                detail = "may not be specified when `type` is 'Pod'"
                errors.append(forbidden(f"{where}.{part}", detail))
        bounded = child(item, "min") | child(item, "max")
        if kind == "PersistentVolumeClaim" and "storage" not in bounded:
            errors.append(required(f"{where}.limits", _NO_STORAGE))
        errors += _check_order(item, where) + _check_ratios(item, where)
    return errors


_NO_STORAGE = "either minimum or maximum storage value is required, but neither was provided"


def _check_ratios(item: Json, where: str) -> list[FieldError]:
    """Check the ratio of limit to request: at least 1, and possible within the bounds."""
    errors = []
    for name, value in child(item, "maxLimitRequestRatio").items():
        field = f"{where}.maxLimitRequestRatio[{name}]"
        ratio = nano_of(value)
        least, most = (nano_of(child(item, part).get(name)) for part in ("min", "max"))
        if ratio is None:
            continue
        if ratio < _NANO:
            errors.append(invalid(field, value, f"ratio {value} is less than 1"))
        if least and most is not None and ratio / _NANO > most / least:
            detail = f"ratio {value} is greater than max/min = {most / least:f}"
            errors.append(invalid(field, value, detail))
    return errors


# Pairs of parts of an item: the first may not exceed the second.
_ORDER = (
    ("min", "max", "min", "min value {0} is greater than max value {1}"),
    ("min", "default", "default", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "default value {0} is greater than max value {1}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "min value {0} is greater than default request value {1}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "default request value {0} is greater than max value {1}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
    ),
)


def _check_order(item: Json, where: str) -> list[FieldError]:
    errors = []
    for low, high, blamed, detail in _ORDER:
        for name in sorted(set(child(item, low)) & set(child(item, high))):
            least, most = item[low][name], item[high][name]
            small, large = nano_of(least), nano_of(most)
            if small is not None and large is not None and small > large:
                value, field = item[blamed][name], f"{where}.{blamed}[{name}]"
                errors.append(invalid(field, value, detail.format(least, most)))
    return errors
