"""LimitRange at work: defaults for containers, bounds for pods, containers and claims.

Place in the flow: `pod_admission` fills in the defaults. `moorage.apiserver.admission` asks for the
errors once an object is known to be valid. Mirrors kubernetes v1.36
plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.quantity import canonical, from_nano, parse_quantity
from moorage.apiserver.kind import Context
from moorage.apiserver.kinds.tree import Json, attach, child, objects, text
from moorage.apiserver.kinds.usage import Amounts, amounts, pod_totals

_ANNOTATION = "kubernetes.io/limit-ranger"


def _items(namespace: str, ctx: Context) -> Iterator[Json]:
    for limit_range in ctx.objects("limitranges", namespace):
        yield from objects(limit_range, "spec", "limits")


def default_from_limit_ranges(pod: Json, ctx: Context) -> None:
    """Give containers the default requests and limits where they state none, in place."""
    told: list[str] = []
    for item in _items(text(pod, "metadata", "namespace"), ctx):
        if text(item, "type") != "Container":
            continue
        for key, title in (("initContainers", "init container"), ("containers", "container")):
            for container in objects(pod, "spec", key):
                told += _fill(container, item, title)
    if told:
        annotations = attach(attach(pod, "metadata"), "annotations")
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def _fill(container: Json, item: Json, title: str) -> list[str]:
    told = []
    for part, source in (("requests", "defaultRequest"), ("limits", "default")):
        given = child(item, source)
        missing = sorted(set(given) - set(child(container, "resources", part)))
        if missing:
            target = attach(attach(container, "resources"), part)
            target |= {name: given[name] for name in missing}
            what = f"{', '.join(missing)} {part.removesuffix('s')}"
            told.append(f"{what} for {title} {text(container, 'name')}")
    return told


def limit_faults(shelf: str, obj: Json, ctx: Context) -> list[str]:
    """Return the bounds of its namespace that an object breaks, in kube-apiserver's words."""
    found: list[str] = []
    for item in _items(text(obj, "metadata", "namespace"), ctx):
        kind = text(item, "type")
        if shelf == "persistentvolumeclaims" and kind == "PersistentVolumeClaim":
            requests = amounts(child(obj, "spec", "resources", "requests"))
            found += _claim_faults(item, requests)
        elif shelf == "pods" and kind == "Container":
            for key in ("containers", "initContainers"):
                for container in objects(obj, "spec", key):
                    parts = child(container, "resources")
                    requests = amounts(child(parts, "requests"))
                    found += _faults(item, requests, amounts(child(parts, "limits")))
        elif shelf == "pods" and kind == "Pod":
            spec = child(obj, "spec")
            requests, limits = pod_totals(spec, "requests"), pod_totals(spec, "limits")
            found += _faults(item, requests, limits)
    return found


def _claim_faults(item: Json, requests: Amounts) -> list[str]:
    found = []
    for bound, word in (("min", "minimum"), ("max", "maximum")):
        for name, value in sorted(child(item, bound).items()):
            text_of = f"{word} {name} usage per PersistentVolumeClaim is {canonical(value)}"
            asked, edge = requests.get(name), parse_quantity(value)
            if asked is None:
                found.append(f"{text_of}.  No request is specified")
            elif asked < edge if bound == "min" else asked > edge:
                found.append(f"{text_of}, but request is {spelled(asked, value)}")
    return found


def _faults(item: Json, requests: Amounts, limits: Amounts) -> list[str]:
    kind = text(item, "type")
    found = []
    for name, value in sorted(child(item, "min").items()):
        head = f"minimum {name} usage per {kind} is {canonical(value)}"
        edge, asked, limit = parse_quantity(value), requests.get(name), limits.get(name)
        if asked is None:
            found.append(f"{head}.  No request is specified")
        elif asked < edge:
            found.append(f"{head}, but request is {spelled(asked, value)}")
        elif limit is not None and limit < edge:
            found.append(f"{head}, but limit is {spelled(limit, value)}")
    for name, value in sorted(child(item, "max").items()):
        head = f"maximum {name} usage per {kind} is {canonical(value)}"
        edge, asked, limit = parse_quantity(value), requests.get(name), limits.get(name)
        if limit is None:
            found.append(f"{head}.  No limit is specified")
        elif limit > edge:
            found.append(f"{head}, but limit is {spelled(limit, value)}")
        elif asked is not None and asked > edge:
            found.append(f"{head}, but request is {spelled(asked, value)}")
    for name, value in sorted(child(item, "maxLimitRequestRatio").items()):
        head = f"{name} max limit to request ratio per {kind} is {canonical(value)}"
        asked, limit = requests.get(name), limits.get(name)
        if not asked:
            found.append(f"{head}, but no request is specified or request is 0")
        elif not limit:
            found.append(f"{head}, but no limit is specified or limit is 0")
        elif limit * 10**9 > parse_quantity(value) * asked:
            found.append(f"{head}, but provided ratio is {limit / asked:f}")
    return found


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
