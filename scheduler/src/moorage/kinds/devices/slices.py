"""ResourceSlice: the devices that a driver offers, and the counters that they share.

Place in the flow: `devices` has the other kinds of ``resource.k8s.io``. Mirrors kubernetes v1.36
pkg/apis/resource/validation/validation.go (ValidateResourceSlice).
"""

from __future__ import annotations

import re
from typing import Any

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults
from moorage.api.quantity import NANO
from moorage.kinds.cells import AGE, NAME, UNSET, column
from moorage.kinds.devices.shared_rules import (
    by_name,
    check_binding_conditions,
    check_changed_spec,
    check_taint,
    device_name,
    members,
    pool_name,
    qualified_name,
    required_label,
    set_time_added,
)
from moorage.kinds.fields import driver_name, name_rule, rules, selectable, unchanging, within
from moorage.kinds.kind import (
    Context,
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, items, objects, text
from moorage.kinds.values.quantities import NOT_ZERO, nano_of
from moorage.kinds.values.selectors import node_selector

_DEVICES_MAX = 128
_DEVICES_WITH_MORE_MAX = 64
_VALUES_MAX = 32
_TEXT_LENGTH_MAX = 64
_OPTIONS_MAX = 10
_ANYWHERE = ("nodeName", "nodeSelector", "allNodes")
_PER_DEVICE = "perDeviceNodeSelection"
_LISTS = ("bools", "ints", "strings", "versions")
_IDENTIFIER = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    rf"(-{_IDENTIFIER}(\.{_IDENTIFIER})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_node_name = name_rule(dns_subdomain_faults, empty="refused")


def _places(owner: Json, where: str, faults: dict[str, str]) -> tuple[list[str], list[FieldError]]:
    """Return the fields that say where devices are, and the errors of their values.

    Parameters
    ----------
    owner
        A slice's spec, or a device.
    where
        Its path.
    faults
        Field -> what is wrong with a value that says nothing.
    """
    keys, errors = [], []
    for key, fault in faults.items():
        value, field = owner.get(key), f"{where}.{key}"
        if value is None:
            continue
        if value in ("", False):
            errors.append(invalid(field, value, fault))
            continue
        keys.append(f"`{key}`")
        if key == "nodeName":
            errors += _node_name(value, field)
        elif key == "nodeSelector":
            errors += node_selector(value, field)
    return keys, errors


_TRUE = "must be either unset or set to true"
_SLICE_FAULTS = {
    "nodeName": "must be either unset or set to a non-empty string",
    "nodeSelector": "",
    "allNodes": _TRUE,
    _PER_DEVICE: _TRUE,
}
_DEVICE_FAULTS = {"nodeName": "must not be empty", "nodeSelector": "", "allNodes": _TRUE}
_ONE_PLACE = (
    f"exactly one of {', '.join(f'`{key}`' for key in (*_ANYWHERE, _PER_DEVICE))} is required"
)
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)


def _place(spec: Json, where: str) -> list[FieldError]:
    keys, errors = _places(spec, where, _SLICE_FAULTS)
    terms = objects(spec, "nodeSelector", "nodeSelectorTerms")
    if spec.get("nodeSelector") is not None and len(terms) != 1:
        detail = "must have exactly one node selector term"
        errors.append(invalid(f"{where}.nodeSelector.nodeSelectorTerms", terms, detail))
    if not keys:
        errors.append(required(where, _ONE_PLACE))
    if len(keys) > 1:
        detail = f"{_ONE_PLACE}, but multiple fields are set"
        errors.append(invalid(where, f"{{{', '.join(keys)}}}", detail))
    return errors


def _device_place(device: Json, where: str, *, apart: bool) -> list[FieldError]:
    """Check the place of a device, which it has where devices of a slice are ``apart``."""
    if not apart:
        stray = any(device.get(key) is not None for key in _ANYWHERE)
        return [invalid(where, None, _NO_DEVICE_PLACE)] if stray else []
    found, errors = _places(device, where, _DEVICE_FAULTS)
    if not found:
        errors.append(required(where, _ONE_DEVICE_PLACE))
    if len(found) > 1:
        errors.append(invalid(where, f"{{{', '.join(found)}}}", _ONE_DEVICE_PLACE))
    return errors


def _text(value: str, where: str) -> list[FieldError]:
    long = len(value.encode()) > _TEXT_LENGTH_MAX
    return [too_long(where, _TEXT_LENGTH_MAX)] if long else []


def _version(value: str, where: str) -> list[FieldError]:
    if _VERSION.fullmatch(value):
        return _text(value, where)
    detail = "must be a string compatible with semver.org spec 2.0.0"
    return [invalid(where, value, detail), *_text(value, where)]


_OF_VALUES = {"string": _text, "strings": _text, "version": _version, "versions": _version}


def _attribute(attribute: Json, where: str) -> list[FieldError]:
    """Check an attribute: one value, or one list of values."""
    errors, keys = [], [key for key, value in attribute.items() if value is not None]
    for key in keys:
        value, field = attribute[key], f"{where}.{key}"
        rule = _OF_VALUES.get(key)
        if key in _LISTS and not value:
            errors.append(invalid(field, value, "must not be empty if specified"))
        elif key in _LISTS and rule:
            for index, each in enumerate(value):
                errors += rule(each, f"{field}[{index}]")
        elif rule:
            errors += rule(value, field)
    if len(keys) != 1:
        shown: Any = attribute if keys else ""
        errors.append(invalid(where, shown, "exactly one value must be specified"))
    return errors


def _capacity(capacity: Json, where: str, *, shared: bool) -> list[FieldError]:
    policy, field = capacity.get("requestPolicy"), f"{where}.requestPolicy"
    if policy is None:
        return []
    if not shared:
        return [forbidden(field, "allowMultipleAllocations must be true")]
    options, span = items(policy, "validValues"), policy.get("validRange")
    if options and span is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at '
            "the same time"
        )
        return [forbidden(field, detail)]
    kind = "validValues" if options else "validRange"
    if not options and span is None:
        return []
    if policy.get("default") is None:
        return [required(f"{field}.default", f"required when {kind} is defined")]
    if options:
        return _options(policy["default"], capacity.get("value"), options, f"{field}.{kind}")
    return _range(policy["default"], capacity.get("value"), span, f"{field}.{kind}")


def _options(default: Any, most: Any, options: list[Any], where: str) -> list[FieldError]:
    """Check the amounts of a capacity that may be requested."""
    amounts = [nano_of(each) or 0 for each in options]
    errors = [
        invalid(
            f"{where}[{index}]", str(options[index]), "values must be sorted in ascending order"
        )
        for index in range(1, len(options))
        if amounts[index - 1] > amounts[index]
    ]
    if len(options) > _OPTIONS_MAX:
        return [*errors, too_many(where, len(options), _OPTIONS_MAX)]
    for index, each in enumerate(options):
        if amounts[index] > (nano_of(most) or 0):
            detail = f"option is larger than capacity value: {most}"
            errors.append(invalid(f"{where}[{index}]", str(each), detail))
    # Upstream compares whole units here.
    whole = [-(-nano // NANO) for nano in amounts]
    errors += [
        duplicate(f"{where}[{index}]", str(each))
        for index, each in enumerate(whole)
        if each in whole[:index]
    ]
    if nano_of(default) not in amounts:
        detail = "default value is not valid according to the requestPolicy"
        errors.append(invalid(where, str(default), detail))
    return errors


def _range(default: Any, most: Any, span: Json, where: str) -> list[FieldError]:
    """Check the range of amounts of a capacity that may be requested."""
    least, top, step = (span.get(key) for key in ("min", "max", "step"))
    if least is None:
        return [required(f"{where}.min", "required when validRange is defined")]
    low, wanted, limit = (nano_of(each) or 0 for each in (least, default, most))
    high = None if top is None else nano_of(top) or 0
    errors = []
    if low > limit:
        detail = f"min is larger than capacity value: {most}"
        errors.append(invalid(f"{where}.min", str(least), detail))
    if wanted < low:
        detail = f"default is less than min: {least}"
        errors.append(invalid(f"{where}.default", str(default), detail))
    if high is not None:
        if low > high:
            errors.append(invalid(f"{where}.max", str(least), f"min is larger than max: {top}"))
        if high > limit:
            detail = f"max is larger than capacity value: {most}"
            errors.append(invalid(f"{where}.max", str(top), detail))
        if wanted > high:
            detail = f"default is more than max: {top}"
            errors.append(invalid(f"{where}.default", str(default), detail))
    return errors if step is None else errors + _steps(default, most, span, where)


def _steps(default: Any, most: Any, span: Json, where: str) -> list[FieldError]:
    """Check that the default and the end of a range are whole steps away from its start."""
    least, step = span["min"], span["step"]
    low, size, limit = (nano_of(each) or 0 for each in (least, step, most))
    field = f"{where}.step"
    if size <= 0:
        return [invalid(field, str(step), NOT_ZERO)]
    errors = []
    if low + size > limit:
        detail = f"one step {step} is larger than capacity value: {most}"
        errors.append(invalid(field, str(step), detail))
    ends = [default] if span.get("max") is None else [default, span["max"]]
    for each in ends:
        # Upstream counts whole units.
        away = -(-(nano_of(each) or 0) // NANO) - -(-low // NANO)
        if away % -(-size // NANO):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            errors.append(invalid(field, str(each), detail))
    return errors


def _named_values(values: Json | None, where: str, rule: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in (values or {}).items():
        errors += qualified_name(name, where) + rule(value or {}, f"{where}[{name}]")
    return errors


def _counters(holder: Json, where: str, key: str) -> list[FieldError]:
    """Check the counters of a set, or those that a device consumes of a set."""
    errors = required_label(holder.get(key), f"{where}.{key}")
    counters, field = child(holder, "counters"), f"{where}.counters"
    if not counters:
        return [*errors, required(field)]
    if len(counters) > _VALUES_MAX:
        return [*errors, too_many(field, len(counters), _VALUES_MAX)]
    for name in counters:
        errors += device_name(name, field)
    return errors


_consumed = members(
    lambda each, where: _counters(each, where, "counterSet"),
    2,
    lambda each: text(each, "counterSet"),
)
_shared_counters = members(lambda each, where: _counters(each, where, "name"), 8, by_name)
_taints = members(check_taint, 16)


def _device(device: Json, where: str, *, apart: bool) -> list[FieldError]:
    errors = device_name(device.get("name"), f"{where}.name")
    attributes, capacity = child(device, "attributes"), child(device, "capacity")
    count = len(attributes) + len(capacity)
    if count > _VALUES_MAX:
        detail = f"the total number of attributes and capacities must not exceed {_VALUES_MAX}"
        errors.append(invalid(where, count, detail))
    shared = device.get("allowMultipleAllocations") is True
    errors += _named_values(attributes, f"{where}.attributes", _attribute)
    errors += _named_values(
        capacity,
        f"{where}.capacity",
        lambda value, field: _capacity(value, field, shared=shared),
    )
    errors += _taints(device.get("taints"), f"{where}.taints")
    errors += _consumed(device.get("consumesCounters"), f"{where}.consumesCounters")
    errors += _device_place(device, where, apart=apart)
    return errors + check_binding_conditions(device, where)


def _devices(spec: Json, where: str) -> list[FieldError]:
    devices, field = objects(spec, "devices"), f"{where}.devices"
    errors = []
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        detail = "only one of `sharedCounters` or `devices` is allowed"
        errors.append(invalid(where, "", detail))
    more = any(each.get("taints") or each.get("consumesCounters") for each in devices)
    apart = spec.get(_PER_DEVICE) is True
    rule = members(
        lambda each, place: _device(each, place, apart=apart),
        _DEVICES_WITH_MORE_MAX if more else _DEVICES_MAX,
        by_name,
    )
    return errors + rule(devices, field)


_slice = rules(
    ("driver", driver_name),
    ("pool.name", pool_name),
    ("pool.resourceSliceCount", within(1, None, NOT_ZERO)),
    ("pool.generation", within(0, None, "must be greater than or equal to zero")),
    _place,
    _devices,
    ("sharedCounters", _shared_counters),
)


def _set_times(obj: Obj, ctx: Context) -> None:
    for device in objects(obj, "spec", "devices"):
        for taint in objects(device, "taints"):
            set_time_added(taint, ctx)


RESOURCE_SLICE = ServedKind(
    resource=resources.RESOURCE_SLICES,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        column("Node", "spec.nodeName", "Node its devices belong to", empty=UNSET),
        column("Driver", "spec.driver", "Driver that offers the devices"),
        column("Pool", "spec.pool.name", "Pool it is a part of"),
        AGE,
    ),
    fields=selectable("spec.nodeName", "spec.driver"),
    on_create=lambda obj, ctx, resource: _set_times(obj, ctx),
    on_update=lambda new, old, ctx: _set_times(new, ctx),
    counts_generations=True,
    check=check_changed_spec(rules(("spec", _slice))),
    change=unchanging("spec.pool.name spec.driver spec.nodeName"),
)
"""The kind ResourceSlice."""
