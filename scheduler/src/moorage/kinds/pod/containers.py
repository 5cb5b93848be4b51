"""The rules of containers and their resources (validateContainers, validateInitContainers)."""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_label_faults
from moorage.api.quantity import from_nano
from moorage.kinds.fields import (
    PROTOCOLS,
    duplicates,
    each,
    if_present,
    name_rule,
    one_of,
    rules,
)
from moorage.kinds.kind import FieldError, duplicate, forbidden, invalid, required
from moorage.kinds.pod.environment import check_env_from, check_files, check_variable
from moorage.kinds.pod.handlers import HANDLERS, check_handlers, check_restarts, forbid_handlers
from moorage.kinds.pod.security import check_security_context
from moorage.kinds.tree import Json, child, number, objects, text
from moorage.kinds.values.name_rules import port_name, port_number
from moorage.kinds.values.quantities import (
    Amounts,
    add,
    amounts,
    check_requirements,
    container_resource_name,
    nano_of,
    pod_resource_name,
)
from moorage.kinds.volumes.pod_volumes import check_mounts

PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_label = name_rule(dns_label_faults, empty="required")


def check_containers(spec: Json, field: str) -> list[FieldError]:
    """Check init and regular containers together: names are unique over both."""
    errors = []
    names: set[str] = set()
    claims = frozenset(text(each, "name") for each in objects(spec, "resourceClaims"))
    if not objects(spec, "containers"):
        errors.append(required(f"{field}.containers"))
    for which in ("containers", "initContainers"):
        listed = objects(spec, which)
        for index, container in enumerate(listed):
            where, name = f"{field}.{which}[{index}]", text(container, "name")
            errors += _label(name, f"{where}.name")
            if name and name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
            errors += _container(container, where)
            errors += _restart_policy(container, where)
            errors += _mounts(container, where, spec)
            errors += _context(container, where, spec)
            errors += check_container_resources(container, where, claims)
            sidecar = text(container, "restartPolicy") == "Always"
            lasting = which == "containers" or sidecar
            errors += _handlers(container, where, spec, lasting=lasting)
            policies = container.get("resizePolicy")
            if lasting:
                never = text(spec, "restartPolicy") == "Never"
                errors += _resize_policies(policies, f"{where}.resizePolicy", never=never)
            elif policies:
                detail = "must not be set for init containers"
                errors.append(invalid(f"{where}.resizePolicy", policies, detail))
        errors += _check_ports(listed, f"{field}.{which}", on_host=spec.get("hostNetwork") is True)
    return errors


_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_EPHEMERAL = frozenset(
    [
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "envFrom",
        "env",
        "volumeMounts",
        "volumeDevices",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
        "targetContainerName",
    ]
)


def check_ephemeral_containers(spec: Json, field: str) -> list[FieldError]:
    """Check the ephemeral containers of a pod, which have few fields (ValidateEphemeralContainers).

    `check_containers` does not look at them, because no new pod and no template has any.
    """
    errors = []
    targets = {
        text(each, "name")
        for key in ("containers", "initContainers")
        for each in objects(spec, key)
    }
    names = set(targets)
    for index, container in enumerate(objects(spec, "ephemeralContainers")):
        where, name = f"{field}.ephemeralContainers[{index}]", text(container, "name")
        errors += _label(name, f"{where}.name")
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        errors += _container(container, where)
        errors += _mounts(container, where, spec)
        errors += _context(container, where, spec)
        target = text(container, "targetContainerName")
        if target and target not in targets:
            errors.append(FieldError("FieldValueNotFound", f"{where}.targetContainerName", target))
        errors += [
            forbidden(f"{where}.{key}", _NOT_EPHEMERAL)
            for key in sorted(container.keys() - _EPHEMERAL)
            if container[key]
        ]
        errors += [
            forbidden(f"{where}.volumeMounts[{place}].{key}", _NOT_EPHEMERAL)
            for place, mount in enumerate(objects(container, "volumeMounts"))
            for key in ("subPath", "subPathExpr")
            if mount.get(key)
        ]
    return errors


def _image(image: str | None, field: str) -> list[FieldError]:
    if not image:
        return [required(field)]
    detail = "must not have leading or trailing whitespace"
    return [] if image == image.strip() else [invalid(field, image, detail)]


_container = rules(
    ("image", _image),
    ("imagePullPolicy", one_of(*PULL_POLICIES, empty="accepted")),
    ("terminationMessagePolicy", one_of("FallbackToLogsOnError", "File", empty="accepted")),
    ("env", each(check_variable)),
    ("envFrom", if_present(check_env_from)),
)


def _restart_policy(container: Json, field: str) -> list[FieldError]:
    if container.get("restartPolicy") is None and not container.get("restartPolicyRules"):
        return []
    return check_restarts(container, field)


def _mounts(container: Json, field: str, spec: Json) -> list[FieldError]:
    """Check the volumes that a container uses, for mounts and for values of variables."""
    errors = check_files(container, field, spec) if container.get("env") else []
    if container.get("volumeMounts") or container.get("volumeDevices"):
        errors += check_mounts(container, field, spec)
    return errors


def _handlers(container: Json, field: str, spec: Json, *, lasting: bool) -> list[FieldError]:
    if not any(container.get(name) is not None for name in HANDLERS):
        return []
    if lasting:
        return check_handlers(container, field, spec)
    return forbid_handlers(container, field)


def _context(container: Json, field: str, spec: Json) -> list[FieldError]:
    context = container.get("securityContext")
    if not context:
        return []
    host_users = spec.get("hostUsers") is not False
    return check_security_context(context, f"{field}.securityContext", host_users=host_users)


_resized = one_of("cpu", "memory", empty="required")
_restarts = one_of("NotRequired", "RestartContainer", empty="required")


def _resize_policies(policies: Any, field: str, *, never: bool) -> list[FieldError]:
    """Check what a resize of a container does; ``never``: the pod's containers never restart.

    Notes
    -----
    kubernetes v1.36 validateResizePolicy, whose errors name the list but for a duplicate.
    """
    listed = objects({"": policies}, "")
    errors = duplicates(
        [text(each, "resourceName") for each in listed], lambda place: f"{field}[{place}]"
    )
    for each_policy in listed:
        errors += _resized(each_policy.get("resourceName"), field)
        restart = text(each_policy, "restartPolicy")
        errors += _restarts(restart, field)
        if never and restart != "NotRequired":
            detail = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(invalid(field, restart, detail))
    return errors


_port = rules(
    ("containerPort", name_rule(port_number, empty="required")),
    ("hostPort", name_rule(port_number)),
    ("protocol", one_of(*PROTOCOLS, empty="required")),
)


def _check_ports(listed: list[Json], field: str, *, on_host: bool) -> list[FieldError]:
    errors = []
    taken: set[str] = set()
    for index, container in enumerate(listed):
        names: set[str] = set()
        for place, port in enumerate(objects(container, "ports")):
            where, name = f"{field}[{index}].ports[{place}]", text(port, "name")
            faults = port_name(name) if name else []
            errors += [invalid(f"{where}.name", name, fault) for fault in faults]
            if name and not faults and name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
            errors += _port(port, where)
            host, inner = number(port, "hostPort"), number(port, "containerPort")
            if on_host and host != inner:
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{where}.hostPort", host, detail))
            if host:
                key = f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{host}"
                if key in taken:
                    errors.append(duplicate(f"{where}.hostPort", key))
                taken.add(key)
    return errors


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
    names: set[str] = set()
    in_parts: set[str] = set()
    for index, claim in enumerate(objects(resources, "claims")):
        name, request, place = text(claim, "name"), text(claim, "request"), f"{field}[{index}]"
        if not name:
            errors.append(required(place))
            continue
        key = f"{name}/{request}" if request else name
        if request and name not in names:
            faults = dns_label_faults(request)
            errors += [invalid(f"{place}.request", request, fault) for fault in faults]
        if name in names:
            errors.append(duplicate(place, name))
        elif key in names:
            errors.append(duplicate(place, key))
        elif not request and name in in_parts:
            errors.append(duplicate(place, name))
        names.add(key)
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
        if nano is not None and name in asked and asked[name] > nano:
            total = from_nano(asked[name], binary=name != "cpu")
            detail = f"must be greater than or equal to aggregate container requests of {total}"
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
