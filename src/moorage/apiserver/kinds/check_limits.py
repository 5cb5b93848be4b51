"""Rules, defaults and columns of ResourceQuota and LimitRange.

Place in the flow: their rows in `group_core`. Mirrors kubernetes v1.36 pkg/apis/core/validation
(ValidateResourceQuota, ValidateLimitRange), pkg/apis/core/v1/defaults.go and pkg/printers.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import qualified_name_faults
from moorage.apiserver.kind import (
    Column,
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
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
_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
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
    """Spell a quota's amounts as the API server does."""
    map_values(attach(obj, "spec"), "hard", canonical_quantity)
    for key in ("hard", "used"):
        map_values(attach(obj, "status"), key, canonical_quantity)


def default_limit_range(obj: Json) -> None:
    """Let a container's defaults follow from each other: limit from max, request from limit."""
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
        errors += [invalid(where, name, fault) for fault in qualified_name_faults(name)]
        errors += check_quantity(value, where)
    scopes = list(spec.get("scopes") or ())
    errors += [
        not_supported("spec.scopes", each, _SCOPES) for each in scopes if each not in _SCOPES
    ]
    for pair in _OPPOSITES:
        if pair <= set(scopes):
            errors.append(invalid("spec.scopes", scopes, "conflicting scopes"))
    for index, each in enumerate(objects(spec, "scopeSelector", "matchExpressions")):
        errors += _check_scope(each, f"spec.scopeSelector.matchExpressions[{index}]")
    if old is not None:
        for key in ("scopes", "scopeSelector"):
            if spec.get(key) != child(old, "spec").get(key):
                errors.append(immutable(f"spec.{key}", spec.get(key)))
    return errors


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
        errors += [invalid(f"{where}.type", kind, f) for f in qualified_name_faults(kind)]
        if kind in seen:
            errors.append(duplicate(f"{where}.type", kind))
        seen.add(kind)
        for part in _PARTS:
            for name, value in child(item, part).items():
                errors += check_quantity(value, f"{where}.{part}[{name}]")
            if kind == "Pod" and part.startswith("default") and child(item, part):
                detail = "may not be specified when `type` is 'Pod'"
                errors.append(forbidden(f"{where}.{part}", detail))
        errors += _check_order(item, where)
    return errors


# Of two parts of an item the first may not be above the second.
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
