"""The rules of a pod's scheduling constraints: affinity, topology spread, scheduling gates."""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_label_faults
from moorage.kinds.fields import each, needed, one_of, rules, within
from moorage.kinds.kind import FieldError, duplicate, forbidden, invalid
from moorage.kinds.tree import Json, child, objects, strings, text
from moorage.kinds.values.quantities import NOT_ZERO
from moorage.kinds.values.selectors import (
    check_label_selector,
    label_name,
    node_selector,
    preferred_term,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_weight = within(1, 100, "must be in the range 1-100")
_some_key = needed("can not be empty")


def _label_keys(holder: Json, field: str, which: str) -> list[FieldError]:
    keys = strings(holder, which)
    if keys and holder.get("labelSelector") is None:
        detail = "must not be specified when labelSelector is not set"
        return [forbidden(f"{field}.{which}", detail)]
    errors = []
    for index, key in enumerate(keys):
        errors += label_name(key, f"{field}.{which}[{index}]")
    return errors


def _namespaces(term: Json, field: str) -> list[FieldError]:
    return [
        invalid(f"{field}.namespace", name, fault)
        for name in strings(term, "namespaces")
        for fault in dns_label_faults(name)
    ]


def _match_keys(term: Json, field: str) -> list[FieldError]:
    """Check the label keys of an affinity term or a constraint, after they were merged.

    Notes
    -----
    kubernetes v1.36 validateMatchLabelKeysAndMismatchLabelKeys, with its odd path of the second
    error. A key that is in the selector as well is known by the expression of the merge.
    """
    errors = _label_keys(term, field, "matchLabelKeys")
    errors += _label_keys(term, field, "mismatchLabelKeys")
    places = {key: index for index, key in enumerate(strings(term, "matchLabelKeys"))}
    selector = child(term, "labelSelector")
    seen = set(child(selector, "matchLabels"))
    for entry in objects(selector, "matchExpressions"):
        key = text(entry, "key")
        if key in places and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{field}[{places[key]}]", key, detail))
        seen.add(key)
    mismatch = set(strings(term, "mismatchLabelKeys"))
    for index, key in enumerate(strings(term, "matchLabelKeys")):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{field}.matchLabelKeys[{index}]", key, detail))
    return errors


_term = rules(
    ("labelSelector namespaceSelector", check_label_selector),
    _namespaces,
    _match_keys,
    ("topologyKey", _some_key),
    ("topologyKey", label_name),
)
_terms = rules(
    (REQUIRED, each(_term)),
    (PREFERRED, each(rules(("weight", _weight), ("podAffinityTerm", _term)))),
)
_preference = rules(("weight", _weight), ("preference", preferred_term))
check_affinity = rules(
    (f"nodeAffinity.{REQUIRED}", node_selector),
    (f"nodeAffinity.{PREFERRED}", each(_preference)),
    ("podAffinity podAntiAffinity", _terms),
)
"""Check node affinity, pod affinity and pod anti-affinity."""


def _domains(constraint: Json, field: str) -> list[FieldError]:
    domains, reaction = constraint.get("minDomains"), text(constraint, "whenUnsatisfiable")
    if domains is None:
        return []
    errors = within(1, None, NOT_ZERO)(domains, f"{field}.minDomains")
    if reaction != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {reaction}"
        errors.append(invalid(f"{field}.minDomains", domains, detail))
    return errors


_constraint = rules(
    ("maxSkew", within(1, None, NOT_ZERO)),
    ("topologyKey", _some_key),
    ("whenUnsatisfiable", one_of("DoNotSchedule", "ScheduleAnyway")),
    _domains,
    ("nodeAffinityPolicy nodeTaintsPolicy", one_of("Honor", "Ignore", empty="absent")),
    _match_keys,
    ("labelSelector", check_label_selector),
)


def check_spread(constraints: Any, field: str) -> list[FieldError]:
    """Check topology spread constraints; a topology may be named once for each reaction."""
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(objects({"": constraints}, "")):
        where = f"{field}[{index}]"
        errors += _constraint(entry, where)
        pair = (text(entry, "topologyKey"), text(entry, "whenUnsatisfiable"))
        if pair in seen:
            place = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(place, f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def check_gates(gates: Any, field: str) -> list[FieldError]:
    """Check the names of scheduling gates; each may appear once."""
    errors = []
    seen: set[str] = set()
    for index, gate in enumerate(objects({"": gates}, "")):
        name, where = text(gate, "name"), f"{field}[{index}]"
        errors += label_name(name, where)
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors


def affinity_terms(spec: Json) -> list[Json]:
    """Every term of pod affinity and pod anti-affinity, required and preferred."""
    terms: list[Json] = []
    for which in ("podAffinity", "podAntiAffinity"):
        part = child(spec, "affinity", which)
        terms += objects(part, REQUIRED)
        for weighted in objects(part, PREFERRED):
            terms.append(child(weighted, "podAffinityTerm"))
    return terms
