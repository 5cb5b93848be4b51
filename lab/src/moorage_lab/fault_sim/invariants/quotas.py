"""Rules about elastic quotas: what namespaces may use, and what they must give back."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.quantity import parse_quantity
from moorage.api.resources import ELASTIC_QUOTAS
from moorage_lab.fault_sim.history import Obj, is_finished, name_of, node_of, priority_of
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import asks
from moorage_lab.fault_sim.invariants.write_case import WriteCase

_RESOURCE = "cpu"  # the simulation's quotas bound it; of memory there is more than all pods ask


def quotas_of(case: WriteCase) -> dict[str, Obj]:
    """Return the quota of each namespace that has one."""
    quotas = case.history.server_objects(ELASTIC_QUOTAS.qualified)
    return {namespace: quota for (namespace, _), quota in quotas.items()}


def bound_of(quota: Obj, field: str) -> int:
    """Return the least or the most that a namespace may use, billionths of the unit."""
    return parse_quantity(quota["spec"].get(field, {}).get(_RESOURCE, "0"))


def _used(pods: Iterable[Obj], namespaces: Iterable[str]) -> int:
    among = frozenset(namespaces)
    return sum(asks(pod, _RESOURCE) for pod in pods if pod["metadata"]["namespace"] in among)


def _quota(case: WriteCase) -> Iterable[str]:
    """Add up what the namespace, and all namespaces with a quota, use on known nodes."""
    namespace = case.pod["metadata"]["namespace"]
    quotas = quotas_of(case)
    if namespace not in quotas or not case.settled(case.history.quota_changed_ns):
        return
    pods = [*case.others(), case.pod]
    used, most = _used(pods, (namespace,)), bound_of(quotas[namespace], "max")
    if used > most:
        yield f"{name_of(case.pod)}: {namespace} uses {used} of {most} billionths of {_RESOURCE}"
    used = _used(pods, quotas)
    least = sum(bound_of(quota, "min") for quota in quotas.values())
    if used > least:
        yield f"{name_of(case.pod)}: all namespaces use {used}, {least} are guaranteed"


def _taken_back(case: WriteCase) -> Iterable[str]:
    """Look for a victim of another namespace that has not borrowed."""
    history, victim = case.history, case.write.before or {}
    namespace, quotas = victim["metadata"]["namespace"], quotas_of(case)
    calm = (
        case.settled(history.quota_changed_ns)
        and case.settled(history.waiting_left_ns)
        and case.settled(history.pod_gone_ns)
    )
    if namespace not in quotas or not calm:
        return
    waiting = [
        pod
        for pod in history.pods.values()
        if not node_of(pod) and not is_finished(pod) and not pod["spec"].get("schedulingGates")
    ]
    if any(
        pod["metadata"]["namespace"] == namespace and priority_of(pod) > priority_of(victim)
        for pod in waiting
    ):
        return
    on_nodes = [pod for pod in (*history.pods.values(), victim) if node_of(pod)]
    used, least = _used(on_nodes, (namespace,)), bound_of(quotas[namespace], "min")
    if used <= least:
        yield f"{name_of(victim)} was evicted, and {namespace} uses {used} of {least} guaranteed"
    elif not any(_within(case, pod, quotas) for pod in waiting):
        yield f"{name_of(victim)} was evicted, and no waiting pod is within its minimum"


def _within(case: WriteCase, pod: Obj, quotas: dict[str, Obj]) -> bool:
    """Return whether a pod stays within the minimum of its namespace, by what is known."""
    namespace = pod["metadata"]["namespace"]
    if namespace not in quotas:
        return False
    here = [each for each in case.history.pods.values() if node_of(each) and case.known(each)]
    used = _used(here, (namespace,)) + asks(pod, _RESOURCE)
    return used <= bound_of(quotas[namespace], "min")


QUOTA: tuple[Invariant[WriteCase], ...] = (
    Invariant(
        "quota",
        "A namespace with an elastic quota stays below its maximum, all stay below their sum.",
        "pods under way are not counted (scheduler-plugins#427)",
        _quota,
    ),
)
RELEASED: tuple[Invariant[WriteCase], ...] = (
    Invariant(
        "victim-quota",
        "A victim of another namespace was borrowed room.",
        "a namespace loses what it is guaranteed",
        _taken_back,
    ),
)
