"""Elastic quotas where only cpu, one device and priorities count, straight from the spec.

Nothing of the engine is used: a node is its room and a list of pods, a quota two mappings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FIRST = ("cpu", "memory", "ephemeral-storage")
UNBOUNDED = 2**63 - 1

Amounts = Mapping[str, int]


@dataclass
class Resident:
    """A pod: `asks` of cpu in millicores and of the device."""

    name: str
    namespace: str
    priority: int
    asks: Amounts
    started: int
    leaves: bool = False


@dataclass
class Room:
    """A node: what it offers."""

    name: str
    offers: Amounts
    residents: list[Resident]
    nominated: list[Resident] = field(default_factory=list)


@dataclass
class Quota:
    """The bounds of a namespace; None for a list that is missing."""

    minimum: Amounts | None
    maximum: Amounts | None

    def min_of(self, name: str) -> int:
        return 0 if self.minimum is None else self.minimum.get(name, 0)

    def max_of(self, name: str) -> int:
        if self.maximum is None:
            return UNBOUNDED
        return self.maximum.get(name, 0 if name in FIRST else UNBOUNDED)


Quotas = Mapping[str, Quota]


def total(pods: Sequence[Resident]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.asks.items():
            found[name] = found.get(name, 0) + amount
    return found


def over(asked: Amounts, used: Amounts, bound) -> bool:
    names = {*FIRST, *asked}
    return any(asked.get(name, 0) + used.get(name, 0) > bound(name) for name in names)


def used(namespace: str, pods: Sequence[Resident]) -> dict[str, int]:
    return total([pod for pod in pods if pod.namespace == namespace])


def borrows(namespace: str, quotas: Quotas, pods: Sequence[Resident]) -> bool:
    return over(used(namespace, pods), {}, quotas[namespace].min_of)


def claims(pod: Resident, quotas: Quotas, nodes: Sequence[Room]) -> tuple[Amounts, Amounts]:
    """What the pod and the nominated pods before it ask of its quota, and of all quotas."""
    pods = everybody(nodes)
    same, others = [pod], [pod]
    for node in nodes:
        for other in node.nominated:
            if other.namespace == pod.namespace and other.priority >= pod.priority:
                same.append(other)
                others.append(other)
            elif (
                other.namespace != pod.namespace
                and other.namespace in quotas
                and not borrows(other.namespace, quotas, pods)
            ):
                others.append(other)
    return total(same), total(others)


def everybody(nodes: Sequence[Room]) -> list[Resident]:
    return [pod for node in nodes for pod in node.residents]


def above_max(asked: Amounts, namespace: str, quotas: Quotas, pods: Sequence[Resident]) -> bool:
    return over(asked, used(namespace, pods), quotas[namespace].max_of)


def above_total(asked: Amounts, quotas: Quotas, pods: Sequence[Resident]) -> bool:
    with_quota = total([pod for pod in pods if pod.namespace in quotas])
    names = {*with_quota, *asked}
    everything = {name: with_quota.get(name, 0) + asked.get(name, 0) for name in names}
    return over(everything, {}, lambda name: sum(quota.min_of(name) for quota in quotas.values()))


def rejection(pod: Resident, quotas: Quotas, nodes: Sequence[Room]) -> str:
    """What PreFilter says, "" for nothing."""
    if pod.namespace not in quotas:
        return ""
    in_quota, in_all = claims(pod, quotas, nodes)
    pods = everybody(nodes)
    start = f"Pod {pod.namespace}/{pod.name} is rejected in PreFilter because "
    if above_max(in_quota, pod.namespace, quotas, pods):
        return f"{start}ElasticQuota {pod.namespace} is more than Max"
    if above_total(in_all, quotas, pods):
        return f"{start}total ElasticQuota used is more than min"
    return ""


def fits(pod: Resident, node: Room, residents: Sequence[Resident]) -> bool:
    """Twice: beside nominated pods of equal or higher priority, and without them."""
    before = [other for other in node.nominated if other.priority >= pod.priority]
    return _fits(pod, node, [*residents, *before]) and _fits(pod, node, residents)


def _fits(pod: Resident, node: Room, residents: Sequence[Resident]) -> bool:
    taken = total(residents)
    return all(
        not asked or asked + taken.get(name, 0) <= node.offers.get(name, 0)
        for name, asked in pod.asks.items()
    )


def by_importance(pods: Sequence[Resident]) -> list[Resident]:
    return sorted(pods, key=lambda pod: (-pod.priority, pod.started))


def victims(
    pod: Resident, node: Room, quotas: Quotas, nodes: Sequence[Room]
) -> list[Resident] | str:
    """The pods to evict from one node, most important first, or why there are none."""
    elsewhere = [each for other in nodes if other is not node for each in other.residents]
    in_quota, in_all = claims(pod, quotas, nodes)
    mine = pod.namespace in quotas
    guaranteed = mine and not over(
        in_quota, used(pod.namespace, everybody(nodes)), quotas[pod.namespace].min_of
    )
    staying, going = list(node.residents), []
    for each in reversed(by_importance(node.residents)):
        less = each.priority < pod.priority
        if not mine:
            goes = each.namespace not in quotas and less
        elif guaranteed:
            goes = (
                each.namespace in quotas
                and each.namespace != pod.namespace
                and borrows(each.namespace, quotas, [*elsewhere, *staying])
            )
        else:
            goes = each.namespace == pod.namespace and less
        if goes:
            staying.remove(each)
            going.append(each)
    if not going:
        return f"No victims found on node {node.name} for preemptor pod {pod.name}"
    if not fits(pod, node, staying):
        return "does not fit"
    left = [*elsewhere, *staying]
    if mine and (
        above_max(pod.asks, pod.namespace, quotas, left) or above_total(pod.asks, quotas, left)
    ):
        return "global quota max exceeded"
    evicted = []
    for each in by_importance(going):
        back = [*elsewhere, *staying, each]
        if fits(pod, node, [*staying, each]) and not (
            mine
            and (
                above_max(in_quota, pod.namespace, quotas, back)
                or above_total(in_all, quotas, back)
            )
        ):
            staying.append(each)
        else:
            evicted.append(each)
    return evicted
