"""HorizontalPodAutoscaler: stored as v2, and served as v2 and v1 (`autoscaler_v1` translates).

Mirrors kubernetes v1.36 pkg/apis/autoscaling/{v2/defaults.go,validation}.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.kinds.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    column,
    count,
    reference,
)
from moorage.kinds.fields import defaults, each, if_present, rules, within
from moorage.kinds.kind import FieldError, Obj, Translation, invalid
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, number, objects, text
from moorage.kinds.workloads.autoscaler_rules import (
    METRIC_FIELDS,
    check_metric,
    check_pace,
    check_reference,
)
from moorage.kinds.workloads.autoscaler_v1 import (
    CPU_PERCENT_DEFAULT,
    autoscaler_from_v2,
    autoscaler_to_v2,
    cpu_metric,
    drop_annotations,
)

_DOUBLE: Json = {"type": "Percent", "value": 100, "periodSeconds": 15}
_FOUR: Json = {"type": "Pods", "value": 4, "periodSeconds": 15}
# Fields of a target, in order of precedence; the status has the present value under its name.
_VALUES = ("averageUtilization", "averageValue", "value")


def _default_lists(obj: Json) -> None:
    spec = obj["spec"]
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_PERCENT_DEFAULT)]
    for key, policies in (("scaleUp", (_FOUR, _DOUBLE)), ("scaleDown", (_DOUBLE,))):
        if spec.get("behavior") is not None and spec["behavior"][key].get("policies") is None:
            spec["behavior"][key]["policies"] = [dict(policy) for policy in policies]


def _order(spec: Json, where: str) -> list[FieldError]:
    most = number(spec, "maxReplicas")
    if most >= number(spec, "minReplicas"):
        return []
    return [invalid(f"{where}.maxReplicas", most, "must be greater than or equal to `minReplicas`")]


def _target(metric: Json, metric_status: Json) -> str:
    """Return name, present value and target of a metric, and take the value from its status."""
    kind = METRIC_FIELDS.get(text(metric, "type"), "")
    source, current = child(metric, kind), child(metric_status, kind, "current")
    target, name = child(source, "target"), text(source, "name")
    key = next((key for key in _VALUES if target.get(key) is not None), "")
    sign = "%" if key == "averageUtilization" else ""
    present = f"{current[key]}{sign}" if current.get(key) is not None else UNKNOWN
    shown = f"{present}/{target.get(key)}{sign}"
    return f"{name}: {shown}" if name else shown


def _targets(obj: Obj) -> str:
    told = objects(obj, "status", "currentMetrics")
    return ", ".join(
        _target(metric, told[index] if index < len(told) else {})
        for index, metric in enumerate(objects(obj, "spec", "metrics"))
    )


def _least(obj: Obj) -> str:
    least = child(obj, "spec").get("minReplicas")
    return UNSET if least is None else str(least)


_COLUMNS = (
    NAME,
    column("Reference", lambda obj: reference(obj, "spec", "scaleTargetRef"), "What it scales"),
    column("Targets", _targets, "What is measured, and what is aimed at", empty=NONE),
    column("MinPods", _least, "Least replicas"),
    column("MaxPods", "spec.maxReplicas", "Most replicas", empty="0"),
    count("Replicas", "status.currentReplicas", "Replicas last seen", type_="string"),
    AGE,
)

V2 = ServedKind(
    resource=resources.HORIZONTAL_POD_AUTOSCALERS,
    acted_on_by="the autoscaler controller",
    columns=_COLUMNS,
    defaults=defaults(
        drop_annotations,
        _default_lists,
        unset={
            "spec.minReplicas": 1,
            "spec.behavior?.scaleUp.stabilizationWindowSeconds": 0,
            "spec.behavior?.scaleUp.selectPolicy": "Max",
            "spec.behavior?.scaleDown.selectPolicy": "Max",
            "status.desiredReplicas": 0,
        },
    ),
    rules=rules(
        ("spec.minReplicas", within(1)),
        ("spec.maxReplicas", within(1, None, "must be greater than 0")),
        ("spec", _order),
        ("spec.scaleTargetRef", check_reference),
        ("spec.metrics", each(check_metric)),
        ("spec.behavior.scaleUp spec.behavior.scaleDown", if_present(check_pace)),
    ),
)
# Objects of both versions are validated by the rules of v2.
V1 = ServedKind(
    resource=resources.HORIZONTAL_POD_AUTOSCALERS_V1,
    acted_on_by="the autoscaler controller",
    columns=_COLUMNS,
    cells=lambda obj, now_ns: V2.row(autoscaler_to_v2(obj), now_ns),
    defaults=defaults(unset={"spec.minReplicas": 1}),
    translation=Translation(
        stored=resources.HORIZONTAL_POD_AUTOSCALERS,
        to_stored=autoscaler_to_v2,
        from_stored=autoscaler_from_v2,
        stored_rules=True,
    ),
)
KINDS = (V2, V1)
