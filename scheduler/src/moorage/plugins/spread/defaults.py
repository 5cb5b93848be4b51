"""Default topology spread constraints, for pods without constraints of their own.

The selector of a default constraint is the conjunction of the selectors of the services that
select the pod and of the pod's controller.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/helper/spread.go``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.meta import LabelSelector, OwnerReference
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.selectors import (
    EVERYTHING,
    Selector,
    compile_label_selector,
    equality_selector,
    make_selector,
)
from moorage.api.workloads import ReplicaSet, ReplicationController, StatefulSet
from moorage.plugins.spread.constraints import (
    HARD,
    NO_CONSTRAINTS,
    SOFT,
    Constraints,
    compile_constraint,
)
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import LABELS, Part

Owner = ReplicationController | ReplicaSet | StatefulSet

_COMPILED_MAX: Final = 4096  # number of compiled answers, a few kilobytes each; a guess

_Labels = Part[tuple[str, Mapping[str, str]]]


class _Known(msgspec.Struct, frozen=True):
    """Compiled constraints and their inputs."""

    services: int
    owner: Owner | None
    constraints: Constraints


class DefaultConstraints:
    """The default constraints of one profile.

    Parameters
    ----------
    written
        Constraints without selectors, from the plugin's arguments or from kube-scheduler.
    listers
        Listers of services and owners.
    """

    def __init__(self, written: Sequence[TopologySpreadConstraint], listers: Listers) -> None:
        self._hard = tuple(each for each in written if each.when_unsatisfiable == HARD)
        self._soft = tuple(each for each in written if each.when_unsatisfiable == SOFT)
        self._listers = listers
        self._services = _ServiceIndex(listers)
        self._known: OrderedDict[tuple[int, str, str], _Known] = OrderedDict()

    @property
    def any_hard(self) -> bool:
        """Whether any default constraint is hard."""
        return bool(self._hard)

    def constraints_of(self, pod: PodInfo) -> Constraints:
        """Return the default constraints of a pod without constraints of its own.

        There are none for a pod without service and owner.
        """
        if not self._hard and not self._soft:
            return NO_CONSTRAINTS
        owner = self._owner(pod.pod) if pod.pod.metadata.owner_references else None
        services = self._listers.services.generation
        if owner is None and not services:
            return NO_CONSTRAINTS
        labels = pod.part(LABELS)
        key = (
            (labels.id, "", "") if owner is None else (labels.id, type(owner).__name__, owner.name)
        )
        known = self._known.get(key)
        if known is None or known.services != services or known.owner is not owner:
            known = self._known[key] = _Known(services, owner, self._compile(labels, owner))
            if len(self._known) > _COMPILED_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return known.constraints

    def _compile(self, labels: _Labels, owner: Owner | None) -> Constraints:
        namespace, pod_labels = labels.value
        selector = self._selector(namespace, pod_labels, owner)
        if selector.is_empty:
            return NO_CONSTRAINTS
        hard, soft = (
            tuple(compile_constraint(each, selector, namespace, pod_labels) for each in kind)
            for kind in (self._hard, self._soft)
        )
        return Constraints(hard, soft)

    def _selector(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> Selector:
        """Join the selectors of services and owner; the empty selector when there are none."""
        equal = self._services.wanted(namespace, labels)
        if owner is None:
            return equality_selector(equal)
        if isinstance(owner, ReplicationController):
            return equality_selector(equal | (owner.spec.selector or {}))
        selector, further = equality_selector(equal), _compiled(owner.spec.selector)
        if further.nothing:
            return selector
        return make_selector((*selector.requirements, *further.requirements))

    def _owner(self, pod: Pod) -> Owner | None:
        """Look up a pod's controller by name; as upstream, without comparing its uid."""
        reference, namespace = _controller(pod), pod.metadata.namespace
        if reference is None:
            return None
        listers, kind = self._listers, reference.kind
        if reference.api_version == "v1" and kind == "ReplicationController":
            return listers.replication_controllers.get(reference.name, namespace)
        if reference.api_version != "apps/v1":
            return None
        if kind == "ReplicaSet":
            return listers.replica_sets.get(reference.name, namespace)
        if kind == "StatefulSet":
            return listers.stateful_sets.get(reference.name, namespace)
        return None


class _ServiceIndex:
    """Services by namespace and one label of their selector, so a pod checks few services.

    A namespace is indexed again after its services change. Pods far outnumber such changes.
    """

    def __init__(self, listers: Listers) -> None:
        self._services = listers.services
        self._generation = -1
        self._by_namespace: dict[str, dict[tuple[str, str], list[Mapping[str, str]]]] = {}

    def wanted(self, namespace: str, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the selectors of all services that select these labels, as one map."""
        return {
            key: value
            for selector in self._selecting(namespace, labels)
            for key, value in selector.items()
        }

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        by_pair = self._index(namespace)
        if by_pair:
            for pair in labels.items():
                for selector in by_pair.get(pair, ()):
                    if selector.items() <= labels.items():
                        yield selector

    def _index(self, namespace: str) -> Mapping[tuple[str, str], list[Mapping[str, str]]]:
        if self._generation != self._services.generation:
            self._generation = self._services.generation
            self._by_namespace.clear()
        services = self._by_namespace.get(namespace)
        if services is None:
            services = self._by_namespace[namespace] = {}
            for service in self._services.in_namespace(namespace):
                selector = service.spec.selector
                if selector:  # an empty selector adds no condition
                    services.setdefault(min(selector.items()), []).append(selector)
        return services


def _controller(pod: Pod) -> OwnerReference | None:
    for reference in pod.metadata.owner_references:
        if reference.controller:
            return reference
    return None


def _compiled(written: LabelSelector | None) -> Selector:
    """Compile an owner's selector; an invalid selector contributes nothing."""
    try:
        found = compile_label_selector(written)
    except ValueError:
        return EVERYTHING
    return found
