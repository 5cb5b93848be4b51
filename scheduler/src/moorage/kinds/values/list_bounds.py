"""The greatest lengths of the lists of built-in kinds.

Place in the flow: `kinds.served` asks here before any other rule of a kind, because some rules
compile each element. A list that is too long is the only error about its object then; upstream
goes on and finds errors of its elements, too.

Mirrors kubernetes v1.36 pkg/apis/{admissionregistration,batch,discovery,networking,resource}
/validation, pkg/apis/core/validation (DNS) and apiextensions-apiserver
pkg/apis/apiextensions/validation. Some bounds stand with the rules of their kind. Other lists have
no bound upstream, besides that of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api import resources
from moorage.api.resources import ResourceType
from moorage.kinds.kind import FieldError, Obj, invalid, too_many


class ListBound(msgspec.Struct, frozen=True):
    """The bound of one list.

    Parameters
    ----------
    path
        ``spec``, ``versions[]``, ``selectableFields``: brackets stand for every element of a list.
    most
        The greatest length.
    fault
        Makes the error of a path, a list and its bound.
    """

    path: tuple[str, ...]
    most: int
    fault: Callable[[str, Any, int], FieldError]


def _count_error(where: str, value: Any, most: int) -> FieldError:
    return too_many(where, len(value), most)


def _said(words: str) -> Callable[[str, Any, int], FieldError]:
    return lambda where, found, most: invalid(where, found, words.format(most=most))


def _bound(
    path: str, most: int, fault: Callable[[str, Any, int], FieldError] = _count_error
) -> ListBound:
    return ListBound(tuple(path.split(".")), most, fault)


def _bounds(*paths: tuple[str, int]) -> list[ListBound]:
    return [_bound(path, most) for path, most in paths]


def _below(prefix: str, *bounds: ListBound) -> list[ListBound]:
    above = tuple(prefix.split("."))
    return [msgspec.structs.replace(each, path=(*above, *each.path)) for each in bounds]


_CONDITIONS: Final = _bound("matchConditions", 64)
_ANNOTATIONS: Final = _bound(
    "auditAnnotations", 20, _said("must not have more than {most} auditAnnotations")
)
_JOB: Final = _bounds(
    ("podFailurePolicy.rules", 20),
    ("podFailurePolicy.rules[].onExitCodes.values", 255),
    ("podFailurePolicy.rules[].onPodConditions", 20),
)
_POD: Final = [
    _bound("dnsConfig.nameservers", 3, _said("must not have more than {most} nameservers")),
    _bound("dnsConfig.searches", 32, _said("must not have more than {most} search paths")),
]
_CLAIM: Final = _bounds(
    ("devices.requests[].exactly.selectors", 32),
    ("devices.requests[].exactly.tolerations", 16),
    ("devices.requests[].firstAvailable[].selectors", 32),
    ("devices.requests[].firstAvailable[].tolerations", 16),
    # The form of v1beta1.
    ("devices.requests[].selectors", 32),
    ("devices.requests[].tolerations", 16),
    ("devices.constraints", 32),
    ("devices.constraints[].requests", 32),
    ("devices.config", 32),
    ("devices.config[].requests", 32),
)
_SLICE: Final = _bounds(
    ("devices", 128),
    ("devices[].attributes", 32),
    ("devices[].capacity", 32),
    ("devices[].basic.attributes", 32),
    ("devices[].basic.capacity", 32),
    ("devices[].taints", 16),
    ("devices[].consumesCounters", 2),
    ("devices[].bindingConditions", 4),
    ("devices[].bindingFailureConditions", 4),
    ("sharedCounters", 8),
    ("sharedCounters[].counters", 32),
)
_ENDPOINTS: Final = _bounds(
    ("endpoints", 1000),
    ("endpoints[].addresses", 100),
    ("endpoints[].deprecatedTopology", 16),
    ("endpoints[].hints.forZones", 8),
    ("endpoints[].hints.forNodes", 8),
    ("ports", 20_000),
)

_TABLE: Final[dict[str, list[ListBound]]] = {
    resources.VALIDATING_ADMISSION_POLICIES.qualified: _below("spec", _CONDITIONS, _ANNOTATIONS),
    resources.MUTATING_ADMISSION_POLICIES.qualified: _below("spec", _CONDITIONS),
    resources.VALIDATING_WEBHOOK_CONFIGURATIONS.qualified: _below("webhooks[]", _CONDITIONS),
    resources.MUTATING_WEBHOOK_CONFIGURATIONS.qualified: _below("webhooks[]", _CONDITIONS),
    resources.CUSTOM_RESOURCE_DEFINITIONS.qualified: _bounds(
        ("spec.versions[].selectableFields", 8)
    ),
    resources.PODS.qualified: _below("spec", *_POD),
    "podtemplates": _below("template.spec", *_POD),
    "replicationcontrollers": _below("spec.template.spec", *_POD),
    "deployments.apps": _below("spec.template.spec", *_POD),
    "replicasets.apps": _below("spec.template.spec", *_POD),
    "statefulsets.apps": _below("spec.template.spec", *_POD),
    "daemonsets.apps": _below("spec.template.spec", *_POD),
    "jobs.batch": [*_below("spec", *_JOB), *_below("spec.template.spec", *_POD)],
    "cronjobs.batch": [
        *_below("spec.jobTemplate.spec", *_JOB),
        *_below("spec.jobTemplate.spec.template.spec", *_POD),
    ],
    "endpointslices.discovery.k8s.io": _ENDPOINTS,
    "networkpolicies.networking.k8s.io": [
        _bound("spec.policyTypes", 2, _said("may not specify more than two policyTypes"))
    ],
    "resourceclaims.resource.k8s.io": [
        *_below("spec", *_CLAIM),
        *_bounds(("status.allocation.devices.results", 32)),
    ],
    "resourceclaimtemplates.resource.k8s.io": _below("spec.spec", *_CLAIM),
    "deviceclasses.resource.k8s.io": _bounds(("spec.selectors", 32), ("spec.config", 32)),
    "resourceslices.resource.k8s.io": _below("spec", *_SLICE),
}


class ListBounds:
    """The bounds of the lists of one kind.

    Parameters
    ----------
    bounds
        The bounds.
    """

    def __init__(self, bounds: Iterable[ListBound] = ()) -> None:
        self.bounds = tuple(bounds)
        self._tree: _Tree = {}
        for each in self.bounds:
            tree = self._tree
            *leading, last = (key.removesuffix("[]") for key in each.path)
            for name in leading:
                tree = tree.setdefault(name, (None, {}))[1]
            tree[last] = each.most, tree.get(last, (None, {}))[1]

    def faults(self, obj: Obj) -> list[FieldError]:
        """Return an error for each list of an object that is too long."""
        if not _may_exceed(obj, self._tree):
            return []
        return [
            each.fault(where, found, each.most)
            for each in self.bounds
            for where, found in _lists(obj, each.path, "")
            if len(found) > each.most
        ]


NO_BOUNDS: Final = ListBounds()


def list_bounds(resource: ResourceType) -> ListBounds:
    """Return the bounds of the lists of a kind, in every version of it."""
    return ListBounds(_TABLE.get(resource.qualified, ()))


_Tree: TypeAlias = "dict[str, tuple[int | None, _Tree]]"
"""By the name of a field: the bound of its length, and the bounds below it."""


def _may_exceed(value: dict[str, Any], tree: _Tree) -> bool:
    """Whether a list may be too long: one walk for all bounds, as every write asks."""
    for name, (most, below) in tree.items():
        member = value.get(name)
        if not isinstance(member, list | dict):
            continue
        if most is not None and len(member) > most:
            return True
        for each in (member,) if isinstance(member, dict) else member:
            if below and isinstance(each, dict) and _may_exceed(each, below):
                return True
    return False


def _lists(value: Any, path: tuple[str, ...], where: str) -> Iterator[tuple[str, Any]]:
    """Yield the lists at a path, each with the path that an error names."""
    for index, key in enumerate(path):
        if not isinstance(value, dict):
            return
        name, every, _ = key.partition("[]")
        value, where = value.get(name), f"{where}.{name}" if where else name
        if every:
            for place, entry in enumerate(value if isinstance(value, list) else ()):
                yield from _lists(entry, path[index + 1 :], f"{where}[{place}]")
            return
    if isinstance(value, list | dict):
        yield where, value
