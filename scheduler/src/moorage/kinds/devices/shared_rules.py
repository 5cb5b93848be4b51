"""Rules that claims, device classes and resource slices share: names, sets, taints, selectors.

Place in the flow: `served`, `claim_status` and `slices` are built from these rules.
Mirrors kubernetes v1.36 pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.names import c_identifier_faults, dns_label_faults, dns_subdomain_faults
from moorage.base.clock import rfc3339
from moorage.kinds.fields import Rule, driver_name, duplicates, name_rule, one_of, rules
from moorage.kinds.kind import (
    Context,
    FieldError,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from moorage.kinds.metadata import value_faults
from moorage.kinds.served import Check
from moorage.kinds.tree import Json, strings, text
from moorage.kinds.values.selectors import label_name

CONDITIONS_MAX = 4
"""Binding conditions of a device, and failure conditions."""
_IDENTIFIER_LENGTH_MAX = 32
_POOL_LENGTH_MAX = 253
_EFFECTS = ("NoExecute", "NoSchedule", "None")

device_name: Rule = name_rule(dns_label_faults, empty="refused")
required_label: Rule = name_rule(dns_label_faults, empty="required")


def members(rule: Rule, most: int, key: Callable[[Any], Any] | None = None) -> Rule:
    """Return the rule of a list, by the rule of its members.

    Parameters
    ----------
    rule
        Rule of one member.
    most
        Greatest number of members; of more, only the number is an error.
    key
        The value in which members differ; None where they need not differ.
    """

    def check(listed: Any, where: str) -> list[FieldError]:
        entries = [each for each in listed or () if each is not None]
        if len(entries) > most:
            return [too_many(where, len(entries), most)]
        errors: list[FieldError] = []
        for index, each in enumerate(entries):
            errors += rule(each, f"{where}[{index}]")
        if key is not None:
            errors += duplicates(map(key, entries), lambda place: f"{where}[{place}]")
        return errors

    return check


def check_changed_spec(rule: Rule) -> Check:
    """Return the check of an object by a rule, unless its spec is the stored one.

    A stored spec may be older than a rule, and has to stand with new labels and finalizers.
    """
    return lambda new, old: (
        [] if old is not None and old.get("spec") == new.get("spec") else rule(new, "")
    )


def either(first: Rule, second: Rule) -> Rule:
    """Return the rule that asks ``second`` only where ``first`` finds no error."""
    return lambda value, where: first(value, where) or second(value, where)


def by_name(member: Json) -> str:
    """Return the name of a member, in which members differ."""
    return text(member, "name")


def pool_name(value: Any, where: str) -> list[FieldError]:
    """Check the name of a pool: DNS subdomains with slashes between them."""
    name = value or ""
    if not name:
        return [required(where)]
    errors = [too_long(where, _POOL_LENGTH_MAX)] if len(name) > _POOL_LENGTH_MAX else []
    return errors + [
        invalid(where, part, fault)
        for part in name.split("/")
        for fault in dns_subdomain_faults(part)
    ]


def _identifier(name: str, where: str) -> list[FieldError]:
    long = len(name) > _IDENTIFIER_LENGTH_MAX
    errors = [too_long(where, _IDENTIFIER_LENGTH_MAX)] if long else []
    return errors + [invalid(where, name, fault) for fault in c_identifier_faults(name)]


def qualified_name(name: str, where: str) -> list[FieldError]:
    """Check the name of an attribute or capacity, ``driver.example.com/memory`` or ``memory``."""
    domain, slash, last = name.partition("/")
    if not slash:
        return _identifier(name, where)
    if "/" in last:
        return [invalid(where, name, "must not contain more than one slash")]
    errors = (
        driver_name(domain, where)
        if domain
        else [invalid(where, "", "the domain must not be empty")]
    )
    if not last:
        return [*errors, invalid(where, "", "the name must not be empty")]
    return errors + _identifier(last, where)


def full_name(name: Any, where: str) -> list[FieldError]:
    """Check a qualified name that needs its domain."""
    errors = qualified_name(name or "", where)
    if "/" not in (name or ""):
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(where, name or "", detail))
    return errors


def check_taint(taint: Json, where: str) -> list[FieldError]:
    """Check a taint of a device."""
    errors = label_name(taint.get("key"), f"{where}.key")
    errors += value_faults(taint.get("value"), f"{where}.value")
    return errors + one_of(*_EFFECTS, empty="required")(taint.get("effect"), f"{where}.effect")


def set_time_added(taint: Json, ctx: Context) -> None:
    """Give a taint of a device without a time the time of this write (v1/defaults.go)."""
    if not taint.get("timeAdded"):
        taint["timeAdded"] = rfc3339(ctx.clock.now_ns())


def check_toleration(toleration: Json, where: str) -> list[FieldError]:
    """Check a toleration of a device request."""
    key, operator = text(toleration, "key"), text(toleration, "operator")
    value, field = text(toleration, "value"), f"{where}.value"
    errors = label_name(key, f"{where}.key") if key else []
    if operator == "Exists":
        if value:
            errors.append(invalid(field, value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += value_faults(value, field)
    elif operator:
        errors.append(not_supported(f"{where}.operator", operator, ("Equal", "Exists")))
    else:
        errors.append(required(f"{where}.operator"))
    effect = one_of(*_EFFECTS, empty="accepted")
    return errors + effect(toleration.get("effect"), f"{where}.effect")


def check_binding_conditions(owner: Json, where: str) -> list[FieldError]:
    """Check the binding conditions of a device: both kinds or none, and no condition twice."""
    errors = _conditions(owner, where)
    wanted, failing = (
        strings(owner, "bindingConditions"),
        strings(owner, "bindingFailureConditions"),
    )
    field, other = f"{where}.bindingConditions", f"{where}.bindingFailureConditions"
    errors += duplicates(wanted, lambda place: f"{field}[{place}]")
    errors += duplicates(failing, lambda place: f"{other}[{place}]")
    detail = "bindingFailureConditions must not overlap with bindingConditions"
    errors += [
        invalid(f"{other}[{index}]", each, detail)
        for index, each in enumerate(failing)
        if each in wanted
    ]
    if failing and not wanted:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(field, wanted, detail))
    if wanted and not failing:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(other, failing, detail))
    return errors


_conditions = rules(
    ("bindingConditions bindingFailureConditions", members(label_name, CONDITIONS_MAX))
)
