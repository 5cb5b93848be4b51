"""The rules of an autoscaler's metrics, and of how fast it scales.

Mirrors kubernetes v1.36 pkg/apis/autoscaling/validation (validateMetrics, validateBehavior and
what they call).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.kinds.fields import Rule, each, if_present, name_rule, needed, one_of, rules, within
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.tree import Json, text
from moorage.kinds.values.name_rules import path_segment_name
from moorage.kinds.values.quantities import check_quantity, nano_of

_WINDOW_MAX: Final = 3600
_PERIOD_MAX: Final = 1800

_segment = name_rule(path_segment_name, empty="required")
check_reference: Rule = rules(("kind name", _segment))
"""Check a reference to an object of any kind."""


def _positive(value: Any, where: str) -> list[FieldError]:
    nano = nano_of(value)
    if nano is None:
        return check_quantity(value, where)
    return [] if nano > 0 else [invalid(where, str(value), "must be positive")]


def _target_type(kind: str | None, where: str) -> list[FieldError]:
    if not kind:
        return [required(where, "must specify a metric target type")]
    if kind in ("Utilization", "Value", "AverageValue"):
        return []
    return [invalid(where, kind, "must be either Utilization, Value, or AverageValue")]


_target = rules(
    ("type", _target_type),
    ("value averageValue", if_present(_positive)),
    ("averageUtilization", if_present(within(1, None, "must be greater than 0"))),
)


def _aims(*names: str, neither: str, both: str = "") -> Rule:
    """Return the rule of a target of which one value is given; of both where ``both`` is empty.

    Parameters
    ----------
    names
        The fields with values, the one that an error names first.
    neither, both
        What to say where none is given, and where several are.
    """

    def check(target: Any, where: str) -> list[FieldError]:
        aims = [name for name in names if (target or {}).get(name) is not None]
        if not aims:
            return [required(f"{where}.{names[0]}", neither)]
        return [forbidden(f"{where}.{names[0]}", both)] if both and len(aims) > 1 else []

    return check


_of_pod = _aims(
    "averageUtilization",
    "averageValue",
    neither="must set either a target raw value or a target utilization",
    both="may not set both a target raw value and a target utilization",
)
_identifier = ("metric.name", _segment)
_OF_TYPES: Final[Mapping[str, tuple[str, Rule]]] = {
    "Object": (
        "object",
        rules(
            ("describedObject", check_reference),
            _identifier,
            ("target", _target),
            (
                "target",
                _aims(
                    "averageValue",
                    "value",
                    neither="must set either a target value or averageValue",
                ),
            ),
        ),
    ),
    "External": (
        "external",
        rules(
            _identifier,
            ("target", _target),
            (
                "target",
                _aims(
                    "averageValue",
                    "value",
                    neither="must set either a target value for metric or a per-pod target",
                    both="may not set both a target value for metric and a per-pod target",
                ),
            ),
        ),
    ),
    "Pods": (
        "pods",
        rules(
            _identifier,
            ("target", _target),
            (
                "target",
                _aims("averageValue", neither="must specify a positive target averageValue"),
            ),
        ),
    ),
    "Resource": (
        "resource",
        rules(
            ("name", needed("must specify a resource name")),
            ("target", _target),
            ("target", _of_pod),
        ),
    ),
    "ContainerResource": (
        "containerResource",
        rules(
            ("container", needed("must specify a container")),
            ("name", needed("must specify a resource name")),
            ("target", _target),
            ("target", _of_pod),
        ),
    ),
}
METRIC_FIELDS: Final = {kind: field for kind, (field, _) in _OF_TYPES.items()}
"""Type of a metric -> the field with its source."""


def check_metric(metric: Json, where: str) -> list[FieldError]:
    """Check a metric: the source of its type, and no other; of several the first is looked into."""
    kind = text(metric, "type")
    if not kind:
        return [required(f"{where}.type", "must specify a metric source type")]
    if kind not in _OF_TYPES:
        return [not_supported(f"{where}.type", kind, _OF_TYPES)]
    errors: list[FieldError] = []
    sources = [pair for pair in _OF_TYPES.values() if metric.get(pair[0]) is not None]
    for field, rule in sources[:1]:
        errors += rule(metric[field], f"{where}.{field}")
    own = METRIC_FIELDS[kind]
    if metric.get(own) is None:
        detail = "must populate information for the given metric source"
        errors.append(required(f"{where}.{own}", detail))
    detail = "must populate the given metric source only"
    return errors + [forbidden(f"{where}.{field}", detail) for field, _ in sources if field != own]


_policy = rules(
    ("type", one_of("Percent", "Pods")),
    ("value", within(1, None, "must be greater than zero")),
    ("periodSeconds", within(1, _PERIOD_MAX, f"must be between 1 and {_PERIOD_MAX}, inclusive")),
)


def _tolerance(value: Any, where: str) -> list[FieldError]:
    nano = nano_of(value)
    if nano is None:
        return check_quantity(value, where)
    detail = "must be greater or equal to zero"
    return [] if nano >= 0 else [invalid(where, str(value), detail)]


_window = within(0, _WINDOW_MAX, f"must be between 0 and {_WINDOW_MAX}, inclusive")
check_pace: Rule = rules(
    ("stabilizationWindowSeconds", if_present(_window)),
    ("selectPolicy", one_of("Disabled", "Max", "Min", empty="absent")),
    ("policies", needed("must specify at least one Policy")),
    ("policies", each(_policy)),
    ("tolerance", if_present(_tolerance)),
)
"""Check how fast an autoscaler scales in one direction."""
