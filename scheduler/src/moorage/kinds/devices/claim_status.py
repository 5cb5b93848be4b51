"""The status of a ResourceClaim: its allocation, its consumers, and the reports about its devices.

Place in the flow: `devices` checks writes of the status here. Mirrors kubernetes v1.36
pkg/apis/resource/validation/validation.go (ValidateResourceClaimStatusUpdate).
"""

from __future__ import annotations

import re

from moorage.kinds.devices.claims import (
    check_configuration,
    check_parameters,
    names_of,
    request_reference,
)
from moorage.kinds.devices.shared_rules import (
    check_binding_conditions,
    check_toleration,
    device_name,
    members,
    pool_name,
)
from moorage.kinds.fields import Rule, bytes_within, driver_name, if_present, needed, one_of, rules
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid
from moorage.kinds.metadata import immutable
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.addresses import check_interface_address
from moorage.kinds.values.conditions import conditions
from moorage.kinds.values.selectors import node_selector

_CONSUMERS_MAX = 256
_RESULTS_MAX = 32
_CONFIGURATIONS_MAX = 64
_CONDITIONS_MAX = 8
_ADDRESSES_MAX = 16
_INTERFACE_LENGTH_MAX = 256
_HARDWARE_LENGTH_MAX = 128
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_UUID = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
    "lowercase hexadecimal characters"
)
_LOCKED = (
    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
)


def _share(value: str, where: str) -> list[FieldError]:
    return [] if _UUID.fullmatch(value) else [invalid(where, value, _NO_UUID)]


_consumers = members(
    rules(("resource", needed()), ("name", needed()), ("uid", needed())),
    _CONSUMERS_MAX,
    lambda each: text(each, "uid"),
)
_device = rules(
    ("driver", driver_name),
    ("pool", pool_name),
    ("device", device_name),
    ("shareID", if_present(_share)),
)


_network = rules(
    ("interfaceName", bytes_within(_INTERFACE_LENGTH_MAX)),
    ("hardwareAddress", bytes_within(_HARDWARE_LENGTH_MAX)),
    ("ips", members(check_interface_address, _ADDRESSES_MAX, lambda address: address)),
)
_report = rules(
    _device,
    ("conditions", conditions(_CONDITIONS_MAX)),
    ("data", if_present(check_parameters)),
    ("networkData", if_present(_network)),
)


def _device_id(device: Json) -> str:
    """Return the identity of an allocated device, as upstream shows it."""
    parts = [text(device, key) for key in ("driver", "pool", "device", "shareID")]
    return "/".join(part for part in parts if part)


def _result(names: frozenset[str]) -> Rule:
    return rules(
        ("request", request_reference(names)),
        _device,
        check_binding_conditions,
        ("tolerations", members(check_toleration, 16)),
    )


def _allocation(allocation: Json, where: str, names: frozenset[str]) -> list[FieldError]:
    devices, field = child(allocation, "devices"), f"{where}.devices"
    errors = members(_result(names), _RESULTS_MAX)(devices.get("results"), f"{field}.results")
    source = one_of("FromClaim", "FromClass", empty="required")
    configuration = rules(("source", source), check_configuration(names))
    errors += members(configuration, _CONFIGURATIONS_MAX)(devices.get("config"), f"{field}.config")
    return errors + node_selector(allocation.get("nodeSelector"), f"{where}.nodeSelector")


def _fixed(allocation: Json) -> Json:
    """Return the immutable part of an allocation; its time may be added."""
    return {key: value for key, value in allocation.items() if key != "allocationTimestamp"}


def _reports(status: Json) -> Rule:
    """Return the rule of the reports about devices, which have to be allocated."""
    allocated = {_device_id(each) for each in objects(status, "allocation", "devices", "results")}

    def check(report: Json, where: str) -> list[FieldError]:
        errors, name = _report(report, where), _device_id(report)
        if name not in allocated:
            errors.append(invalid(where, name, "must be an allocated device in the claim"))
        return errors

    # Their number is bounded by that of the results.
    return members(check, len(objects(status, "devices")), _device_id)


def check_claim_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a write of a claim's status."""
    status, before = child(new, "status"), child(old or {}, "status")
    reserved, allocation = objects(status, "reservedFor"), status.get("allocation")
    errors = _consumers(reserved, "status.reservedFor")
    errors += _reports(status)(status.get("devices"), "status.devices")
    if reserved and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden("status.reservedFor", detail))
    elif reserved and text(new, "metadata", "deletionTimestamp"):
        earlier = objects(before, "reservedFor")
        if any(each not in earlier for each in reserved):
            errors.append(forbidden("status.reservedFor", _LOCKED))
    if allocation is None:
        return errors
    if before.get("allocation") is None:
        names = names_of(child(new, "spec", "devices"))
        return errors + _allocation(allocation, "status.allocation", names)
    if _fixed(before["allocation"]) != _fixed(allocation):
        errors.append(immutable("status.allocation", allocation))
    return errors
