"""The requests and limits of containers and pods: totals, and rules."""

from __future__ import annotations

from moorage.api.names import (
    is_extended_resource,
    is_hugepages_resource,
    is_native_resource,
    is_pod_level_resource,
    qualified_name_faults,
)
from moorage.apiserver.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.quantities import (
    Amounts,
    add,
    amounts,
    check_quantity,
    check_whole,
    nano_of,
)
from moorage.apiserver.kinds.tree import Json, child, objects, text

# Only these resources may have a request below their limit; for all others both are equal.
_OVERCOMMITTABLE = frozenset({"cpu", "memory", "ephemeral-storage"})


def container_totals(spec: Json, part: str) -> Amounts:
    """Return the highest amounts that the containers of a pod use at any moment.

    Parameters
    ----------
    spec
        Pod spec.
    part
        ``requests`` or ``limits``.

    Notes
    -----
    Init containers run one after another before the other containers. Init containers with
    ``restartPolicy: Always`` go on running. Source: kubernetes v1.36 component-helpers
    resource/helpers.go.
    """
    total: Amounts = {}
    for container in objects(spec, "containers"):
        add(total, amounts(child(container, "resources", part)))
    lasting: Amounts = {}
    highest: Amounts = {}
    for container in objects(spec, "initContainers"):
        own = amounts(child(container, "resources", part))
        if container.get("restartPolicy") == "Always":
            add(total, own)
            add(lasting, own)
            own = dict(lasting)
        else:
            add(own, lasting)
        for name, nano in own.items():
            highest[name] = max(highest.get(name, 0), nano)
    for name, nano in highest.items():
        total[name] = max(total.get(name, 0), nano)
    return total


def check_container_resources(
    container: Json, field: str, claims: frozenset[str]
) -> list[FieldError]:
    """Check the requests, limits and claims of a container."""
    resources, where = child(container, "resources"), f"{field}.resources"
    errors = []
    for index, claim in enumerate(objects(resources, "claims")):
        name, place = text(claim, "name"), f"{where}.claims[{index}]"
        if not name:
            errors.append(required(place))
        elif name not in claims:
            detail = "must be one of the names in pod.spec.resourceClaims"
            errors.append(FieldError("FieldValueNotFound", place, name, detail))
    for which in ("limits", "requests"):
        for name, value in child(resources, which).items():
            place = f"{where}.{which}[{name}]"
            errors += _check_container_resource(name, place) + check_whole(name, value, place)
    return errors + _check_pairs(resources, where)


def _check_container_resource(name: str, field: str) -> list[FieldError]:
    faults = qualified_name_faults(name)
    if not faults and "/" not in name:
        if name not in _OVERCOMMITTABLE and not is_hugepages_resource(name):
            faults = ["must be a standard resource for containers"]
    elif not faults and not is_native_resource(name) and not is_extended_resource(name):
        faults = ["doesn't follow extended resource name standard"]
    return [invalid(field, name, fault) for fault in faults]


def _check_pairs(resources: Json, field: str) -> list[FieldError]:
    """Compare requests with limits, and huge pages with the rest."""
    requests, limits = child(resources, "requests"), child(resources, "limits")
    errors = []
    for name, value in requests.items():
        asked, limit = nano_of(value), nano_of(limits.get(name))
        exact = name not in _OVERCOMMITTABLE
        if asked is not None and name not in limits and exact:
            detail = "Limit must be set for non overcommitable resources"
            errors.append(required(f"{field}.limits", detail))
        if asked is None or limit is None:
            continue
        if asked > limit or (exact and asked < limit):
            told = "equal to" if exact else "less than or equal to"
            detail = f"must be {told} {name} limit of {limits[name]}"
            errors.append(invalid(f"{field}.requests", str(value), detail))
    called = {*requests, *limits}
    if any(is_hugepages_resource(name) for name in called) and not called & {"cpu", "memory"}:
        errors.append(forbidden(field, "HugePages require cpu or memory"))
    return errors


def check_pod_level_resources(spec: Json, where: str) -> list[FieldError]:
    """Check pod-level requests and limits, also against the values of the containers."""
    resources, field = child(spec, "resources"), f"{where}.resources"
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
    asked = container_totals(spec, "requests")
    for name, value in child(resources, "requests").items():
        nano = nano_of(value)
        if nano is not None and asked.get(name, 0) > nano:
            detail = "must be greater than or equal to aggregate container requests"
            errors.append(invalid(f"{field}.requests[{name}]", str(value), detail))
    limits = child(resources, "limits")
    # No container may have a higher limit than the pod as a whole.
    for index, container in enumerate(objects(spec, "containers")):
        for name, value in child(container, "resources", "limits").items():
            own, whole = nano_of(value), nano_of(limits.get(name))
            if own is not None and whole is not None and own > whole:
                place = f"spec.containers[{index}].resources.limits[{name}]"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(place, str(value), detail))
    return errors
