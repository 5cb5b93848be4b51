"""Versions of a kind whose fields differ from the stored version.

Place in the flow: `kept` gives the functions to the catalog. Only ``resource.k8s.io/v1beta1``
differs from the stored version in more than its name: a request has the fields of ``exactly``
itself, and a device has its fields in ``basic`` (kubernetes v1.36 pkg/apis/resource/v1beta1
conversion.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moorage.kinds.facts import definition
from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json, objects

Convert = Callable[[Obj], Obj]

_EXACT = "io.k8s.api.resource.v1.ExactDeviceRequest"


def _exact_fields() -> frozenset[str]:
    return frozenset(definition(_EXACT).fields)


def _request_to_stored(request: Json) -> Json:
    exact = {key: value for key, value in request.items() if key in _exact_fields()}
    rest = {key: value for key, value in request.items() if key not in exact}
    return rest | {"exactly": exact} if exact else rest


def _request_from_stored(request: Json) -> Json:
    rest = {key: value for key, value in request.items() if key != "exactly"}
    return rest | (request.get("exactly") or {})


def _device_to_stored(device: Json) -> Json:
    rest = {key: value for key, value in device.items() if key != "basic"}
    return rest | (device.get("basic") or {})


def _device_from_stored(device: Json) -> Json:
    basic = {key: value for key, value in device.items() if key != "name"}
    return {key: value for key, value in device.items() if key == "name"} | {"basic": basic}


def _each(path: tuple[str, ...], convert: Convert) -> Convert:
    """Return a function that converts every object of the list at a path; it copies on the way."""

    def converted(obj: Obj) -> Obj:
        if not objects(obj, *path):
            return obj
        result = dict(obj)
        holder = result
        for name in path[:-1]:
            holder[name] = dict(holder[name])
            holder = holder[name]
        holder[path[-1]] = [convert(each) for each in holder[path[-1]]]
        return result

    return converted


def _both(path: tuple[str, ...], to_stored: Convert, from_stored: Convert) -> tuple[Convert, ...]:
    return (_each(path, to_stored), _each(path, from_stored))


_REQUESTS = ("devices", "requests")

CONVERSIONS: Mapping[tuple[str, str], tuple[Convert, ...]] = {
    ("resourceclaims", "v1beta1"): _both(
        ("spec", *_REQUESTS), _request_to_stored, _request_from_stored
    ),
    ("resourceclaimtemplates", "v1beta1"): _both(
        ("spec", "spec", *_REQUESTS), _request_to_stored, _request_from_stored
    ),
    ("resourceslices", "v1beta1"): _both(
        ("spec", "devices"), _device_to_stored, _device_from_stored
    ),
}
"""(plural, version) -> functions to the stored version and from it; both copy changed parts."""
