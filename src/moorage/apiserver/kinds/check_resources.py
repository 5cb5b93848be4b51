"""Rules of requests and limits.

Place in the flow: part of the validation of pods, nodes, volumes and claims. Mirrors kubernetes
v1.36 pkg/apis/core/validation/validation.go, ValidateResourceRequirements and its neighbours.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import (
    is_extended_resource,
    is_hugepages_resource,
    is_native_resource,
    is_pod_level_resource,
    qualified_name_faults,
)
from moorage.api.quantity import parse_quantity
from moorage.apiserver.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.pod_defaults import aggregate_nano
from moorage.apiserver.kinds.tree import Json, child, objects, text

NOT_NEGATIVE = "must be greater than or equal to 0"
NOT_ZERO = "must be greater than zero"

_NANO = 10**9
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
# Only these resources may have a request below their limit; for all others both are equal.
_OVERCOMMITTABLE = frozenset({"cpu", "memory", "ephemeral-storage"})


def nano_of(value: Any) -> int | None:
    """Value of a quantity in nano units, or None when it cannot be read."""
    try:
        return parse_quantity(value)
    except (ValueError, TypeError):
        return None


def check_quantity(value: Any, field: str) -> list[FieldError]:
    """Check one quantity: readable and not negative."""
    nano = nano_of(value)
    if nano is None:
        return [invalid(field, value, "quantities must be numbers with a known suffix")]
    return [invalid(field, str(value), NOT_NEGATIVE)] if nano < 0 else []


def check_resource_list(amounts: Json, field: str) -> list[FieldError]:
    """Check a map of resource names to quantities, as nodes have them."""
    errors = []
    for name, value in amounts.items():
        where = f"{field}[{name}]"
        faults = qualified_name_faults(name)
        errors += [invalid(where, name, fault) for fault in faults]
        errors += check_quantity(value, where) or _check_whole(name, value, where)
    return errors


def check_container_resources(
    container: Json, field: str, claims: frozenset[str]
) -> list[FieldError]:
    """Check the requests, limits and claims of a container."""
    resources = child(container, "resources")
    where = f"{field}.resources"
    errors = []
    for index, claim in enumerate(objects(resources, "claims")):
        name = text(claim, "name")
        place = f"{where}.claims[{index}]"
        if not name:
            errors.append(required(place))
        elif name not in claims:
            detail = "must be one of the names in pod.spec.resourceClaims"
            errors.append(FieldError("FieldValueNotFound", place, name, detail))
    for which in ("limits", "requests"):
        for name, value in child(resources, which).items():
            place = f"{where}.{which}[{name}]"
            errors += _check_container_resource(name, place)
            errors += check_quantity(value, place) or _check_whole(name, value, place)
    return errors + _check_pairs(resources, where)


def _check_container_resource(name: str, field: str) -> list[FieldError]:
    faults = qualified_name_faults(name)
    if faults:
        return [invalid(field, name, fault) for fault in faults]
    if "/" not in name:
        if name in _CONTAINER_RESOURCES or is_hugepages_resource(name):
            return []
        return [invalid(field, name, "must be a standard resource for containers")]
    if not is_native_resource(name) and not is_extended_resource(name):
        return [invalid(field, name, "doesn't follow extended resource name standard")]
    return []


def _check_whole(name: str, value: Any, field: str) -> list[FieldError]:
    nano = nano_of(value)
    if nano is None or not is_extended_resource(name):
        return []
    return [invalid(field, str(value), "must be an integer")] if nano % _NANO else []


def _check_pairs(resources: Json, field: str) -> list[FieldError]:
    """Compare requests with limits, and huge pages with the rest."""
    requests, limits = child(resources, "requests"), child(resources, "limits")
    errors = []
    for name, value in requests.items():
        asked, limit = nano_of(value), nano_of(limits.get(name))
        if asked is None:
            continue
        if name not in limits:
            if name not in _OVERCOMMITTABLE:
                detail = "Limit must be set for non overcommitable resources"
                errors.append(required(f"{field}.limits", detail))
            continue
        if limit is None:
            continue
        if name not in _OVERCOMMITTABLE and asked != limit:
            detail = f"must be equal to {name} limit of {limits[name]}"
            errors.append(invalid(f"{field}.requests", str(value), detail))
        elif asked > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            errors.append(invalid(f"{field}.requests", str(value), detail))
    named = {*requests, *limits}
    if any(is_hugepages_resource(name) for name in named) and not named & {"cpu", "memory"}:
        errors.append(forbidden(field, "HugePages require cpu or memory"))
    return errors


def check_pod_level_resources(spec: Json, field: str) -> list[FieldError]:
    """Check pod-level requests and limits, also against the values of the containers."""
    resources = child(spec, "resources")
    if not resources:
        return []
    errors = []
    if resources.get("claims"):
        detail = "claims may not be set for Resources at pod-level"
        errors.append(forbidden(f"{field}.claims", detail))
    for which in ("limits", "requests"):
        for name, value in child(resources, which).items():
            place = f"{field}.{which}[{name}]"
            if not is_pod_level_resource(name):
                errors.append(not_supported(place, name, ("cpu", "memory", "hugepages-")))
            errors += check_quantity(value, place)
    errors += _check_pairs(resources, field)
    asked = aggregate_nano(spec, "requests")
    for name, value in child(resources, "requests").items():
        nano = nano_of(value)
        if nano is not None and asked.get(name, 0) > nano:
            detail = "must be greater than or equal to aggregate container requests"
            errors.append(invalid(f"{field}.requests[{name}]", str(value), detail))
    return errors + _check_within_pod(spec, child(resources, "limits"))


def _check_within_pod(spec: Json, limits: Json) -> list[FieldError]:
    """No container may have a higher limit than the pod as a whole."""
    errors = []
    for index, container in enumerate(objects(spec, "containers")):
        for name, value in child(container, "resources", "limits").items():
            own, whole = nano_of(value), nano_of(limits.get(name))
            if own is not None and whole is not None and own > whole:
                place = f"spec.containers[{index}].resources.limits[{name}]"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(place, str(value), detail))
    return errors
