"""The rules of environment variables, and of the references that their values come from.

Volumes have the same references (`volumes.pod_sources`). Mirrors kubernetes v1.36
pkg/apis/core/validation/validation.go (ValidateEnv, ValidateEnvFrom) and pkg/apis/core/pods.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from moorage.api.names import dns_subdomain_faults, qualified_name_faults
from moorage.kinds.fields import name_rule, needed, rules
from moorage.kinds.kind import FieldError, invalid, not_supported, required
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.name_rules import config_key, env_name
from moorage.kinds.values.quantities import canonical_quantity
from moorage.kinds.volumes.sources import path_inside

_OF_VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
OF_FILES = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
"""The fields of a pod that a file in a volume may show."""
_OF_PODS = frozenset(
    (*_OF_VARIABLES, *OF_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_WITH_KEYS = ("metadata.annotations", "metadata.labels")
_AMOUNTS = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "memory", "ephemeral-storage")
)
_PAGES = ("limits.hugepages-", "requests.hugepages-")
_OF_CPU: tuple[str, ...] = ("1m", "1")
_OF_BYTES: tuple[str, ...] = (
    *("1", "1k", "1M", "1G", "1T", "1P", "1E"),
    *("1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
)


def check_field_ref(ref: Json, where: str, allowed: Collection[str]) -> list[FieldError]:
    """Check a reference to a field of the pod; ``allowed`` has the fields without a key."""
    version, path, place = text(ref, "apiVersion"), text(ref, "fieldPath"), f"{where}.fieldPath"
    if not version:
        return [required(f"{where}.apiVersion")]
    if not path:
        return [required(place)]
    field, bracket, rest = path.partition("['")
    key = rest.removesuffix("']") if field and bracket and path.endswith("']") else None
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif key is not None and field not in _WITH_KEYS:
        problem = f"field label does not support subscript: {path}"
    elif key is None and path not in _OF_PODS and path != "spec.host":
        problem = f"field label not supported: {path}"
    if problem:
        return [invalid(place, path, f"error converting fieldPath: {problem}")]
    if key is not None:
        name = key.lower() if field == "metadata.annotations" else key
        return [invalid(where, name, fault) for fault in qualified_name_faults(name)]
    # An old client's name of the field.
    path = "spec.nodeName" if path == "spec.host" else path
    return [] if path in allowed else [not_supported(place, path, allowed)]


def check_resource_ref(ref: Json, where: str, *, volume: bool = False) -> list[FieldError]:
    """Check a reference to an amount of a container; in a volume it names the container."""
    name = text(ref, "resource")
    errors = []
    if volume and not text(ref, "containerName"):
        errors.append(required(f"{where}.containerName"))
    elif not name:
        errors.append(required(f"{where}.resource"))
    elif name not in _AMOUNTS and not name.startswith(_PAGES):
        errors.append(not_supported(f"{where}.resource", name, _AMOUNTS))
    return errors + _divisor(ref, where, name)


def _divisor(ref: Json, where: str, name: str) -> list[FieldError]:
    divisor = str(canonical_quantity(ref.get("divisor") or "0"))
    if divisor == "0" or (name not in _AMOUNTS and not name.startswith(_PAGES)):
        return []
    kind = name.partition(".")[2]
    allowed, listed, of = _OF_BYTES, ", ".join(_OF_BYTES), kind
    if kind == "cpu":
        allowed, listed = _OF_CPU, "1m and 1"
    elif kind == "ephemeral-storage":
        of = "local ephemeral storage"
    elif kind != "memory":
        of = "hugepages"
    if divisor in allowed:
        return []
    detail = f"only divisor's values {listed} are supported with the {of} resource"
    return [invalid(f"{where}.divisor", name, detail)]


def _object_key(ref: Json, where: str) -> list[FieldError]:
    name, key = text(ref, "name"), text(ref, "key")
    errors = [invalid(f"{where}.name", name, fault) for fault in dns_subdomain_faults(name)]
    if not key:
        return [*errors, required(f"{where}.key")]
    return errors + [invalid(f"{where}.key", key, fault) for fault in config_key(key)]


def _file_key(ref: Json, where: str) -> list[FieldError]:
    errors = [invalid(f"{where}.key", text(ref, "key"), at) for at in env_name(text(ref, "key"))]
    errors += needed()(ref.get("volumeName"), f"{where}.volumeName")
    errors += needed()(ref.get("path"), f"{where}.path")
    return errors + path_inside(ref.get("path"), f"{where}.path")


def check_files(container: Json, field: str, spec: Json) -> list[FieldError]:
    """Check that files with the values of variables are in volumes of type ``emptyDir``.

    Parameters
    ----------
    container, field
        The container and its path.
    spec
        The spec of its pod.
    """
    volumes = {text(each, "name"): each for each in objects(spec, "volumes")}
    errors: list[FieldError] = []
    for index, variable in enumerate(objects(container, "env")):
        name = text(child(variable, "valueFrom", "fileKeyRef"), "volumeName")
        where = f"{field}.env[{index}].valueFrom.fileKeyRef.volumeName"
        if name and name not in volumes:
            errors.append(FieldError("FieldValueNotFound", where, name))
        elif name and volumes[name].get("emptyDir") is None:
            errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors


def check_variable(variable: Json, field: str) -> list[FieldError]:
    """Check an environment variable."""
    name = text(variable, "name")
    errors = [invalid(f"{field}.name", name, fault) for fault in env_name(name)]
    if not name:
        errors = [required(f"{field}.name")]
    source, where = variable.get("valueFrom"), f"{field}.valueFrom"
    if source is None:
        return errors
    sources = [key for key, value in source.items() if value is not None]
    for key in sources:
        if key == "fieldRef":
            errors += check_field_ref(source[key], f"{where}.{key}", _OF_VARIABLES)
        elif key == "resourceFieldRef":
            errors += check_resource_ref(source[key], f"{where}.{key}")
        elif key in ("configMapKeyRef", "secretKeyRef"):
            errors += _object_key(source[key], f"{where}.{key}")
        elif key == "fileKeyRef":
            errors += _file_key(source[key], f"{where}.{key}")
    detail = ""
    if not sources:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
    elif text(variable, "value"):
        detail = "may not be specified when `value` is not empty"
    elif len(sources) > 1:
        detail = "may not have more than one field specified at a time"
    return [*errors, invalid(where, "", detail)] if detail else errors


def _object_name(name: str) -> list[str]:
    # Upstream lets the name end with a dash, as if more came.
    whole = f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
    return dns_subdomain_faults(whole)


_some_object = rules(("name", needed()), ("name", name_rule(_object_name)))


def check_env_from(listed: Any, field: str) -> list[FieldError]:
    """Check the ConfigMaps and Secrets whose keys become variables."""
    errors = []
    for index, entry in enumerate(objects({"": listed}, "")):
        place, prefix = f"{field}[{index}]", text(entry, "prefix")
        if prefix:
            errors += [invalid(f"{place}.prefix", prefix, fault) for fault in env_name(prefix)]
        sources = [key for key in ("configMapRef", "secretRef") if entry.get(key) is not None]
        for key in sources:
            errors += _some_object(entry[key], f"{place}.{key}")
        if not sources:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            errors.append(invalid(field, "", detail))
        elif len(sources) > 1:
            detail = "may not have more than one field specified at a time"
            errors.append(invalid(field, "", detail))
    return errors
