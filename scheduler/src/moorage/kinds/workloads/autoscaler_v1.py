"""HorizontalPodAutoscalers of ``autoscaling/v1``, and their stored v2 form.

`autoscaler` gives the two functions to its kinds. The stored version is v2, which has all fields of
v1. v1 itself has one target, the utilization of cpu. One annotation holds the other fields of a v2
object in the form of v2. So a client of v1 that reads an object and writes it back loses nothing.
A malformed annotation counts as absent. Upstream (kubernetes v1.36
pkg/apis/autoscaling/v1/conversion.go) holds the same fields in annotations of an older form, which
are dropped here as upstream does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.resources import HORIZONTAL_POD_AUTOSCALERS, HORIZONTAL_POD_AUTOSCALERS_V1
from moorage.kinds.facts import definition
from moorage.kinds.schema.check import prune, type_errors
from moorage.kinds.tree import Json, child, objects, text

CPU_PERCENT_DEFAULT: Final = 80
"""Target of an autoscaler without metrics, in percent of the requested cpu."""
CARRIED: Final = "autoscaling.moorage.dev/v2"
"""Annotation of a v1 object: the fields of the stored v2 object that v1 does not have, as JSON."""
_OLDER: Final = "autoscaling.alpha.kubernetes.io/"
_V2: Final = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"
_SPEC_SHARED: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS_SHARED: Final = ("observedGeneration", "lastScaleTime")
_SPEC_CARRIED: Final = ("metrics", "behavior")
_STATUS_CARRIED: Final = ("currentMetrics", "conditions")


def cpu_metric(percent: int) -> Json:
    """Return the metric of a v2 spec with a target for cpu utilization."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def drop_annotations(obj: Json) -> None:
    """Drop the annotations for fields that v1 does not have, in place."""
    meta = obj.get("metadata") or {}
    found = meta.get("annotations") or {}
    kept = {key: value for key, value in found.items() if not _carries(key)}
    if len(kept) == len(found):
        return
    meta["annotations"] = kept
    if not kept:
        del meta["annotations"]


def _carries(key: str) -> bool:
    return key == CARRIED or key.startswith(_OLDER)


def autoscaler_from_v2(obj: Json) -> Json:
    """Return a stored autoscaler as ``autoscaling/v1``; values are shared."""
    metrics, current = objects(obj, "spec", "metrics"), objects(obj, "status", "currentMetrics")
    carried = _only(child(obj, "spec"), _SPEC_CARRIED)
    carried |= _only(child(obj, "status"), _STATUS_CARRIED)
    carried["metrics"] = [each for each in metrics if _cpu_percent(each, "target") is None]
    carried = {name: value for name, value in carried.items() if value}
    converted = _frame(obj, HORIZONTAL_POD_AUTOSCALERS_V1.api_version)
    if carried:
        annotations = converted["metadata"].get("annotations") or {}
        encoded = msgspec.json.encode(carried).decode()
        converted["metadata"]["annotations"] = annotations | {CARRIED: encoded}
    aims = [_cpu_percent(each, "target") for each in metrics]
    _set_first(converted["spec"], "targetCPUUtilizationPercentage", aims)
    for name in ("currentReplicas", "desiredReplicas"):
        converted["status"][name] = child(obj, "status").get(name) or 0
    seen = [_cpu_percent(each, "current") for each in reversed(current)]
    _set_first(converted["status"], "currentCPUUtilizationPercentage", seen)
    return converted


def autoscaler_to_v2(obj: Json) -> Json:
    """Return the stored form of an ``autoscaling/v1`` autoscaler; values are shared."""
    carried = _read(child(obj, "metadata", "annotations").get(CARRIED))
    converted = _frame(obj, HORIZONTAL_POD_AUTOSCALERS.api_version)
    spec, status = converted["spec"], converted["status"]
    spec |= _checked(_only(carried, _SPEC_CARRIED), "Spec")
    percent = child(obj, "spec").get("targetCPUUtilizationPercentage")
    metrics = [*objects(spec, "metrics"), *([cpu_metric(percent)] if percent is not None else [])]
    spec["metrics"] = metrics or [cpu_metric(CPU_PERCENT_DEFAULT)]
    sent = child(obj, "status")
    # Zero is left out of one field in v2, and always shown in the other.
    if sent.get("currentReplicas"):
        status["currentReplicas"] = sent["currentReplicas"]
    status["desiredReplicas"] = sent.get("desiredReplicas") or 0
    status |= _checked(_only(carried, _STATUS_CARRIED), "Status")
    percent = sent.get("currentCPUUtilizationPercentage")
    if "currentMetrics" not in status and percent is not None:
        seen = {"name": "cpu", "current": {"averageUtilization": percent}}
        status["currentMetrics"] = [{"type": "Resource", "resource": seen}]
    return converted


def _frame(obj: Json, api_version: str) -> Json:
    """Return an autoscaler with the fields of both versions, without the annotations."""
    converted: Json = {
        "apiVersion": api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": dict(obj.get("metadata") or {}),
        "spec": _only(child(obj, "spec"), _SPEC_SHARED),
        "status": _only(child(obj, "status"), _STATUS_SHARED),
    }
    drop_annotations(converted)
    return converted


def _only(obj: Json, names: tuple[str, ...]) -> Json:
    return {name: obj[name] for name in names if obj.get(name) is not None}


def _set_first(obj: Json, name: str, values: list[int | None]) -> None:
    """Set a field to the first value that is not None, in place."""
    for value in values:
        if value is not None:
            obj[name] = value
            return


def _cpu_percent(metric: Json, part: str) -> int | None:
    """Return the cpu utilization that a metric targets or reports; None for another metric."""
    if text(metric, "type") != "Resource" or text(metric, "resource", "name") != "cpu":
        return None
    found: int | None = child(metric, "resource", part).get("averageUtilization")
    return found


def _read(annotation: Any) -> Json:
    """Return the fields in the annotation; nothing where it is malformed."""
    try:
        found = msgspec.json.decode(annotation or "{}")
    except (msgspec.DecodeError, RecursionError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _checked(carried: Json, part: str) -> Json:
    """Return fields of a v2 spec or status if their types are right; unknown ones are dropped."""
    found = definition(f"{_V2}{part}")
    if type_errors(found, carried):
        return {}
    prune(found, carried)
    return carried
