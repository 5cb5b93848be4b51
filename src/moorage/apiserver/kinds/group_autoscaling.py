"""The kinds of the group ``autoscaling``: stored, but nothing is measured or scaled here.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. The stored version is v2; v2 and
v1 are served (`autoscaler_v1` translates). Mirrors kubernetes v1.36
pkg/apis/autoscaling/{v2/defaults.go,validation} and pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.apiserver.kind import (
    Column,
    FieldError,
    Translation,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.autoscaler_v1 import (
    CPU_PERCENT_DEFAULT,
    autoscaler_from_v2,
    autoscaler_to_v2,
    cpu_metric,
    drop_annotations,
)
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, UNKNOWN, age, name_of
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, attach, child, fill, number, objects, text

# Type of a metric -> the field with its source.
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_UP: Json = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
_DOWN: Json = {"selectPolicy": "Max"}
_DOUBLE: Json = {"type": "Percent", "value": 100, "periodSeconds": 15}
_FOUR: Json = {"type": "Pods", "value": 4, "periodSeconds": 15}

_COLUMNS = (
    NAME,
    Column("Reference", description="What it scales"),
    Column("Targets", description="What is measured, and what is aimed at"),
    Column("MinPods", description="Least replicas"),
    Column("MaxPods", description="Most replicas"),
    Column("Replicas", "integer", description="Replicas last seen"),
    AGE,
)

# Fields of a target, in order of precedence; the status has the present value under its name.
_VALUES = ("averageUtilization", "averageValue", "value")


def _default(obj: Json) -> None:
    drop_annotations(obj)
    spec = attach(obj, "spec")
    fill(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_PERCENT_DEFAULT)]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for key, rules, policies in (
            ("scaleUp", _UP, (_FOUR, _DOUBLE)),
            ("scaleDown", _DOWN, (_DOUBLE,)),
        ):
            found = attach(behavior, key)
            fill(found, rules)
            if not found.get("policies"):
                found["policies"] = [dict(policy) for policy in policies]
    fill(attach(obj, "status"), {"desiredReplicas": 0})


def _default_v1(obj: Json) -> None:
    fill(attach(obj, "spec"), {"minReplicas": 1})


def _check(new: Json, old: Json | None) -> list[FieldError]:
    del old
    spec = child(new, "spec")
    least, most = number(spec, "minReplicas"), number(spec, "maxReplicas")
    errors = []
    if least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(invalid("spec.maxReplicas", most, detail))
    errors += [
        required(f"spec.scaleTargetRef.{key}")
        for key in ("kind", "name")
        if not text(spec, "scaleTargetRef", key)
    ]
    for index, metric in enumerate(objects(spec, "metrics")):
        errors += _check_metric(metric, f"spec.metrics[{index}]")
    return errors


def _check_metric(metric: Json, field: str) -> list[FieldError]:
    kind = text(metric, "type")
    if not kind:
        return [required(f"{field}.type", "must specify a metric source type")]
    if kind not in _SOURCES:
        return [not_supported(f"{field}.type", kind, _SOURCES)]
    source = _SOURCES[kind]
    if metric.get(source) is None:
        detail = "must populate information for the given metric source"
        return [required(f"{field}.{source}", detail)]
    return []


def _target(metric: Json, told: Json) -> str:
    """Return name, present value and target of a metric; ``told`` is its part of the status."""
    kind = _SOURCES.get(text(metric, "type"), "")
    source, current = child(metric, kind), child(told, kind, "current")
    target = child(source, "target")
    name = text(source, "name")
    key = next((key for key in _VALUES if target.get(key) is not None), "")
    sign = "%" if key == "averageUtilization" else ""
    present = f"{current[key]}{sign}" if current.get(key) is not None else UNKNOWN
    aim = f"{target.get(key)}{sign}"
    return f"{name}: {present}/{aim}" if name else f"{present}/{aim}"


def _targets(obj: Json) -> str:
    told = objects(obj, "status", "currentMetrics")
    return ", ".join(
        _target(metric, told[index] if index < len(told) else {})
        for index, metric in enumerate(objects(obj, "spec", "metrics"))
    )


def _cells(obj: Json, now_ns: int) -> list[Any]:
    spec = child(obj, "spec")
    reference = child(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{text(reference, 'kind')}/{text(reference, 'name')}",
        _targets(obj) or NONE,
        str(least) if least is not None else "<unset>",
        str(number(spec, "maxReplicas")),
        number(obj, "status", "currentReplicas"),
        age(obj, now_ns),
    ]


def _cells_v1(obj: Json, now_ns: int) -> list[Any]:
    return _cells(autoscaler_to_v2(obj), now_ns)


# Objects of both versions are validated by the rules of v2.
KINDS = (
    ServedKind(
        resource=resources.HORIZONTAL_POD_AUTOSCALERS,
        acted_on_by="the autoscaler controller",
        columns=_COLUMNS,
        cells=_cells,
        defaults=_default,
        has_status=True,
        check=_check,
    ),
    ServedKind(
        resource=resources.HORIZONTAL_POD_AUTOSCALERS_V1,
        acted_on_by="the autoscaler controller",
        columns=_COLUMNS,
        cells=_cells_v1,
        defaults=_default_v1,
        has_status=True,
        translation=Translation(
            stored=resources.HORIZONTAL_POD_AUTOSCALERS,
            to_stored=autoscaler_to_v2,
            from_stored=autoscaler_from_v2,
            stored_rules=True,
        ),
    ),
)
