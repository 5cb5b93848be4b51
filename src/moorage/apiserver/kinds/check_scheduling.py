"""Rules of a pod's scheduling constraints.

Place in the flow: part of the validation of pods and pod templates. Mirrors kubernetes v1.36
pkg/apis/core/validation/validation.go: validateAffinity, ValidateTolerations,
validateTopologySpreadConstraints, validateSchedulingGates; and apimachinery
pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_label_faults, label_value_faults, qualified_name_faults
from moorage.apiserver.kind import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.check_resources import NOT_ZERO
from moorage.apiserver.kinds.metadata import check_labels
from moorage.apiserver.kinds.tree import Json, child, items, number, objects, strings, text

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_IN_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_EXISTS_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"
_WEIGHT = "must be in the range 1-100"
_NO_SELECTOR = "must not be specified when labelSelector is not set"


def check_label_selector(selector: Any, field: str) -> list[FieldError]:
    """Check a label selector; None is valid, and the caller checks whether one is required."""
    if not isinstance(selector, dict):
        return []
    errors = check_labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, entry in enumerate(objects(selector, "matchExpressions")):
        where = f"{field}.matchExpressions[{index}]"
        errors += _check_operator(entry, where)
        errors += _check_label_name(text(entry, "key"), f"{where}.key")
        for place, value in enumerate(strings(entry, "values")):
            faults = label_value_faults(value)
            errors += [invalid(f"{where}.values[{place}]", value, fault) for fault in faults]
    return errors


def _check_label_name(key: str, field: str) -> list[FieldError]:
    return [invalid(field, key, fault) for fault in qualified_name_faults(key)]


def _check_operator(entry: Json, field: str, *, numeric: bool = False) -> list[FieldError]:
    operator = text(entry, "operator")
    values = items(entry, "values")
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{field}.values", _IN_VALUES)]
    if operator in ("Exists", "DoesNotExist"):
        return [forbidden(f"{field}.values", _EXISTS_VALUES)] if values else []
    if numeric and operator in ("Gt", "Lt"):
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if len(values) == 1 else [required(f"{field}.values", detail)]
    return [invalid(f"{field}.operator", operator, _BAD_OPERATOR)]


def check_node_selector(selector: Json, field: str) -> list[FieldError]:
    """Check a node selector, of a pod's affinity or of a volume."""
    terms = objects(selector, "nodeSelectorTerms")
    if not terms:
        detail = "must have at least one node selector term"
        return [required(f"{field}.nodeSelectorTerms", detail)]
    errors = []
    for index, term in enumerate(terms):
        errors += check_node_selector_term(term, f"{field}.nodeSelectorTerms[{index}]")
    return errors


def check_node_selector_term(term: Json, field: str) -> list[FieldError]:
    """Check one term: expressions about labels and about the name."""
    errors = []
    for index, entry in enumerate(objects(term, "matchExpressions")):
        where = f"{field}.matchExpressions[{index}]"
        errors += _check_operator(entry, where, numeric=True)
        errors += _check_label_name(text(entry, "key"), f"{where}.key")
        if text(entry, "operator") in ("In", "NotIn"):
            for place, value in enumerate(strings(entry, "values")):
                faults = label_value_faults(value)
                errors += [invalid(f"{where}.values[{place}]", value, fault) for fault in faults]
    for index, entry in enumerate(objects(term, "matchFields")):
        where = f"{field}.matchFields[{index}]"
        if text(entry, "operator") not in ("In", "NotIn"):
            errors.append(invalid(f"{where}.operator", text(entry, "operator"), _BAD_OPERATOR))
        elif len(items(entry, "values")) != 1:
            detail = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            errors.append(required(f"{where}.values", detail))
        if text(entry, "key") != "metadata.name":
            detail = "not a valid field selector key"
            errors.append(invalid(f"{where}.key", text(entry, "key"), detail))
    return errors


def check_affinity(affinity: Json, field: str) -> list[FieldError]:
    """Check node affinity, pod affinity and pod anti-affinity."""
    errors = []
    node = child(affinity, "nodeAffinity")
    where = f"{field}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        errors += check_node_selector(node[_REQUIRED], f"{where}.{_REQUIRED}")
    for index, entry in enumerate(objects(node, _PREFERRED)):
        place = f"{where}.{_PREFERRED}[{index}]"
        errors += _check_weight(entry, place)
        errors += check_node_selector_term(child(entry, "preference"), f"{place}.preference")
    for which in ("podAffinity", "podAntiAffinity"):
        part = child(affinity, which)
        for index, term in enumerate(objects(part, _REQUIRED)):
            errors += _check_affinity_term(term, f"{field}.{which}.{_REQUIRED}[{index}]")
        for index, entry in enumerate(objects(part, _PREFERRED)):
            place = f"{field}.{which}.{_PREFERRED}[{index}]"
            errors += _check_weight(entry, place)
            term = child(entry, "podAffinityTerm")
            errors += _check_affinity_term(term, f"{place}.podAffinityTerm")
    return errors


def _check_weight(entry: Json, field: str) -> list[FieldError]:
    weight = number(entry, "weight")
    return [] if 1 <= weight <= 100 else [invalid(f"{field}.weight", weight, _WEIGHT)]


def _check_affinity_term(term: Json, field: str) -> list[FieldError]:
    errors = check_label_selector(term.get("labelSelector"), f"{field}.labelSelector")
    errors += check_label_selector(term.get("namespaceSelector"), f"{field}.namespaceSelector")
    for name in strings(term, "namespaces"):
        faults = dns_label_faults(name)
        errors += [invalid(f"{field}.namespace", name, fault) for fault in faults]
    errors += _check_label_keys(term, field, "matchLabelKeys")
    errors += _check_label_keys(term, field, "mismatchLabelKeys")
    mismatch = set(strings(term, "mismatchLabelKeys"))
    for index, key in enumerate(strings(term, "matchLabelKeys")):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{field}.matchLabelKeys[{index}]", key, detail))
    return errors + _check_topology_key(term, field)


def _check_topology_key(holder: Json, field: str) -> list[FieldError]:
    key = text(holder, "topologyKey")
    if not key:
        return [required(f"{field}.topologyKey", "can not be empty")]
    return _check_label_name(key, f"{field}.topologyKey")


def _check_label_keys(holder: Json, field: str, which: str) -> list[FieldError]:
    keys = strings(holder, which)
    if keys and holder.get("labelSelector") is None:
        return [forbidden(f"{field}.{which}", _NO_SELECTOR)]
    errors = []
    for index, key in enumerate(keys):
        errors += _check_label_name(key, f"{field}.{which}[{index}]")
    return errors


def check_tolerations(tolerations: list[Json], field: str) -> list[FieldError]:
    """Check a list of tolerations."""
    errors = []
    for index, each in enumerate(tolerations):
        errors += _check_toleration(each, f"{field}[{index}]")
    return errors


def _check_toleration(each: Json, field: str) -> list[FieldError]:
    errors = []
    key, operator, value = text(each, "key"), text(each, "operator"), text(each, "value")
    if key:
        errors += _check_label_name(key, f"{field}.key")
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        errors.append(invalid(f"{field}.operator", operator, detail))
    effect = text(each, "effect")
    if each.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{field}.effect", effect, detail))
    if operator in ("", "Equal"):
        errors += [
            invalid(f"{field}.operator", value, fault) for fault in label_value_faults(value)
        ]
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(f"{field}.operator", each, detail))
    else:
        errors.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in TAINT_EFFECTS:
        errors.append(not_supported(f"{field}.effect", effect, TAINT_EFFECTS))
    return errors


def check_spread(constraints: list[Json], field: str) -> list[FieldError]:
    """Check topology spread constraints; a topology may be named once for each reaction."""
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(constraints):
        where = f"{field}[{index}]"
        errors += _check_constraint(each, where)
        pair = (text(each, "topologyKey"), text(each, "whenUnsatisfiable"))
        if pair in seen:
            place = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(place, f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def _check_constraint(each: Json, field: str) -> list[FieldError]:
    errors = []
    if number(each, "maxSkew") <= 0:
        errors.append(invalid(f"{field}.maxSkew", number(each, "maxSkew"), NOT_ZERO))
    errors += _check_topology_key(each, field)
    reaction = text(each, "whenUnsatisfiable")
    reactions = ("DoNotSchedule", "ScheduleAnyway")
    if reaction not in reactions:
        errors.append(not_supported(f"{field}.whenUnsatisfiable", reaction, reactions))
    domains = each.get("minDomains")
    if domains is not None:
        if domains <= 0:
            errors.append(invalid(f"{field}.minDomains", domains, NOT_ZERO))
        if reaction != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {reaction}"
            errors.append(invalid(f"{field}.minDomains", domains, detail))
    for which in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = each.get(which)
        if policy is not None and policy not in ("Honor", "Ignore"):
            errors.append(not_supported(f"{field}.{which}", policy, ("Honor", "Ignore")))
    errors += _check_label_keys(each, field, "matchLabelKeys")
    return errors + check_label_selector(each.get("labelSelector"), f"{field}.labelSelector")


def check_gates(spec: Json, field: str) -> list[FieldError]:
    """Check the names of scheduling gates; each may appear once."""
    errors = []
    seen: set[str] = set()
    for index, gate in enumerate(objects(spec, "schedulingGates")):
        name = text(gate, "name")
        where = f"{field}[{index}]"
        errors += _check_label_name(name, where)
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors
