"""Rules of nodes, services, config, priority classes, leases and Events.

Place in the flow: validation, after defaulting. Mirrors kubernetes v1.36
pkg/apis/core/validation, pkg/apis/scheduling/validation and pkg/apis/coordination/validation.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

from moorage.api.names import label_value_faults, qualified_name_faults
from moorage.apiserver.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.check_container import PROTOCOLS
from moorage.apiserver.kinds.check_resources import check_resource_list
from moorage.apiserver.kinds.check_scheduling import TAINT_EFFECTS
from moorage.apiserver.kinds.metadata import check_labels, immutable
from moorage.apiserver.kinds.name_rules import port_name, port_number
from moorage.apiserver.kinds.tree import Json, child, items, number, objects, text

# The highest priority of a user's class, and the classes that the system makes.
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SYSTEM_PREFIX = "system-"
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_CONFIG_LIMIT_BYTES = 1024 * 1024
_NOT_CHANGED = "may not be changed in an update."


def check_node(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a node: its taints, resources and addresses."""
    errors = _check_taints(objects(new, "spec", "taints"), "spec.taints")
    errors += check_node_status(new, old)
    if old is not None:
        before, after = text(old, "spec", "providerID"), text(new, "spec", "providerID")
        if before and before != after:
            detail = 'node updates may not change providerID except from "" to valid'
            errors.append(forbidden("spec.providerID", detail))
        cidrs = items(old, "spec", "podCIDRs")
        if cidrs and cidrs != items(new, "spec", "podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            errors.append(forbidden("spec.podCIDRs", detail))
    return errors


def check_node_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a node's resources."""
    status = child(new, "status")
    errors = check_resource_list(child(status, "capacity"), "status.capacity")
    return errors + check_resource_list(child(status, "allocatable"), "status.allocatable")


def _check_taints(taints: list[Json], field: str) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{field}[{index}]"
        key, effect, value = text(taint, "key"), text(taint, "effect"), text(taint, "value")
        errors += [invalid(f"{where}.key", key, fault) for fault in qualified_name_faults(key)]
        errors += [invalid(f"{where}.value", value, fault) for fault in label_value_faults(value)]
        if not effect:
            errors.append(required(f"{where}.effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{where}.effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", where, taint, detail))
        seen.add((key, effect))
    return errors


def check_service(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a service."""
    spec = child(new, "spec")
    errors = []
    kind = text(spec, "type")
    kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if kind not in kinds:
        errors.append(not_supported("spec.type", kind, kinds))
    ports = objects(spec, "ports")
    headless = text(spec, "clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind == "ExternalName" and not text(spec, "externalName"):
        errors.append(required("spec.externalName"))
    affinity = text(spec, "sessionAffinity")
    if affinity not in ("ClientIP", "None"):
        errors.append(not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    errors += check_labels(spec.get("selector"), "spec.selector")
    names: set[str] = set()
    for index, port in enumerate(ports):
        errors += _check_service_port(port, f"spec.ports[{index}]", names, several=len(ports) > 1)
        if kind == "ClusterIP" and number(port, "nodePort"):
            detail = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden(f"spec.ports[{index}].nodePort", detail))
    before = text(old or {}, "spec", "clusterIP")
    if before and kind != "ExternalName" and text(spec, "clusterIP") != before:
        detail = "may not change once set"
        errors.append(invalid("spec.clusterIPs[0]", [text(spec, "clusterIP")], detail))
    return errors


def _check_service_port(
    port: Json, field: str, names: set[str], *, several: bool
) -> list[FieldError]:
    errors = []
    name = text(port, "name")
    if not name and several:
        errors.append(required(f"{field}.name"))
    elif name and name in names:
        errors.append(duplicate(f"{field}.name", name))
    names.add(name)
    value = number(port, "port")
    errors += [invalid(f"{field}.port", value, fault) for fault in port_number(value)]
    protocol = text(port, "protocol")
    if protocol not in PROTOCOLS:
        errors.append(not_supported(f"{field}.protocol", protocol, PROTOCOLS))
    target = port.get("targetPort")
    if isinstance(target, int):
        errors += [invalid(f"{field}.targetPort", target, fault) for fault in port_number(target)]
    elif isinstance(target, str):
        errors += [invalid(f"{field}.targetPort", target, fault) for fault in port_name(target)]
    return errors


def check_config_map(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a config map: keys, size, and that an immutable one does not change."""
    data, binary = child(new, "data"), child(new, "binaryData")
    errors = _check_keys(data, "data") + _check_keys(binary, "binaryData")
    for key in data:
        if key in binary:
            detail = "duplicate of key present in binaryData"
            errors.append(invalid(f"data[{key}]", key, detail))
    return errors + _check_size(new, ("data", "binaryData")) + _check_kept(new, old)


def check_secret(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a secret: keys, size, and that its type does not change."""
    errors = _check_keys(child(new, "data"), "data") + _check_size(new, ("data",))
    if old is not None and new.get("type") != old.get("type"):
        errors.append(immutable("type", new.get("type")))
    return errors + _check_secret_type(new) + _check_kept(new, old)


# Type of a secret -> the keys its data must have.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_IN_JSON = frozenset({".dockercfg", ".dockerconfigjson"})
_ACCOUNT_OF_TOKEN = "kubernetes.io/service-account.name"


def _check_secret_type(secret: Obj) -> list[FieldError]:
    """Check that a secret has the keys that its type requires."""
    kind, data = text(secret, "type"), child(secret, "data")
    if kind == "kubernetes.io/service-account-token":
        if child(secret, "metadata", "annotations").get(_ACCOUNT_OF_TOKEN):
            return []
        return [required(f"metadata.annotations[{_ACCOUNT_OF_TOKEN}]")]
    if kind == "kubernetes.io/basic-auth":
        keys = ("username", "password")
        return [] if data.keys() & set(keys) else [required(f"data[{key}]") for key in keys]
    errors = []
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            errors.append(required(f"data[{key}]"))
        elif key in _IN_JSON and (fault := _json_fault(data[key])):
            errors.append(invalid(f"data[{key}]", "<secret contents redacted>", fault))
    return errors


def _json_fault(encoded: str) -> str:
    """Return why base64 data is not a JSON object; empty when it is one."""
    try:
        msgspec.json.decode(base64.b64decode(encoded), type=dict)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return str(error)
    return ""


def _check_keys(data: Json, field: str) -> list[FieldError]:
    errors = []
    for key in data:
        if not _CONFIG_KEY.fullmatch(key) or key in (".", ".."):
            detail = (
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
                "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')"
            )
            errors.append(invalid(f"{field}[{key}]", key, detail))
    return errors


def _check_size(new: Obj, fields: tuple[str, ...]) -> list[FieldError]:
    size = sum(len(str(value)) for field in fields for value in child(new, field).values())
    if size <= _CONFIG_LIMIT_BYTES:
        return []
    detail = f"may not be more than {_CONFIG_LIMIT_BYTES} bytes"
    return [FieldError("FieldValueTooLong", fields[0], "", detail)]


def _check_kept(new: Obj, old: Obj | None) -> list[FieldError]:
    if old is None or old.get("immutable") is not True:
        return []
    detail = "field is immutable when `immutable` is set"
    errors = []
    if new.get("immutable") is not True:
        errors.append(forbidden("immutable", detail))
    changed = [field for field in ("data", "binaryData") if new.get(field) != old.get(field)]
    return errors + [forbidden(field, detail) for field in changed]


def check_priority_class(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a priority class: the range of its value, reserved names, and immutable fields."""
    errors = []
    name, value = text(new, "metadata", "name"), number(new, "value")
    if name.startswith(_SYSTEM_PREFIX):
        reason = _system_fault(name, value, new.get("globalDefault") is True)
        if reason:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {reason}"
            )
            errors.append(forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", detail))
    policy = text(new, "preemptionPolicy")
    policies = ("Never", "PreemptLowerPriority")
    if policy not in policies:
        errors.append(not_supported("preemptionPolicy", policy, policies))
    if old is not None:
        kept = ("value", "preemptionPolicy")
        errors += [forbidden(each, _NOT_CHANGED) for each in kept if new.get(each) != old.get(each)]
    return errors


def _system_fault(name: str, value: int, is_default: bool) -> str:
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def check_lease(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a lease."""
    spec = child(new, "spec")
    errors = []
    duration: Any = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    transitions: Any = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid("spec.leaseTransitions", transitions, detail))
    return errors


def check_event(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check an Event: it is in the namespace of its object; the newer API requires more fields."""
    newer = text(new, "apiVersion").startswith("events.k8s.io/")
    about = "regarding" if newer else "involvedObject"
    home = text(new, "metadata", "namespace")
    namespace = text(new, about, "namespace")
    errors = []
    # Events of cluster-scoped objects live in "default".
    if namespace != home and not (not namespace and home in ("default", "kube-system")):
        detail = "does not match event.namespace"
        errors.append(invalid(f"{about}.namespace", namespace, detail))
    if newer and old is None:
        errors += [
            required(field)
            for field in (
                "eventTime",
                "reportingController",
                "reportingInstance",
                "action",
                "reason",
            )
            if not text(new, field)
        ]
        if text(new, "type") not in ("Normal", "Warning"):
            errors.append(invalid("type", "", "has invalid value: " + text(new, "type")))
    return errors
