"""The rules of label selectors and node selectors, which many kinds contain.

Mirrors kubernetes v1.36 apimachinery pkg/apis/meta/v1/validation, and
pkg/apis/core/validation/validation.go (ValidateNodeSelector).
"""

from __future__ import annotations

from typing import Any

from moorage.api.names import dns_subdomain_faults, label_value_faults, qualified_name_faults
from moorage.kinds.fields import Rule, duplicates, each, if_present, name_rule, rules
from moorage.kinds.kind import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
)
from moorage.kinds.metadata import check_labels
from moorage.kinds.tree import Json, items, objects, strings, text

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_BAD_OPERATOR = "not a valid selector operator"

label_name: Rule = name_rule(qualified_name_faults, empty="refused")


def _operator(entry: Json, field: str, *, numeric: bool = False) -> list[FieldError]:
    operator, values = text(entry, "operator"), items(entry, "values")
    if operator in ("In", "NotIn"):
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{field}.values", detail)]
    if operator in ("Exists", "DoesNotExist"):
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(f"{field}.values", detail)] if values else []
    if numeric and operator in ("Gt", "Lt"):
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if len(values) == 1 else [required(f"{field}.values", detail)]
    return [invalid(f"{field}.operator", operator, _BAD_OPERATOR)]


def _values(entry: Json, field: str) -> list[FieldError]:
    return [
        invalid(f"{field}.values[{place}]", value, fault)
        for place, value in enumerate(strings(entry, "values"))
        for fault in label_value_faults(value)
    ]


def _preferred_expression(entry: Json, field: str) -> list[FieldError]:
    return _operator(entry, field, numeric=True) + label_name(entry.get("key"), f"{field}.key")


def _node_expression(entry: Json, field: str) -> list[FieldError]:
    return _preferred_expression(entry, field) + _values(entry, field)


def _node_field(entry: Json, field: str) -> list[FieldError]:
    errors = []
    if text(entry, "operator") not in ("In", "NotIn"):
        errors.append(invalid(f"{field}.operator", text(entry, "operator"), _BAD_OPERATOR))
    elif len(items(entry, "values")) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{field}.values", detail))
    if text(entry, "key") != "metadata.name":
        detail = "not a valid field selector key"
        return [*errors, invalid(f"{field}.key", text(entry, "key"), detail)]
    return errors + [
        invalid(f"{field}.values[{place}]", value, fault)
        for place, value in enumerate(strings(entry, "values"))
        for fault in dns_subdomain_faults(value)
    ]


_selector = rules(
    ("matchLabels", check_labels),
    ("matchExpressions", each(rules(_operator, ("key", label_name), _values))),
)
_terms = each(
    rules(("matchExpressions", each(_node_expression)), ("matchFields", each(_node_field)))
)
preferred_term: Rule = rules(
    ("matchExpressions", each(_preferred_expression)), ("matchFields", each(_node_field))
)
"""Check a term of preferred node affinity, whose values may be no values of labels."""


def check_label_selector(selector: Any, field: str) -> list[FieldError]:
    """Check a label selector; None is valid, and the caller checks whether one is required."""
    return _selector(selector, field) if isinstance(selector, dict) else []


def check_node_selector(selector: Json, field: str) -> list[FieldError]:
    """Check a node selector, of a pod's affinity or of a volume."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        detail = "must have at least one node selector term"
        return [required(f"{field}.nodeSelectorTerms", detail)]
    return _terms(terms, f"{field}.nodeSelectorTerms")


def check_topologies(terms: Any, field: str) -> list[FieldError]:
    """Check topology selector terms, of a storage class; every two terms have to differ.

    Notes
    -----
    kubernetes v1.36 pkg/apis/storage/validation (validateAllowedTopologies). A term without
    expressions is a duplicate there as well: upstream compares it with places not filled yet.
    Upstream has an error for each equal term; one is enough here.
    """
    errors: list[FieldError] = []
    keys = {frozenset[Any]()}
    for index, term in enumerate(objects({"": terms}, "")):
        where, topology = f"{field}[{index}].matchLabelExpressions", dict[str, frozenset[str]]()
        for place, entry in enumerate(objects(term, "matchLabelExpressions")):
            errors += _topology(entry, f"{where}[{place}]")
            key = text(entry, "key")
            if key in topology:
                errors.append(duplicate(f"{where}[{place}].key", key))
            topology[key] = frozenset(strings(entry, "values"))
        whole = frozenset(topology.items())
        if whole in keys:
            errors.append(duplicate(where, ""))
        keys.add(whole)
    return errors


def _topology(entry: Json, field: str) -> list[FieldError]:
    values = strings(entry, "values")
    errors = [] if values else [required(f"{field}.values")]
    errors += duplicates(values, lambda place: f"{field}.values[{place}]")
    return errors + label_name(entry.get("key"), f"{field}.key")


node_selector: Rule = if_present(check_node_selector)
