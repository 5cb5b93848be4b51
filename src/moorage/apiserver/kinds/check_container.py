"""Rules of containers and volumes.

Place in the flow: part of the validation of pods and pod templates. Mirrors kubernetes v1.36
pkg/apis/core/validation/validation.go, validateContainers and ValidateVolumes.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.names import dns_label_faults
from moorage.apiserver.kind import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.check_resources import check_container_resources, check_quantity
from moorage.apiserver.kinds.name_rules import env_name, port_name, port_number
from moorage.apiserver.kinds.tree import Json, child, number, objects, text

PROTOCOLS = ("SCTP", "TCP", "UDP")

_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_LIFECYCLE_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def check_containers(spec: Json, field: str) -> list[FieldError]:
    """Check init and regular containers together: names are unique over both."""
    errors = []
    seen: set[str] = set()
    volumes = frozenset(text(each, "name") for each in objects(spec, "volumes"))
    claims = frozenset(text(each, "name") for each in objects(spec, "resourceClaims"))
    if not objects(spec, "containers"):
        errors.append(required(f"{field}.containers"))
    for which in ("containers", "initContainers"):
        listed = objects(spec, which)
        for index, container in enumerate(listed):
            where = f"{field}.{which}[{index}]"
            errors += _check_name(text(container, "name"), where, seen)
            errors += _check_container(container, where)
            errors += _check_mounts(container, where, volumes)
            errors += check_container_resources(container, where, claims)
            sidecar = text(container, "restartPolicy") == "Always"
            if which == "containers" or sidecar:
                errors += _check_probes(container, where)
            else:
                errors += _forbid_probes(container, where)
        errors += _check_ports(listed, f"{field}.{which}", on_host=spec.get("hostNetwork") is True)
    return errors


def _check_name(name: str, field: str, seen: set[str]) -> list[FieldError]:
    if not name:
        return [required(f"{field}.name")]
    errors = [invalid(f"{field}.name", name, fault) for fault in dns_label_faults(name)]
    if name in seen:
        errors.append(duplicate(f"{field}.name", name))
    seen.add(name)
    return errors


def _check_container(container: Json, field: str) -> list[FieldError]:
    errors = []
    image = text(container, "image")
    if not image:
        errors.append(required(f"{field}.image"))
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        errors.append(invalid(f"{field}.image", image, detail))
    for name, allowed in (
        ("imagePullPolicy", ("Always", "IfNotPresent", "Never")),
        ("terminationMessagePolicy", ("FallbackToLogsOnError", "File")),
        ("restartPolicy", ("Always", "Never", "OnFailure")),
    ):
        value = text(container, name)
        if value and value not in allowed:
            errors.append(not_supported(f"{field}.{name}", value, allowed))
    for index, variable in enumerate(objects(container, "env")):
        errors += _check_variable(variable, f"{field}.env[{index}]")
    return errors


def _check_variable(variable: Json, field: str) -> list[FieldError]:
    name = text(variable, "name")
    if not name:
        return [required(f"{field}.name")]
    errors = [invalid(f"{field}.name", name, fault) for fault in env_name(name)]
    source = variable.get("valueFrom")
    if source is None:
        return errors
    given = [key for key, value in source.items() if value is not None]
    if not given:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid(f"{field}.valueFrom", "", detail))
    elif text(variable, "value"):
        detail = "may not be specified when `value` is not empty"
        errors.append(invalid(f"{field}.valueFrom", "", detail))
    elif len(given) > 1:
        detail = "may not have more than one field specified at a time"
        errors.append(invalid(f"{field}.valueFrom", "", detail))
    return errors


def _check_mounts(container: Json, field: str, volumes: frozenset[str]) -> list[FieldError]:
    errors = []
    paths: set[str] = set()
    for index, mount in enumerate(objects(container, "volumeMounts")):
        where = f"{field}.volumeMounts[{index}]"
        name, path = text(mount, "name"), text(mount, "mountPath")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name not in volumes:
            errors.append(FieldError("FieldValueNotFound", f"{where}.name", name))
        if not path:
            errors.append(required(f"{where}.mountPath"))
        elif path in paths:
            errors.append(invalid(f"{where}.mountPath", path, "must be unique"))
        paths.add(path)
    return errors


def _check_probes(container: Json, field: str) -> list[FieldError]:
    errors = []
    for name in _PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        where = f"{field}.{name}"
        errors += _check_handler(probe, where, _HANDLERS)
        for key in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ):
            if number(probe, key) < 0:
                detail = "must be greater than or equal to 0"
                errors.append(invalid(f"{where}.{key}", number(probe, key), detail))
        if name != "readinessProbe" and number(probe, "successThreshold") != 1:
            value = number(probe, "successThreshold")
            errors.append(invalid(f"{where}.successThreshold", value, "must be 1"))
    for name in ("postStart", "preStop"):
        handler = child(container, "lifecycle").get(name)
        if handler is not None:
            where = f"{field}.lifecycle.{name}"
            errors += _check_handler(handler, where, _LIFECYCLE_HANDLERS)
    return errors


def _check_handler(handler: Json, field: str, known: Sequence[str]) -> list[FieldError]:
    given = [key for key in known if handler.get(key) is not None]
    if not given:
        return [required(field, "must specify a handler type")]
    detail = "may not specify more than 1 handler type"
    return [forbidden(f"{field}.{key}", detail) for key in given[1:]]


def _forbid_probes(container: Json, field: str) -> list[FieldError]:
    detail = "may not be set for init containers without restartPolicy=Always"
    return [
        forbidden(f"{field}.{name}", detail)
        for name in ("lifecycle", *_PROBES)
        if container.get(name) is not None
    ]


def _check_ports(listed: list[Json], field: str, *, on_host: bool) -> list[FieldError]:
    errors = []
    taken: set[str] = set()
    for index, container in enumerate(listed):
        names: set[str] = set()
        for place, port in enumerate(objects(container, "ports")):
            where = f"{field}[{index}].ports[{place}]"
            errors += _check_port(port, where, names)
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


def _check_port(port: Json, field: str, names: set[str]) -> list[FieldError]:
    errors = []
    name = text(port, "name")
    if name:
        faults = port_name(name)
        errors += [invalid(f"{field}.name", name, fault) for fault in faults]
        if not faults and name in names:
            errors.append(duplicate(f"{field}.name", name))
        names.add(name)
    inner = number(port, "containerPort")
    if not inner:
        errors.append(required(f"{field}.containerPort"))
    else:
        faults = port_number(inner)
        errors += [invalid(f"{field}.containerPort", inner, fault) for fault in faults]
    host = number(port, "hostPort")
    if host:
        errors += [invalid(f"{field}.hostPort", host, fault) for fault in port_number(host)]
    protocol = text(port, "protocol")
    if not protocol:
        errors.append(required(f"{field}.protocol"))
    elif protocol not in PROTOCOLS:
        errors.append(not_supported(f"{field}.protocol", protocol, PROTOCOLS))
    return errors


# Volume source -> its required field.
_NEEDED: dict[str, str] = {
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "nfs": "path",
    "csi": "driver",
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "ephemeral": "volumeClaimTemplate",
}


def check_volumes(volumes: list[Json], field: str) -> list[FieldError]:
    """Check the volumes of a pod: names unique, one source each."""
    errors = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{field}[{index}]"
        errors += _check_name(text(volume, "name"), where, seen)
        sources = [key for key in volume if key != "name" and volume[key] is not None]
        if not sources:
            errors.append(required(where, "must specify a volume type"))
        detail = "may not specify more than 1 volume type"
        errors += [forbidden(f"{where}.{key}", detail) for key in sources[1:]]
        for key in sources[:1]:
            needed = _NEEDED.get(key)
            if needed and not child(volume, key).get(needed):
                errors.append(required(f"{where}.{key}.{needed}"))
        limit = child(volume, "emptyDir").get("sizeLimit")
        if limit is not None:
            errors += check_quantity(limit, f"{where}.emptyDir.sizeLimit")
    return errors
