"""The requests and limits of containers and pods: totals, and rules."""

from __future__ import annotations

from moorage.api.names import dns_label_faults
from moorage.kinds.kind import FieldError, duplicate, forbidden, invalid, required
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.quantities import Amounts, add, amounts, nano_of
from moorage.kinds.values.resource_names import (
    check_requirements,
    container_resource_name,
    pod_resource_name,
)


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
    errors = check_requirements(resources, where, container_resource_name)
    return errors + _check_claims(resources, f"{where}.claims", claims)


def _check_claims(resources: Json, field: str, claims: frozenset[str]) -> list[FieldError]:
    """Check the names of a container's claims: each claim, or request in it, at most once."""
    errors = []
    # Claims named as a whole, requests as ``claim/request``, and the claims of these requests.
    seen: set[str] = set()
    in_parts: set[str] = set()
    for index, claim in enumerate(objects(resources, "claims")):
        name, request, place = text(claim, "name"), text(claim, "request"), f"{field}[{index}]"
        if not name:
            errors.append(required(place))
            continue
        key = f"{name}/{request}" if request else name
        if request and name not in seen:
            faults = dns_label_faults(request)
            errors += [invalid(f"{place}.request", request, fault) for fault in faults]
        if name in seen:
            errors.append(duplicate(place, name))
        elif key in seen:
            errors.append(duplicate(place, key))
        elif not request and name in in_parts:
            errors.append(duplicate(place, name))
        seen.add(key)
        if request:
            in_parts.add(name)
        if name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(FieldError("FieldValueNotFound", place, name, detail))
    return errors


def check_pod_level_resources(spec: Json, where: str) -> list[FieldError]:
    """Check pod-level requests and limits, also against the values of the containers."""
    resources, field = child(spec, "resources"), f"{where}.resources"
    if not resources:
        return []
    errors = []
    if resources.get("claims"):
        detail = "claims cannot be set for Resources at pod-level"
        errors.append(forbidden(f"{field}.claims", detail))
    errors += check_requirements(resources, field, pod_resource_name)
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
