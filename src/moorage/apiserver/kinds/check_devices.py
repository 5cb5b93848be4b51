"""Rules of device classes, slices, claims and their templates.

Place in the flow: validation, after defaulting. Mirrors kubernetes v1.36
pkg/apis/resource/validation. CEL expressions are not compiled here; a scheduler reports their
errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.apiserver.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.selectors import check_node_selector
from moorage.apiserver.kinds.tree import Json, child, number, objects, text

_MODES = ("All", "ExactCount")
_REQUESTS_MAX = 32
_ALTERNATIVES_MAX = 8
_RESERVATIONS_MAX = 256
_DEVICES_MAX = 128
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def check_device_class(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a DeviceClass."""
    del old
    return _check_selectors(child(new, "spec"), "spec")


def check_claim(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a ResourceClaim; its requests never change."""
    errors = _check_claim_spec(child(new, "spec"), "spec")
    if old is not None and new.get("spec") != old.get("spec"):
        errors.append(immutable("spec", new.get("spec")))
    return errors


def check_claim_template(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a ResourceClaimTemplate; it never changes."""
    errors = _check_claim_spec(child(new, "spec", "spec"), "spec.spec")
    if old is not None and new.get("spec") != old.get("spec"):
        errors.append(immutable("spec", new.get("spec")))
    return errors


def _check_claim_spec(spec: Json, field: str) -> list[FieldError]:
    where = f"{field}.devices.requests"
    requests = objects(spec, "devices", "requests")
    errors = _check_names(requests, where)
    if len(requests) > _REQUESTS_MAX:
        errors.append(forbidden(where, f"must have at most {_REQUESTS_MAX} items"))
    for index, request in enumerate(requests):
        errors += _check_request(request, f"{where}[{index}]")
    return errors


def _check_request(request: Json, field: str) -> list[FieldError]:
    exactly, alternatives = request.get("exactly"), objects(request, "firstAvailable")
    one_of = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return [required(field, one_of)]
    if exactly is not None and alternatives:
        return [invalid(field, request, one_of)]
    if exactly is not None:
        return _check_wanted(exactly, f"{field}.exactly")
    where = f"{field}.firstAvailable"
    errors = _check_names(alternatives, where)
    if len(alternatives) > _ALTERNATIVES_MAX:
        errors.append(forbidden(where, f"must have at most {_ALTERNATIVES_MAX} items"))
    for index, alternative in enumerate(alternatives):
        errors += _check_wanted(alternative, f"{where}[{index}]")
    return errors


def _check_wanted(wanted: Json, field: str) -> list[FieldError]:
    name, mode = text(wanted, "deviceClassName"), text(wanted, "allocationMode")
    errors = [invalid(f"{field}.deviceClassName", name, why) for why in dns_subdomain_faults(name)]
    if not name:
        errors = [required(f"{field}.deviceClassName")]
    if mode not in _MODES:
        errors.append(not_supported(f"{field}.allocationMode", mode, _MODES))
    count = number(wanted, "count")
    if mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(invalid(f"{field}.count", count, detail))
    if mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{field}.count", count, "must be greater than zero"))
    return errors + _check_selectors(wanted, field)


def _check_selectors(obj: Json, field: str) -> list[FieldError]:
    return [
        required(f"{field}.selectors[{index}].cel")
        for index, selector in enumerate(objects(obj, "selectors"))
        if not text(selector, "cel", "expression")
    ]


def _check_names(found: list[Json], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = set[str]()
    for index, each in enumerate(found):
        name, where = text(each, "name"), f"{field}[{index}].name"
        errors += [invalid(where, name, fault) for fault in dns_label_faults(name)]
        if name in seen:
            errors.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return errors


def check_claim_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check the allocation, and the consumers it is reserved for."""
    status = child(new, "status")
    allocation, reserved = status.get("allocation"), objects(status, "reservedFor")
    errors: list[FieldError] = []
    if reserved and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden("status.reservedFor", detail))
    if len(reserved) > _RESERVATIONS_MAX:
        detail = f"must have at most {_RESERVATIONS_MAX} items"
        errors.append(forbidden("status.reservedFor", detail))
    before = None if old is None else child(old, "status").get("allocation")
    if before is not None and allocation is not None and _devices(before) != _devices(allocation):
        errors.append(immutable("status.allocation", allocation))
    return errors


def _devices(allocation: Json) -> Mapping[str, object]:
    """Return the immutable part of an allocation; its time may be added."""
    return {key: value for key, value in allocation.items() if key != "allocationTimestamp"}


def check_slice(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a ResourceSlice."""
    spec = child(new, "spec")
    errors = _check_pool(spec)
    given = [key for key in _NODES if spec.get(key)]
    one_of = f"exactly one of {', '.join(f'`{key}`' for key in _NODES)} is required"
    if len(given) > 1:
        errors.append(invalid("spec", given, one_of))
    elif not given and not objects(spec, "sharedCounters"):
        errors.append(required("spec", one_of))
    if spec.get("nodeSelector") is not None:
        errors += check_node_selector(spec["nodeSelector"], "spec.nodeSelector")
    devices = objects(spec, "devices")
    if len(devices) > _DEVICES_MAX:
        errors.append(forbidden("spec.devices", f"must have at most {_DEVICES_MAX} items"))
    errors += _check_names(devices, "spec.devices")
    if old is not None:
        before = child(old, "spec")
        errors += [
            immutable(f"spec.{key}", spec.get(key))
            for key in ("driver", "nodeName")
            if spec.get(key) != before.get(key)
        ]
        if text(spec, "pool", "name") != text(before, "pool", "name"):
            errors.append(immutable("spec.pool.name", text(spec, "pool", "name")))
    return errors


def _check_pool(spec: Json) -> list[FieldError]:
    driver = text(spec, "driver")
    errors = [invalid("spec.driver", driver, fault) for fault in dns_subdomain_faults(driver)]
    if not text(spec, "pool", "name"):
        errors.append(required("spec.pool.name"))
    if number(spec, "pool", "resourceSliceCount") <= 0:
        count = number(spec, "pool", "resourceSliceCount")
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if number(spec, "pool", "generation") < 0:
        generation = number(spec, "pool", "generation")
        detail = "must be greater than or equal to zero"
        errors.append(invalid("spec.pool.generation", generation, detail))
    return errors
