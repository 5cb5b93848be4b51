"""Elastic quotas as numbers: bounds, use, and checks of use against bounds.

Part of CapacityScheduling. The use of a namespace is the sum over the pods of the snapshot,
assumed pods included. So no second record can differ from the snapshot (docs/decisions/0015).

Rules mirrored: scheduler-plugins ``pkg/capacityscheduling`` (elasticquota.go) of 2026-08.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from moorage.api.elastic_quota import ElasticQuota
from moorage.api.meta import ResourceList
from moorage.api.names import is_scheduling_resource
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.plugins.pod_changes import PodChanges
from moorage.plugins.resources.scoring import FIRST_CLASS
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.table import NodeTable

Amounts = Mapping[str, int]
"""By resource name, in scheduling units."""

NOTHING: Final[Amounts] = {}
_ORDER: Final = ("cpu", "memory", "ephemeral-storage")


def request_of(pod: PodInfo) -> Amounts:
    """Return the amounts that a pod counts against its quota: the request that Filter uses."""
    return pod.part(RESOURCES).value.filter


def plus(one: Amounts, other: Amounts, *, times: int = 1) -> dict[str, int]:
    """Return `one` plus `times` times `other`, by resource."""
    total = dict(one)
    for name, amount in other.items():
        total[name] = total.get(name, 0) + times * amount
    return total


class Quota(msgspec.Struct, frozen=True):
    """The bounds of one namespace.

    Parameters
    ----------
    namespace, name
        Namespace and name of the ElasticQuota.
    minimum
        The guaranteed amounts; 0 of an absent resource.
    maximum
        The upper bounds; None for no bound at all. An absent cpu, memory or ephemeral storage has
        the bound 0. Any other absent resource has no bound.
    """

    namespace: str
    name: str
    minimum: Amounts
    maximum: Amounts | None

    def above_min(self, used: Amounts) -> str:
        """Return a resource whose use exceeds the minimum; "" for none."""
        return _first(excess(used, used, self.minimum))

    def above_min_with(self, request: Amounts, used: Amounts) -> str:
        """Return a resource where request plus use exceeds the minimum; "" for none.

        As in `above_max`, most resources count only if the pod requests them.
        """
        return _first(excess(request, plus(request, used), self.minimum))

    def above_max(self, request: Amounts, used: Amounts) -> str:
        """Return a resource where request plus use exceeds the maximum; "" for none.

        Except for the first-class resources, a resource counts only if the pod requests it.
        """
        return _first(self.excess_over_max(request, used))

    def excess_over_max(self, request: Amounts, used: Amounts) -> Iterator[tuple[str, int]]:
        """Yield by how much request plus use exceeds the maximum, as in `above_max`."""
        if self.maximum is not None:
            bounded = [name for name in request if name in self.maximum]
            total = plus(request, used)
            yield from excess(bounded, total, self.maximum)


def excess(names: Iterable[str], total: Amounts, bounds: Amounts) -> Iterator[tuple[str, int]]:
    """Yield each resource whose total exceeds its bound, and by how much.

    The function checks cpu, memory and ephemeral storage, then the given names, in this order. An
    absent bound is 0.
    """
    others = sorted(name for name in names if name not in FIRST_CLASS)
    for name in (*_ORDER, *others):
        over = total.get(name, 0) - bounds.get(name, 0)
        if over > 0:
            yield name, over


def _first(excesses: Iterator[tuple[str, int]]) -> str:
    return next((name for name, _ in excesses), "")


class Claim(msgspec.Struct, frozen=True):
    """The amounts that a pod of a namespace with a quota needs from the quotas.

    Parameters
    ----------
    in_quota
        The pod's request, plus requests of nominated pods of its namespace that count before it.
    in_all
        `in_quota`, plus nominated pods of other namespaces that are within their minimum.
    """

    in_quota: Amounts
    in_all: Amounts


class Usage:
    """The quotas and the use of their namespaces at one moment; trials change a copy.

    Parameters
    ----------
    quotas
        The quotas by namespace.
    used
        The sum of the requests of each namespace's pods.
    """

    def __init__(self, quotas: Mapping[str, Quota], used: Mapping[str, Amounts]) -> None:
        self.quotas = quotas
        self._used = dict(used)
        self._left_out: frozenset[str] = frozenset()
        self.total: Amounts = NOTHING
        self.guaranteed: Amounts = NOTHING
        for namespace, quota in quotas.items():
            self.total = plus(self.total, self._used.get(namespace, NOTHING))
            self.guaranteed = plus(self.guaranteed, quota.minimum)

    def copy(self) -> Usage:
        """Return an independent copy."""
        twin = Usage({}, self._used)
        twin._left_out = self._left_out
        twin.quotas, twin.total, twin.guaranteed = self.quotas, self.total, self.guaranteed
        return twin

    def used(self, namespace: str) -> Amounts:
        """Return the sum of the requests of the pods of a namespace with a quota."""
        return self._used.get(namespace, NOTHING)

    def add(self, pod: PodInfo, *, times: int = 1) -> None:
        """Add a pod, or remove a pod with ``times=-1``; a pod without a quota does not count."""
        if pod.namespace not in self.quotas or pod.uid in self._left_out:
            return
        asked = request_of(pod)
        self._used[pod.namespace] = plus(self.used(pod.namespace), asked, times=times)
        self.total = plus(self.total, asked, times=times)

    def leave_out(self, pods: Collection[PodInfo]) -> None:
        """Remove pods for good: no trial adds or removes them again."""
        for pod in pods:
            self.add(pod, times=-1)
        self._left_out |= {pod.uid for pod in pods}

    def borrows(self, namespace: str) -> bool:
        """Whether a namespace with a quota uses more than its minimum."""
        return bool(self.quotas[namespace].above_min(self.used(namespace)))

    def above_total(self, request: Amounts) -> str:
        """Return a resource where request plus use exceeds the sum of minimums; "" for none."""
        return _first(self.excess_over_total(request))

    def excess_over_total(self, request: Amounts) -> Iterator[tuple[str, int]]:
        """Yield by how much request plus use exceeds the sum of minimums, by resource."""
        total = plus(self.total, request)
        return excess(total, total, self.guaranteed)


class QuotaBooks:
    """The quotas of a cluster and their use, kept up to date.

    Quotas are read again after each change. The use is updated for rows that changed only.

    Parameters
    ----------
    lister
        The ElasticQuotas; of several in one namespace the first counts.
    table
        The pods.
    """

    def __init__(self, lister: Lister[ElasticQuota], table: NodeTable) -> None:
        self._lister = lister
        self._generation = -1
        self._quotas: dict[str, Quota] = {}
        self.unreadable: Mapping[str, str] = {}
        """By namespace: the fault of an invalid quota, which does not count."""
        self._pods = _RequestedByNamespace(table)

    def usage(self) -> Usage:
        """Return the quotas and their current use."""
        if self._generation != self._lister.generation:
            self._generation = self._lister.generation
            self._read_quotas()
        if not self._quotas:
            return Usage(self._quotas, {})
        return Usage(self._quotas, self._pods.requested_by(self._quotas))

    def _read_quotas(self) -> None:
        self._quotas, broken = {}, {}
        namespaces = dict.fromkeys(quota.namespace for quota in self._lister.all())
        for namespace in namespaces:
            given = next(iter(self._lister.in_namespace(namespace)))
            try:
                self._quotas[namespace] = _compiled(given)
            except ValueError as problem:
                broken[namespace] = f"ElasticQuota {given.namespace}/{given.name}: {problem}"
        self.unreadable = broken


class _RequestedByNamespace:
    """Sums of the requests of all pods on nodes, by namespace."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._changes = PodChanges(table)
        self._sums: dict[str, dict[str, int]] = {}

    def requested_by(self, namespaces: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the sums of these namespaces; the caller may change them."""
        self._follow()
        found = {namespace: dict(self._sums.get(namespace, {})) for namespace in namespaces}
        for pod in self._table.hidden_pods:  # pods on unknown nodes: rare
            if pod.namespace in found:
                found[pod.namespace] = plus(found[pod.namespace], request_of(pod))
        return found

    def _follow(self) -> None:
        for change in self._changes.read():
            self._count(change.before, -1)
            self._count(change.after, +1)

    def _count(self, pods: Iterable[PodInfo], sign: int) -> None:
        for pod in pods:
            sums = self._sums.setdefault(pod.namespace, {})
            for name, amount in request_of(pod).items():
                sums[name] = sums.get(name, 0) + sign * amount


def _compiled(elastic_quota: ElasticQuota) -> Quota:
    spec = elastic_quota.spec
    return Quota(
        namespace=elastic_quota.namespace,
        name=elastic_quota.name,
        minimum=_amounts(spec.min or {}, "min"),
        maximum=None if spec.max is None else _amounts(spec.max, "max"),
    )


def _amounts(resources: ResourceList, field: str) -> dict[str, int]:
    amounts = {}
    for name, quantity in resources.items():
        if not is_scheduling_resource(name):
            continue
        try:
            amounts[name] = to_units(name, parse_quantity(quantity))
        except ValueError as problem:
            raise ValueError(f"spec.{field}[{name}]: {problem}") from None
    return amounts
