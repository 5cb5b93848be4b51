"""HorizontalPodAutoscalers of ``autoscaling/v1``, and the v2 objects they are stored as.

Place in the flow: `group_autoscaling` hands the two functions to the catalog; stored is v2, which
says all that v1 can. v1 itself knows one number, the share of cpu to aim at. All else of a v2
object travels in annotations, so that a client of v1 that reads an object and writes it back
loses nothing. Mirrors kubernetes v1.36 pkg/apis/autoscaling/v1/{conversion,defaults}.go and
pkg/apis/autoscaling/{annotations,helpers}.go. An annotation that cannot be read counts as absent,
as upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.resources import HORIZONTAL_POD_AUTOSCALERS, HORIZONTAL_POD_AUTOSCALERS_V1
from moorage.apiserver.kinds.autoscaler_metrics import (
    spec_from_v1,
    spec_to_v1,
    status_from_v1,
    status_to_v1,
)
from moorage.apiserver.kinds.tree import Json, child, objects, text
from moorage.apiserver.schema.catalog import definition as definition_named
from moorage.apiserver.schema.check import definition_type_errors, prune_definition

CPU_PERCENT_DEFAULT: Final = 80
"""What an autoscaler without metrics aims at, in percent of the cpu that was requested."""

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_PREFIX}metrics"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_CURRENT_METRICS: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
# The two last were of v2beta2; nobody writes them any more, and they are dropped all the same.
_ANNOTATIONS: Final = frozenset(
    {
        _METRICS,
        _BEHAVIOR,
        _CURRENT_METRICS,
        _CONDITIONS,
        f"{_PREFIX}scale-down-tolerance",
        f"{_PREFIX}scale-up-tolerance",
    }
)
_V2: Final = "io.k8s.api.autoscaling.v2"
_SPEC_SHARED: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS_SHARED: Final = ("observedGeneration", "lastScaleTime")
# Fields of the behavior in the order of pkg/apis/autoscaling/types.go. Upstream writes its
# internal type down, with the names its fields have in Go.
_DIRECTIONS: Final = ("scaleUp", "scaleDown")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final[Mapping[str, Any]] = {"type": "", "value": 0, "periodSeconds": 0}
_CONDITION: Final = (
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
)


def cpu_metric(percent: int) -> Json:
    """Return the metric of a v2 spec that aims at a share of the cpu requested."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def drop_annotations(obj: Json) -> None:
    """Drop the annotations that carry what v1 has no fields for, in place."""
    meta = obj.get("metadata") or {}
    found = meta.get("annotations")
    if found and not _ANNOTATIONS.isdisjoint(found):
        kept = {key: value for key, value in found.items() if key not in _ANNOTATIONS}
        meta["annotations"] = kept
        if not kept:
            del meta["annotations"]


# --- from v2 --------------------------------------------------------------------------------


def autoscaler_from_v2(obj: Json) -> Json:
    """Return a stored autoscaler as ``autoscaling/v1``; values are shared."""
    metrics, current = objects(obj, "spec", "metrics"), objects(obj, "status", "currentMetrics")
    others = [spec_to_v1(each) for each in metrics if _cpu_percent(each, "target") is None]
    behavior = child(obj, "spec").get("behavior")
    conditions = objects(obj, "status", "conditions")
    carried = {
        _METRICS: others,
        _CURRENT_METRICS: [status_to_v1(each) for each in current],
        _BEHAVIOR: None if behavior is None else _internal_behavior(behavior),
        _CONDITIONS: [_condition(each) for each in conditions],
    }
    found: Json = {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS_V1.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS_V1.kind,
        "metadata": dict(obj.get("metadata") or {}),
        "spec": _only(child(obj, "spec"), _SPEC_SHARED),
        "status": _only(child(obj, "status"), _STATUS_SHARED),
    }
    drop_annotations(found)
    texts = {name: _go_json(value) for name, value in carried.items() if value}
    if texts:
        found["metadata"]["annotations"] = (found["metadata"].get("annotations") or {}) | texts
    aims = [_cpu_percent(each, "target") for each in metrics]
    _set(found["spec"], "targetCPUUtilizationPercentage", [p for p in aims if p is not None][:1])
    status = found["status"]
    for name in ("currentReplicas", "desiredReplicas"):
        status[name] = child(obj, "status").get(name) or 0
    seen = [_cpu_percent(each, "current") for each in current]
    _set(status, "currentCPUUtilizationPercentage", [p for p in seen if p is not None][-1:])
    return found


def _set(obj: Json, name: str, values: list[Any]) -> None:
    for value in values:
        obj[name] = value


def _cpu_percent(metric: Json, part: str) -> int | None:
    """Return the share of cpu a metric aims at or has seen; None when it is about another thing."""
    if text(metric, "type") != "Resource" or text(metric, "resource", "name") != "cpu":
        return None
    found: int | None = child(metric, "resource", part).get("averageUtilization")
    return found


def _only(obj: Json, names: tuple[str, ...]) -> Json:
    return {name: obj[name] for name in names if obj.get(name) is not None}


def _internal_behavior(behavior: Json) -> Json:
    return {_go_name(name): _internal_rules(behavior.get(name)) for name in _DIRECTIONS}


def _internal_rules(rules: Json | None) -> Json | None:
    if rules is None:
        return None
    found = {_go_name(name): rules.get(name) for name in _RULES}
    if found["Policies"] is not None:
        found["Policies"] = [
            {_go_name(name): each.get(name, empty) for name, empty in _POLICY.items()}
            for each in objects(rules, "policies")
        ]
    return found


def _go_name(name: str) -> str:
    return name[0].upper() + name[1:]


def _condition(found: Json) -> Json:
    shown = {name: found[name] for name in _CONDITION if found.get(name) not in (None, "")}
    # Go leaves a time out only where it is behind a pointer.
    return {"type": "", "status": "", "lastTransitionTime": None} | shown


def _go_json(value: Any) -> str:
    """Write JSON as Go does, which escapes what HTML would take for its own."""
    found = msgspec.json.encode(value).decode()
    for letter in "&<>\u2028\u2029":
        found = found.replace(letter, f"\\u{ord(letter):04x}")
    return found


# --- to v2 ----------------------------------------------------------------------------------


def autoscaler_to_v2(obj: Json) -> Json:
    """Return an ``autoscaling/v1`` autoscaler as it is stored; values are shared."""
    annotations = child(obj, "metadata", "annotations")
    found: Json = {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": dict(obj.get("metadata") or {}),
        "spec": _only(child(obj, "spec"), _SPEC_SHARED),
        "status": _only(child(obj, "status"), _STATUS_SHARED),
    }
    drop_annotations(found)
    _fill_spec(found["spec"], child(obj, "spec"), annotations)
    _fill_status(found["status"], child(obj, "status"), annotations)
    return found


def _fill_spec(spec: Json, sent: Json, annotations: Json) -> None:
    metrics = _read_list(annotations, _METRICS, spec_from_v1, "MetricSpec") or []
    percent = sent.get("targetCPUUtilizationPercentage")
    if percent is not None:
        metrics.append(cpu_metric(percent))
    spec["metrics"] = metrics or [cpu_metric(CPU_PERCENT_DEFAULT)]
    behavior = _read(annotations, _BEHAVIOR, _read_behavior)
    if behavior:
        spec["behavior"] = behavior


def _fill_status(status: Json, sent: Json, annotations: Json) -> None:
    # Zero is left out of the one in v2, and always shown of the other.
    if sent.get("currentReplicas"):
        status["currentReplicas"] = sent["currentReplicas"]
    status["desiredReplicas"] = sent.get("desiredReplicas") or 0
    metrics = _read_list(annotations, _CURRENT_METRICS, status_from_v1, "MetricStatus")
    percent = sent.get("currentCPUUtilizationPercentage")
    if metrics is None and percent is not None:
        seen = {"name": "cpu", "current": {"averageUtilization": percent}}
        metrics = [{"type": "Resource", "resource": seen}]
    if metrics:
        status["currentMetrics"] = metrics
    kind = "HorizontalPodAutoscalerCondition"
    conditions = _read_list(annotations, _CONDITIONS, _as_object, kind)
    if conditions:
        status["conditions"] = conditions


def _read(annotations: Json, name: str, read: Callable[[Any], Any]) -> Any:
    """Return what an annotation says; None where it is absent or makes no sense."""
    if name not in annotations:
        return None
    try:
        return read(msgspec.json.decode(annotations[name]))
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return None


def _read_list(
    annotations: Json, name: str, read: Callable[[Json], Json], definition: str
) -> list[Json] | None:
    def each(value: Any) -> list[Json]:
        if value is not None and not isinstance(value, list):
            raise TypeError(f"a list is expected, not {value!r}")
        return [_checked(read(item), definition) for item in value or ()]

    found: list[Json] | None = _read(annotations, name, each)
    return found


def _as_object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise TypeError(f"an object is expected, not {value!r}")
    return value


def _checked(obj: Json, definition: str) -> Json:
    """Return what was read if its types are right; nulls and unknown fields are dropped."""
    found = definition_named(f"{_V2}.{definition}")
    errors = definition_type_errors(found, obj)
    if errors:
        raise ValueError(errors[0])
    prune_definition(found, obj)
    return obj


def _read_behavior(value: Any) -> Json:
    """Read a behavior; Go does not mind how names are capitalized."""
    if value is None:
        return {}
    found = _named(_as_object(value), _DIRECTIONS)
    for direction, rules in found.items():
        named = found[direction] = _named(_as_object(rules), _RULES)
        if isinstance(named.get("policies"), list):
            named["policies"] = [_named(_as_object(p), _POLICY) for p in named["policies"]]
    return _checked(found, "HorizontalPodAutoscalerBehavior")


def _named(obj: Json, names: Iterable[str]) -> Json:
    """Return those fields that are known, under their own names; nulls are dropped."""
    lower = {key.lower(): value for key, value in obj.items()}
    return {name: lower[name.lower()] for name in names if lower.get(name.lower()) is not None}
