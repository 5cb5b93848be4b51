"""Quantities, and resource lists: canonical form, values in nano units, names, and their rules.

Resource lists are in pods, nodes, quotas and classes. Mirrors kubernetes v1.36
pkg/apis/core/helper/helpers.go, and pkg/apis/core/validation/validation.go
(ValidateResourceQuantityValue, validateResourceName and its neighbours,
validateResourceRequirements).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.names import (
    is_extended_resource,
    is_hugepages_resource,
    is_native_resource,
    is_pod_level_resource,
    qualified_name_faults,
)
from moorage.api.quantity import NANO, canonical, parse_quantity
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.tree import Json, child

Amounts = dict[str, int]
"""Nano units by the name of the resource."""

NOT_NEGATIVE = "must be greater than or equal to 0"
NOT_ZERO = "must be greater than zero"
NANO_PER_MILLI = NANO // 1000


def canonical_quantity(value: Any) -> Any:
    """Canonical form of a quantity, rounded up to a thousandth; an invalid quantity unchanged.

    Notes
    -----
    Defaulting leaves an invalid quantity alone, because validation names its field.
    """
    try:
        nano = parse_quantity(value)
        if nano % NANO_PER_MILLI:
            return canonical(f"{-(-nano // NANO_PER_MILLI)}m")
        return canonical(value)
    except (ValueError, TypeError):
        return value


def nano_of(value: Any) -> int | None:
    """Value of a quantity in nano units, or None when it cannot be read."""
    try:
        return parse_quantity(value)
    except (ValueError, TypeError):
        return None


def amounts(listed: Json) -> Amounts:
    """Return a resource list in nano units; invalid quantities are left out."""
    return {name: nano for name, each in listed.items() if (nano := nano_of(each)) is not None}


def add(total: Amounts, more: Amounts) -> None:
    """Add amounts to a total, in place."""
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def check_quantity(value: Any, field: str) -> list[FieldError]:
    """Check one quantity: readable and not negative."""
    nano = nano_of(value)
    if nano is None:
        return [invalid(field, value, "quantities must be numbers with a known suffix")]
    return [invalid(field, str(value), NOT_NEGATIVE)] if nano < 0 else []


def check_size(value: Any, field: str) -> list[FieldError]:
    """Check one quantity: readable and more than zero."""
    errors = check_quantity(value, field)
    return errors or ([] if nano_of(value) else [invalid(field, str(value), NOT_ZERO)])


COUNTABLE_RESOURCES = frozenset(
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
COUNTS = COUNTABLE_RESOURCES | {"services.loadbalancers", "services.nodeports"}
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
