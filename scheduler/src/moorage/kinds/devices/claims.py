"""The parts of claims and device classes: requests, constraints and configurations.

Place in the flow: `devices` builds its kinds from them. Mirrors kubernetes v1.36
pkg/apis/resource/validation/validation.go (validateDeviceClaim).
"""

from __future__ import annotations

import json
from typing import Any

from moorage.kinds.devices.shared_rules import device_name, full_name, members
from moorage.kinds.fields import Rule, driver_name, rules
from moorage.kinds.kind import FieldError, invalid, required, too_long
from moorage.kinds.tree import Json, objects, text

LIST_MAX = 32
"""Most requests, constraints, configurations and selectors, each."""
_PARAMETERS_SIZE_MAX = 10 * 1024
_NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def names_of(devices: Json) -> frozenset[str]:
    """Return the names of a claim's requests, and of their alternatives as ``request/name``."""
    names = set()
    for request in objects(devices, "requests"):
        name = text(request, "name")
        names.add(name)
        names |= {f"{name}/{text(each, 'name')}" for each in objects(request, "firstAvailable")}
    return frozenset(names)


def request_reference(names: frozenset[str]) -> Rule:
    """Return the rule of a reference to one of these requests."""

    def check(value: Any, where: str) -> list[FieldError]:
        name = value or ""
        parts = name.split("/")
        if len(parts) > 2:
            return [invalid(where, name, _NO_REQUEST)]
        errors = [error for part in parts for error in device_name(part, where)]
        return errors if name in names else [*errors, invalid(where, name, _NO_REQUEST)]

    return check


def _references(names: frozenset[str]) -> Rule:
    return members(request_reference(names), LIST_MAX, lambda name: name)


def _constraint(constraint: Json, where: str) -> list[FieldError]:
    for key in ("matchAttribute", "distinctAttribute"):
        if constraint.get(key) is not None:
            return full_name(constraint[key], f"{where}.{key}")
    detail = (
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields '
        "are set"
    )
    return [required(where, detail)]


def check_constraints(devices: Json, where: str) -> list[FieldError]:
    """Check the constraints of a claim."""
    rule = rules(("requests", _references(names_of(devices))), _constraint)
    return members(rule, LIST_MAX)(devices.get("constraints"), f"{where}.constraints")


def check_parameters(value: Any, where: str) -> list[FieldError]:
    """Check data of a driver: an object of at most 10 KiB."""
    if value is None:
        return [required(where)]
    if len(json.dumps(value, separators=(",", ":"), ensure_ascii=False)) > _PARAMETERS_SIZE_MAX:
        return [too_long(where, _PARAMETERS_SIZE_MAX)]
    if not isinstance(value, dict):
        return [invalid(where, "<value omitted>", "must be a valid JSON object")]
    return []


_opaque = rules(("driver", driver_name), ("parameters", check_parameters))


def _driver_configuration(configuration: Json, where: str) -> list[FieldError]:
    opaque = configuration.get("opaque")
    if opaque is None:
        return [required(f"{where}.opaque")]
    return _opaque(opaque, f"{where}.opaque")


def check_configuration(names: frozenset[str]) -> Rule:
    """Return the rule of a configuration for some of these requests."""
    return rules(("requests", _references(names)), _driver_configuration)


def check_configurations(devices: Json, where: str) -> list[FieldError]:
    """Check the configurations of a claim."""
    rule = members(check_configuration(names_of(devices)), LIST_MAX)
    return rule(devices.get("config"), f"{where}.config")


class_configurations: Rule = members(_driver_configuration, LIST_MAX)
"""Check the configurations of a device class."""
