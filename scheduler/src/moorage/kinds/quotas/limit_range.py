"""LimitRange: its rules, the defaults it gives containers, and its bounds for pods and claims.

`pod.admission` fills in the defaults. `moorage_sandbox.apiserver.admission.checks` asks for the
errors once an object is known to be valid. Mirrors kubernetes v1.36 pkg/apis/core/validation
(ValidateLimitRange), pkg/apis/core/v1/defaults.go and plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api import resources
from moorage.api.names import qualified_name_faults
from moorage.api.quantity import NANO, canonical, from_nano, parse_quantity
from moorage.kinds.cells import CREATED_AT, NAME
from moorage.kinds.fields import each, name_rule, rules
from moorage.kinds.kind import FieldError, forbidden, invalid, required
from moorage.kinds.quotas.usage import pod_totals
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, objects, text
from moorage.kinds.values.quantities import (
    Amounts,
    amounts,
    container_resource_name,
    is_overcommittable,
    nano_of,
    resource_name,
)

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# Pairs of parts of an item, and their names: the first may not exceed the second; the part that
# is blamed for it comes last.
_ORDER = (
    ("min", "max", "min"),
    ("min", "default", "default"),
    ("default", "max", "default"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
)
_NO_STORAGE = "either minimum or maximum storage value is required, but neither was provided"
_ANNOTATION = "kubernetes.io/limit-ranger"


def _default(obj: Json) -> None:
    """Derive a container's missing defaults: limit from max, request from limit."""
    for item in objects(attach(obj, "spec"), "limits"):
        if text(item, "type") != "Container":
            continue
        for part, source in (("default", "max"), ("defaultRequest", "default")):
            item[part] = child(item, source) | child(item, part)
        item["defaultRequest"] = child(item, "min") | item["defaultRequest"]
        for part in ("default", "defaultRequest"):
            if not item[part]:
                del item[part]


def _type_faults(kind: str) -> list[str]:
    faults = qualified_name_faults(kind)
    if not faults and "/" not in kind and kind not in _TYPES:
        return ["must be a standard limit type or fully qualified"]
    return faults


def _item(item: Json, where: str) -> list[FieldError]:
    errors, kind = [], text(item, "type")
    check_name = container_resource_name if kind in ("Container", "Pod") else resource_name
    for part in _PARTS:
        for name in child(item, part):
            errors += check_name(name, f"{where}.{part}[{name}]")
        if kind == "Pod" and part.startswith("default") and child(item, part):
            detail = "may not be specified when `type` is 'Pod'"
            errors.append(forbidden(f"{where}.{part}", detail))
    bounded = child(item, "min") | child(item, "max")
    if kind == "PersistentVolumeClaim" and "storage" not in bounded:
        errors.append(required(f"{where}.limits", _NO_STORAGE))
    errors += _check_order(item, where) + _check_ratios(item, where)
    return errors + _check_equal(item, where)


def _check_equal(item: Json, where: str) -> list[FieldError]:
    """Check that default and default request agree where a resource may not be overcommitted."""
    errors = []
    limits, requests = child(item, "default"), child(item, "defaultRequest")
    for name in sorted(set(limits) & set(requests)):
        if is_overcommittable(name) or nano_of(limits[name]) == nano_of(requests[name]):
            continue
        detail = (
            f"default value {limits[name]} must equal to defaultRequest value {requests[name]} "
            f"in {name}"
        )
        errors.append(invalid(f"{where}.defaultRequest[{name}]", requests[name], detail))
    return errors


def _check_order(item: Json, where: str) -> list[FieldError]:
    errors = []
    for low, high, blamed in _ORDER:
        for name in sorted(set(child(item, low)) & set(child(item, high))):
            least, most = item[low][name], item[high][name]
            small, large = nano_of(least), nano_of(most)
            if small is not None and large is not None and small > large:
                limit = "default limit" if low == "defaultRequest" else "default"
                lower = low.replace("defaultRequest", "default request")
                upper = {"default": limit, "defaultRequest": "default request"}.get(high, high)
                detail = f"{lower} value {least} is greater than {upper} value {most}"
                errors.append(invalid(f"{where}.{blamed}[{name}]", item[blamed][name], detail))
    return errors


def _check_ratios(item: Json, where: str) -> list[FieldError]:
    """Check the ratio of limit to request: at least 1, and possible within the bounds."""
    errors = []
    for name, value in child(item, "maxLimitRequestRatio").items():
        field = f"{where}.maxLimitRequestRatio[{name}]"
        ratio = nano_of(value)
        least, most = (nano_of(child(item, part).get(name)) for part in ("min", "max"))
        if ratio is None:
            continue
        if ratio < NANO:
            errors.append(invalid(field, value, f"ratio {value} is less than 1"))
        if least and most is not None and ratio / NANO > most / least:
            detail = f"ratio {value} is greater than max/min = {most / least:f}"
            errors.append(invalid(field, value, detail))
    return errors


def _items(ranges: Iterable[Json]) -> Iterator[Json]:
    for limit_range in ranges:
        yield from objects(limit_range, "spec", "limits")


def default_from_limit_ranges(pod: Json, ranges: Iterable[Json]) -> None:
    """Give containers the requests and limits of their namespace's limit ranges, in place.

    A container keeps what it states itself.
    """
    notes: list[str] = []
    for item in _items(ranges):
        if text(item, "type") != "Container":
            continue
        for key, title in (("initContainers", "init container"), ("containers", "container")):
            for container in objects(pod, "spec", key):
                notes += _fill(container, item, title)
    if notes:
        annotations = attach(attach(pod, "metadata"), "annotations")
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _fill(container: Json, item: Json, title: str) -> list[str]:
    notes = []
    for part, source in (("requests", "defaultRequest"), ("limits", "default")):
        given = child(item, source)
        missing = sorted(set(given) - set(child(container, "resources", part)))
        if missing:
            target = attach(attach(container, "resources"), part)
            target |= {name: given[name] for name in missing}
            what = f"{', '.join(missing)} {part.removesuffix('s')}"
            notes.append(f"{what} for {title} {text(container, 'name')}")
    return notes


def limit_faults(shelf: str, obj: Json, ranges: Iterable[Json]) -> list[str]:
    """Return the bounds of limit ranges that an object breaks, in kube-apiserver's words."""
    faults: list[str] = []
    for item in _items(ranges):
        kind = text(item, "type")
        if shelf == "persistentvolumeclaims" and kind == "PersistentVolumeClaim":
            requests = amounts(child(obj, "spec", "resources", "requests"))
            faults += _claim_faults(item, requests)
        elif shelf == "pods" and kind == "Container":
            for key in ("containers", "initContainers"):
                for container in objects(obj, "spec", key):
                    parts = child(container, "resources")
                    requests = amounts(child(parts, "requests"))
                    faults += _faults(item, requests, amounts(child(parts, "limits")))
        elif shelf == "pods" and kind == "Pod":
            spec = child(obj, "spec")
            requests, limits = pod_totals(spec, "requests"), pod_totals(spec, "limits")
            faults += _faults(item, requests, limits)
    return faults


def _claim_faults(item: Json, requests: Amounts) -> list[str]:
    faults = []
    for bound, word in (("min", "minimum"), ("max", "maximum")):
        for name, value in sorted(child(item, bound).items()):
            text_of = f"{word} {name} usage per PersistentVolumeClaim is {canonical(value)}"
            asked, edge = requests.get(name), parse_quantity(value)
            if asked is None:
                faults.append(f"{text_of}.  No request is specified")
            elif asked < edge if bound == "min" else asked > edge:
                faults.append(f"{text_of}, but request is {spelled(asked, value)}")
    return faults


def _faults(item: Json, requests: Amounts, limits: Amounts) -> list[str]:
    kind = text(item, "type")
    faults = []
    for name, value in sorted(child(item, "min").items()):
        head = f"minimum {name} usage per {kind} is {canonical(value)}"
        edge, request, limit = parse_quantity(value), requests.get(name), limits.get(name)
        if request is None:
            faults.append(f"{head}.  No request is specified")
        elif request < edge:
            faults.append(f"{head}, but request is {spelled(request, value)}")
        elif limit is not None and limit < edge:
            faults.append(f"{head}, but limit is {spelled(limit, value)}")
    for name, value in sorted(child(item, "max").items()):
        head = f"maximum {name} usage per {kind} is {canonical(value)}"
        edge, request, limit = parse_quantity(value), requests.get(name), limits.get(name)
        if limit is None:
            faults.append(f"{head}.  No limit is specified")
        elif limit > edge:
            faults.append(f"{head}, but limit is {spelled(limit, value)}")
        elif request is not None and request > edge:
            faults.append(f"{head}, but request is {spelled(request, value)}")
    for name, value in sorted(child(item, "maxLimitRequestRatio").items()):
        head = f"{name} max limit to request ratio per {kind} is {canonical(value)}"
        request, limit = requests.get(name), limits.get(name)
        if not request:
            faults.append(f"{head}, but no request is specified or request is 0")
        elif not limit:
            faults.append(f"{head}, but no limit is specified or limit is 0")
        elif limit * 10**9 > parse_quantity(value) * request:
            faults.append(f"{head}, but provided ratio is {limit / request:f}")
    return faults


def spelled(nano: int, like: str) -> str:
    """Return an amount as a quantity, in binary units where ``like`` has them.

    Parameters
    ----------
    nano
        The amount.
    like
        The quantity that it is shown with.
    """
    return from_nano(nano, binary=str(like).endswith("i"))


KINDS = (
    ServedKind(
        resource=resources.LIMIT_RANGES,
        acted_on_by="admission of pods",
        created_by_put=True,
        columns=(NAME, CREATED_AT),
        defaults=_default,
        rules=rules(
            (
                "spec.limits",
                each(_item, unique="type", key=name_rule(_type_faults, empty="refused")),
            )
        ),
    ),
)
