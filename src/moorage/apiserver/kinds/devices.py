"""The kinds of ``resource.k8s.io``, for dynamic resource allocation.

Mirrors kubernetes v1.36 pkg/apis/resource/validation. CEL expressions are compiled for their cost
only; a scheduler reports their errors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from moorage.api import resources
from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.api.selector_cost import (
    SELECTOR_COST_MAX,
    SELECTOR_LENGTH_MAX,
    has_many_macros,
    selector_cost,
)
from moorage.apiserver.custom.rules.runtime import Program, compile_over, is_installed
from moorage.apiserver.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from moorage.apiserver.kinds.cells import AGE, NAME, UNSET, column
from moorage.apiserver.kinds.fields import (
    Rule,
    each,
    kept,
    named,
    needed,
    one_of,
    rules,
    selectable,
    within,
)
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.quantities import NOT_ZERO
from moorage.apiserver.kinds.selectors import node_selector
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, fill_empty, number, objects, text

_RESERVATIONS_MAX = 256
_EXPRESSIONS_MAX: Final = 64 * 1024
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _default_requests(spec: Json) -> None:
    for request in objects(spec, "devices", "requests"):
        given = [request["exactly"]] if request.get("exactly") is not None else []
        for wanted in (*given, *objects(request, "firstAvailable")):
            fill_empty(wanted, {"allocationMode": "ExactCount"})
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1
            for toleration in objects(wanted, "tolerations"):
                fill_empty(toleration, {"operator": "Equal"})


def _names(most: int, rule: Rule | None = None) -> Rule:
    """Return the rule of a list of named objects, by the rule of one object."""
    named_one = rules(("name", named(dns_label_faults, empty="refused")), *([rule] if rule else ()))
    check_each = each(named_one, most=most)

    def check(found: list[Json] | None, where: str) -> list[FieldError]:
        errors = check_each(found, where)
        if len(found or ()) > most:
            return errors
        seen = set[str]()
        for index, entry in enumerate(found or ()):
            name = text(entry, "name")
            if name in seen:
                errors.append(duplicate(f"{where}[{index}]", name))
            seen.add(name)
        return errors

    return check


def _count(wanted: Json, where: str) -> list[FieldError]:
    mode, found, field = text(wanted, "allocationMode"), number(wanted, "count"), f"{where}.count"
    if mode == "All" and found:
        return [invalid(field, found, "must not be specified when allocationMode is 'All'")]
    return within(1, None, NOT_ZERO)(found, field) if mode == "ExactCount" else []


def _expression(selector: Json, where: str) -> list[FieldError]:
    expression, field = text(selector, "cel", "expression"), f"{where}.cel.expression"
    if len(expression.encode()) > SELECTOR_LENGTH_MAX:
        detail = f"may not be more than {SELECTOR_LENGTH_MAX} bytes"
        return [FieldError("FieldValueTooLong", field, "", detail)]
    if expression and _is_too_complex(expression):
        return [forbidden(field, "too complex, exceeds cost limit")]
    return needed()(expression, f"{where}.cel")


@lru_cache(maxsize=1024)
def _is_too_complex(expression: str) -> bool:
    """Whether a selector may cost too much, or is too expensive to compile."""
    if has_many_macros(expression):
        return True
    program = compile_over(expression, "bool", ("device",)) if is_installed() else None
    if not isinstance(program, Program):
        return False
    return selector_cost(program.expression.serialize()) > SELECTOR_COST_MAX


def _all_expressions(check: Rule) -> Rule:
    """Return a rule that also limits the length of all selectors: compiling takes 5 µs a byte."""

    def checked(spec: Json, where: str) -> list[FieldError]:
        if sum(map(len, _expressions(spec))) > _EXPRESSIONS_MAX:
            detail = f"all selectors together may not be more than {_EXPRESSIONS_MAX} bytes"
            return [forbidden(where, detail)]
        return check(spec, where)

    return checked


def _expressions(spec: Json) -> list[str]:
    """Return the selectors of a class or a claim."""
    requests = objects(spec, "devices", "requests")
    wanted = [child(request, "exactly") for request in requests]
    wanted += [each for request in requests for each in objects(request, "firstAvailable")]
    return [
        text(selector, "cel", "expression")
        for place in (spec, *wanted)
        for selector in objects(place, "selectors")
    ]


_selectors = rules(("selectors", each(_expression)))
_wanted = rules(
    ("deviceClassName", named(dns_subdomain_faults, empty="required")),
    ("allocationMode", one_of("All", "ExactCount")),
    _count,
    _selectors,
)
_alternatives = rules(("firstAvailable", _names(8, _wanted)))


def _request(request: Json, field: str) -> list[FieldError]:
    exactly, alternatives = request.get("exactly"), objects(request, "firstAvailable")
    one_way = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        return [required(field, one_way)]
    if exactly is not None and alternatives:
        return [invalid(field, request, one_way)]
    return (
        _alternatives(request, field) if exactly is None else _wanted(exactly, f"{field}.exactly")
    )


_claim = _all_expressions(rules(("devices.requests", _names(32, _request))))


def _check_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check the allocation, and the consumers it is reserved for."""
    allocation, reserved = (child(new, "status").get(key) for key in ("allocation", "reservedFor"))
    errors: list[FieldError] = []
    if reserved and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden("status.reservedFor", detail))
    if reserved is not None and len(reserved) > _RESERVATIONS_MAX:
        errors.append(too_many("status.reservedFor", len(reserved), _RESERVATIONS_MAX))
    before = child(old or {}, "status").get("allocation")
    if before is not None and allocation is not None and _fixed(before) != _fixed(allocation):
        errors.append(immutable("status.allocation", allocation))
    return errors


def _fixed(allocation: Json) -> Json:
    """Return the immutable part of an allocation; its time may be added."""
    return {key: value for key, value in allocation.items() if key != "allocationTimestamp"}


def _place(spec: Json, where: str) -> list[FieldError]:
    found = [key for key in _NODES if spec.get(key)]
    one_way = f"exactly one of {', '.join(f'`{key}`' for key in _NODES)} is required"
    if len(found) > 1:
        return [invalid(where, found, one_way)]
    return [] if found or objects(spec, "sharedCounters") else [required(where, one_way)]


_slice = rules(
    ("driver", named(dns_subdomain_faults, empty="refused")),
    ("pool.name", needed()),
    ("pool.resourceSliceCount", within(1, None, NOT_ZERO)),
    ("pool.generation", within(0, None, "must be greater than or equal to zero")),
    _place,
    ("nodeSelector", node_selector),
    ("devices", _names(128)),
)


def _state(obj: Obj) -> str:
    deleted, status = text(obj, "metadata", "deletionTimestamp"), child(obj, "status")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if objects(status, "reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


KINDS = (
    ServedKind(
        resource=resources.DEVICE_CLASSES,
        acted_on_by="the scheduler",
        columns=(NAME, AGE),
        counts_generations=True,
        rules=rules(("spec", _all_expressions(_selectors))),
    ),
    ServedKind(
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
        counts_generations=True,
        rules=rules(("spec", _slice)),
        change=kept("spec.driver spec.nodeName spec.pool.name"),
    ),
    ServedKind(
        resource=resources.RESOURCE_CLAIMS,
        acted_on_by="the scheduler, the claim controller",
        columns=(
            NAME,
            column("State", _state, "Whether it is pending, allocated, reserved, deleted"),
            AGE,
        ),
        defaults=lambda obj: _default_requests(child(obj, "spec")),
        open_status=(),
        rules=rules(("spec", _claim)),
        change=kept("spec"),
        check_status=_check_status,
    ),
    ServedKind(
        resource=resources.RESOURCE_CLAIM_TEMPLATES,
        acted_on_by="the claim controller",
        columns=(NAME, AGE),
        defaults=lambda obj: _default_requests(child(obj, "spec", "spec")),
        rules=rules(("spec.spec", _claim)),
        change=kept("spec"),
    ),
)
