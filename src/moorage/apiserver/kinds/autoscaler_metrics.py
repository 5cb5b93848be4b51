"""Metrics of autoscalers in the form that ``autoscaling/v1`` keeps in annotations, and back.

Place in the flow: `autoscaler_v1` translates whole objects and comes here for each metric, of a
spec or of a status. The older form has flat names (``targetAverageValue``) for what v2 nests
(``target.averageValue``), and no type of a target: that follows from which values there are.
Mirrors kubernetes v1.36 pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.apiserver.kinds.tree import Json, child, text

# ``name=path`` of each field, as v1 names it and where v2 has it, in the order of
# k8s.io/api/autoscaling/v1/types.go, which is that of the text upstream writes. A letter behind
# says what upstream writes for a field without a value, which it cannot leave out there: an empty
# text, a quantity of zero, a reference to nothing.
_SPEC: Final = """
object: target=describedObject:r metricName=metric.name:s targetValue=target.value:q
    selector=metric.selector averageValue=target.averageValue
pods: metricName=metric.name:s targetAverageValue=target.averageValue:q selector=metric.selector
resource: name=name:s targetAverageUtilization=target.averageUtilization
    targetAverageValue=target.averageValue
containerResource: name=name:s targetAverageUtilization=target.averageUtilization
    targetAverageValue=target.averageValue container=container:s
external: metricName=metric.name:s metricSelector=metric.selector targetValue=target.value
    targetAverageValue=target.averageValue
"""
_STATUS: Final = """
object: target=describedObject:r metricName=metric.name:s currentValue=current.value:q
    selector=metric.selector averageValue=current.averageValue
pods: metricName=metric.name:s currentAverageValue=current.averageValue:q selector=metric.selector
resource: name=name:s currentAverageUtilization=current.averageUtilization
    currentAverageValue=current.averageValue:q
containerResource: name=name:s currentAverageUtilization=current.averageUtilization
    currentAverageValue=current.averageValue:q container=container:s
external: metricName=metric.name:s metricSelector=metric.selector currentValue=current.value:q
    currentAverageValue=current.averageValue
"""
_EMPTY: Final[Mapping[str, Any]] = {"": None, "s": "", "q": "0", "r": {}}


class _Field(msgspec.Struct, frozen=True):
    """A field's name in v1, its path in v2, and what stands for it where it has no value."""

    name: str
    path: tuple[str, ...]
    empty: Any


_Sources = Mapping[str, tuple[_Field, ...]]


def _parse(table: str) -> _Sources:
    found = {}
    for line in table.strip().replace("\n    ", " ").splitlines():
        source, _, rest = line.partition(": ")
        fields = []
        for word in rest.split():
            name, _, where = word.partition("=")
            path, _, letter = where.partition(":")
            fields.append(_Field(name, tuple(path.split(".")), _EMPTY[letter]))
        found[source] = tuple(fields)
    return found


_SPEC_SOURCES: Final = _parse(_SPEC)
_STATUS_SOURCES: Final = _parse(_STATUS)


def spec_to_v1(metric: Json) -> Json:
    """Return a metric of a v2 spec in the form of v1."""
    return _flat(metric, _SPEC_SOURCES)


def status_to_v1(metric: Json) -> Json:
    """Return a metric of a v2 status in the form of v1."""
    return _flat(metric, _STATUS_SOURCES)


def spec_from_v1(metric: Json) -> Json:
    """Return a metric of a v1 annotation as one of a v2 spec.

    Raises
    ------
    TypeError
        An object is missing where one must be.

    Notes
    -----
    Since v1.36.2 upstream drops an object's target value of zero beside an average value: v1
    cannot leave it out, and v2 does not accept the two together.
    """
    found = _nested(metric, _SPEC_SOURCES)
    for source in _SPEC_SOURCES:
        if source in found:
            target = found[source].setdefault("target", {})
            target["type"] = _target_type(source, target)
    target = child(found, "object", "target")
    if "averageValue" in target and _is_zero(target["value"]):
        del target["value"]
    return found


def status_from_v1(metric: Json) -> Json:
    """Return a metric of a v1 annotation as one of a v2 status.

    Raises
    ------
    TypeError
        An object is missing where one must be.
    """
    return _nested(metric, _STATUS_SOURCES)


def _target_type(source: str, target: Json) -> str:
    if source in ("resource", "containerResource"):
        return "Utilization" if "averageUtilization" in target else "AverageValue"
    if source == "object":
        return "AverageValue" if "averageValue" in target else "Value"
    return "Value" if "value" in target else "AverageValue"


def _is_zero(quantity: Any) -> bool:
    try:
        return parse_quantity(quantity) == 0
    except (TypeError, ValueError):
        # Whoever checks the types of what was read says so.
        return False


def _flat(metric: Json, sources: _Sources) -> Json:
    found: Json = {"type": text(metric, "type")}
    for source, fields in sources.items():
        if metric.get(source) is None:
            continue
        flat = found[source] = {}
        for field in fields:
            value = child(metric[source], *field.path[:-1]).get(field.path[-1])
            if value is None:
                value = field.empty
            if field.empty == {}:
                value = _reference(value)
            if value is not None:
                flat[field.name] = value
    return found


def _nested(metric: Any, sources: _Sources) -> Json:
    found: Json = {"type": _object(metric).get("type") or ""}
    for source, fields in sources.items():
        if metric.get(source) is None:
            continue
        flat = _object(metric[source])
        nested: Json = {}
        for field in fields:
            value = flat.get(field.name)
            if value is None:
                value = field.empty
            if field.empty == {}:
                value = _reference(_object(value))
            if value is not None:
                _put(nested, field.path, value)
        found[source] = nested
    return found


def _put(obj: Json, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        obj = obj.setdefault(key, {})
    obj[path[-1]] = value


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise TypeError(f"an object is expected, not {value!r}")
    return value


def _reference(found: Json) -> Json:
    """Return a reference as upstream writes it: kind and name always, the version if there is."""
    named = {"kind": found.get("kind") or "", "name": found.get("name") or ""}
    version = found.get("apiVersion")
    return named | {"apiVersion": version} if version else named
