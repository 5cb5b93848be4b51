"""The rules of the names and amounts of resources, in pods, nodes, quotas and classes.

Mirrors kubernetes v1.36 pkg/apis/core/helper/helpers.go, and pkg/apis/core/validation/validation.go
(validateResourceName and its neighbours, validateResourceRequirements).
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.names import (
    is_extended_resource,
    is_hugepages_resource,
    is_native_resource,
    is_pod_level_resource,
    qualified_name_faults,
)
from moorage.api.quantity import NANO
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.tree import Json, child
from moorage.kinds.values.quantities import check_quantity, nano_of

COUNTED = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)
"""Kinds that a quota may count by their bare name, besides ``count/<resource>``."""
COUNTS = COUNTED | {"services.loadbalancers", "services.nodeports"}
"""Names without a slash whose amounts are integers."""
_OF_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD = (
    COUNTS
    | {f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in _OF_CONTAINERS}
    | {"storage", "requests.storage"}
)
_HUGE_PAGES = "hugepages-"

NameRule = Callable[[str, str], list[FieldError]]
"""The errors of a resource's name; the second text is its path."""


def is_overcommittable(name: str) -> bool:
    """Whether requests of a resource may be lower than its limit."""
    return is_native_resource(name) and not is_hugepages_resource(name)


def resource_name(name: str, field: str) -> list[FieldError]:
    """Check the name of a resource of any object."""
    faults = qualified_name_faults(name)
    standard = name in _STANDARD or name.removeprefix("requests.").startswith(_HUGE_PAGES)
    if not faults and "/" not in name and not standard:
        faults = ["must be a standard resource type or fully qualified"]
    return [invalid(field, name, fault) for fault in faults]


def container_resource_name(name: str, field: str) -> list[FieldError]:
    """Check the name of a resource that a container requests."""
    errors = resource_name(name, field)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_hugepages_resource(name):
            errors.append(invalid(field, name, "must be a standard resource for containers"))
    elif not is_native_resource(name) and not is_extended_resource(name):
        errors.append(invalid(field, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name(name: str, field: str) -> list[FieldError]:
    """Check the name of a resource that a pod requests as a whole."""
    errors = resource_name(name, field)
    if not errors and not is_pod_level_resource(name):
        return [not_supported(field, name, ("cpu", "memory", "hugepages-"))]
    return errors


def check_amount(name: str, value: object, field: str) -> list[FieldError]:
    """Check the amount of a resource; extended resources and objects are counted in integers."""
    errors = check_quantity(value, field)
    if errors or not (name in COUNTS or is_extended_resource(name)):
        return errors
    whole = (nano_of(value) or 0) % NANO == 0
    return [] if whole else [invalid(field, str(value), "must be an integer")]


def check_requirements(resources: Json, field: str, name_rule: NameRule) -> list[FieldError]:
    """Check requests and limits: names, amounts, and each request against its limit."""
    errors = []
    for which in ("limits", "requests"):
        for name, value in child(resources, which).items():
            place = f"{field}.{which}[{name}]"
            errors += name_rule(name, place) + check_amount(name, value, place)
            errors += _check_pages(name, value, place)
            if which == "requests":
                errors += _check_request(name, resources, field)
    names = {*child(resources, "requests"), *child(resources, "limits")}
    if any(is_hugepages_resource(name) for name in names) and not names & {"cpu", "memory"}:
        errors.append(forbidden(field, "HugePages require cpu or memory"))
    return errors


def check_limits(limits: Json | None, field: str) -> list[FieldError]:
    """Check amounts that upstream checks as if they were the limits of a container: overhead."""
    return check_requirements({"limits": limits}, field, container_resource_name)


def _check_pages(name: str, value: object, field: str) -> list[FieldError]:
    """Check that an amount of huge pages is a number of whole pages."""
    nano = nano_of(value)
    if not is_hugepages_resource(name) or nano is None:
        return []
    page = nano_of(name.removeprefix(_HUGE_PAGES)) or 0
    # Upstream looks at whole bytes: fractions count as one more.
    if page > 0 and page % NANO == 0 and -(-nano // NANO) % (page // NANO) == 0:
        return []
    return [invalid(field, str(value), f"{value} is not positive integer multiple of {name}")]


def _check_request(name: str, resources: Json, field: str) -> list[FieldError]:
    """Compare a request with its limit; some resources need a limit, equal to the request."""
    value, limits = child(resources, "requests")[name], child(resources, "limits")
    exact = not is_overcommittable(name)
    if name not in limits:
        detail = "Limit must be set for non overcommitable resources"
        return [required(f"{field}.limits", detail)] if exact else []
    asked, limit = nano_of(value), nano_of(limits[name])
    if asked is None or limit is None or asked == limit or (asked < limit and not exact):
        return []
    bound = "equal to" if exact else "less than or equal to"
    detail = f"must be {bound} {name} limit of {limits[name]}"
    return [invalid(f"{field}.requests", str(value), detail)]
