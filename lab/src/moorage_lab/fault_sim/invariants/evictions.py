"""Rules for each eviction: somebody more important waits, needs the room, and gets it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from moorage.api.coscheduling import GROUP_LABEL
from moorage_lab.fault_sim.history import Obj, name_of, node_of, nominated_of, priority_of
from moorage_lab.fault_sim.invariants.attached import ATTACHED
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import ON_NODE
from moorage_lab.fault_sim.invariants.quotas import RELEASED, quotas_of
from moorage_lab.fault_sim.invariants.together import TOGETHER
from moorage_lab.fault_sim.invariants.write_case import LONG_AGO_NS, WriteCase, is_leaving, placed

_RULES = (*ON_NODE, *TOGETHER, *ATTACHED)


def _waiting(case: WriteCase) -> Iterator[Obj]:
    """Yield the pods that may have been tried."""
    for pod in case.history.pods.values():
        if not node_of(pod) and not pod["spec"].get("schedulingGates"):
            yield pod


def _lower_priority(case: WriteCase) -> Iterable[str]:
    if not case.settled(case.history.waiting_left_ns):
        return
    victim = case.write.before or {}
    if victim["metadata"]["namespace"] in quotas_of(case):
        return  # `victim-quota` judges it
    priorities = [priority_of(pod) for pod in _waiting(case)]
    if priority_of(victim) >= max(priorities, default=-(10**18)):
        yield f"{name_of(victim)} was evicted, no waiting pod has a higher priority"


def _polite(case: WriteCase) -> Iterable[str]:
    """Look for a pod that waits and may evict others."""
    if not case.settled(case.history.waiting_left_ns):
        return
    victim = case.write.before or {}
    if victim["metadata"]["namespace"] in quotas_of(case):
        return
    higher = [pod for pod in _waiting(case) if priority_of(pod) > priority_of(victim)]
    if higher and all(pod["spec"].get("preemptionPolicy") == "Never" for pod in higher):
        yield f"{name_of(victim)} was evicted, and every waiting pod has preemptionPolicy Never"


def _placed_victim(case: WriteCase) -> Iterable[str]:
    """Look for a victim without a node whose binding was never sent."""
    victim = case.write.before or {}
    tried = case.history.tried_binding.get(case.write.by, ())
    if not node_of(victim) and victim["metadata"]["uid"] not in tried:
        yield f"{name_of(victim)} was evicted and has no node"


def _needed(case: WriteCase) -> Iterable[str]:
    """Look for a waiting pod that fits on the victim's node once lesser pods are gone.

    Or on the node of another member of the victim's gang: Coscheduling evicts whole gangs.
    """
    victim = case.write.before or {}
    if quotas_of(case):
        return  # who may take whose room depends on the quotas, see `victim-quota`
    node = case.history.nodes.get(node_of(victim))
    calm = case.settled(case.history.waiting_left_ns) and case.settled(case.history.pod_gone_ns)
    if node is None or not calm or not case.steady(node):
        return
    if not all(case.known(pod) for pod in case.history.pods.values()):
        return
    higher = [pod for pod in _waiting(case) if priority_of(pod) > priority_of(victim)]
    if any(pod["spec"].get("schedulingGroup") for pod in higher):
        return  # a group hopes for the cluster as a whole
    nodes = [
        each for name in _nodes_of_gang(case, victim) if (each := case.history.nodes.get(name))
    ]
    helped = any(_makes_room_for(pod, victim, each, case) for pod in higher for each in nodes)
    if higher and not helped:
        names = ", ".join(map(name_of, higher))
        yield f"{name_of(victim)} was evicted from {node_of(victim)}, which helps none of {names}"


def _nodes_of_gang(case: WriteCase, victim: Obj) -> list[str]:
    """Return the nodes of a victim and of its gang; Coscheduling evicts whole gangs."""
    rest = [pod for pod in case.history.pods.values() if _of_one_gang(pod, victim)]
    return sorted({node_of(victim), *map(node_of, rest)})


def _gang_of(pod: Obj) -> tuple[str, str] | None:
    name = pod["metadata"].get("labels", {}).get(GROUP_LABEL)
    return (pod["metadata"]["namespace"], name) if name else None


def _of_one_gang(pod: Obj, victim: Obj) -> bool:
    return _gang_of(victim) is not None and _gang_of(pod) == _gang_of(victim)


def _makes_room_for(pod: Obj, victim: Obj, node: Obj, case: WriteCase) -> bool:
    """Return whether a pod fits on the node only without pods of lower priority."""
    name = node["metadata"]["name"]
    there = [each for each in case.history.pods.values() if node_of(each) == name]
    lower = [each["metadata"]["uid"] for each in there if priority_of(each) < priority_of(pod)]
    gone = [*lower, victim["metadata"]["uid"]]
    return fits_without(case, pod, name, gone)


def fits_without(case: WriteCase, pod: Obj, node: str, gone: Iterable[str]) -> bool:
    """Return whether a pod fits on a node when some pods are gone."""
    trial = placed(pod, node, case.history, without=gone)
    return not any(True for rule in _RULES for _ in rule.broken(trial))


def _spared(case: WriteCase) -> Iterable[str]:
    """Look for the one pod that waits, for which enough pods are ending already."""
    history, victim = case.history, case.write.before or {}
    if not case.undisturbed or quotas_of(case):
        return
    calm = case.settled(history.waiting_left_ns) and case.settled(history.pod_gone_ns)
    if not calm or not all(case.known(pod) for pod in history.pods.values()):
        return
    higher = [pod for pod in _waiting(case) if priority_of(pod) > priority_of(victim)]
    if len(higher) != 1 or higher[0]["spec"].get("schedulingGroup"):
        return
    ending = [
        uid
        for uid, pod in history.pods.items()
        if is_leaving(pod) and uid != victim["metadata"]["uid"] and not _of_one_gang(pod, victim)
    ]
    uid = higher[0]["metadata"]["uid"]
    promised = {nominated_of(higher[0])}
    if not case.settled(history.nominated_ns.get(uid, LONG_AGO_NS)):
        promised.add(history.promised_before[uid])  # the promise of now may be of this attempt
    for name in sorted({node_of(victim), *promised} & history.nodes.keys()):
        lesser = [uid for uid in ending if priority_of(history.pods[uid]) < priority_of(higher[0])]
        there = {**history.pods, victim["metadata"]["uid"]: victim}
        if case.steady(history.nodes[name]) and _fits_beside(case, higher[0], name, lesser, there):
            yield f"{name_of(victim)} was evicted, and {name_of(higher[0])} has room on {name}"


def _fits_beside(
    case: WriteCase, pod: Obj, node: str, gone: Iterable[str], there: dict[str, Obj]
) -> bool:
    """Return whether a pod fits on a node next to these pods, when some of them are gone."""
    past = copy.copy(case.history)
    past.pods = there
    trial = placed(pod, node, past, without=gone)
    return not any(True for rule in _RULES for _ in rule.broken(trial))


def _budget(case: WriteCase) -> Iterable[str]:
    """Look for a way to make room that keeps every budget."""
    victim = case.write.before or {}
    if quotas_of(case):
        return
    spent = [each for each in _budgets(case, victim) if _spent(each)]
    calm = case.settled(case.history.waiting_left_ns) and case.settled(case.history.pod_gone_ns)
    if not spent or not calm or not all(map(case.steady, case.history.nodes.values())):
        return
    if not all(case.known(pod) for pod in case.history.pods.values()):
        return
    if len(_nodes_of_gang(case, victim)) > 1:
        return  # the rest of a gang is evicted with it, whatever its budget says
    if not case.settled(case.history.leaving_before_ns):
        return  # the budget may have been spent by an eviction of the same attempt
    for pod in _waiting(case):
        if priority_of(pod) <= priority_of(victim) or pod["spec"].get("schedulingGroup"):
            return
        other = _unprotected_way(case, pod, node_of(victim))
        if other is None:
            return
        yield f"{name_of(victim)} was evicted against its budget, {other} has room without"


def _unprotected_way(case: WriteCase, pod: Obj, but: str) -> str | None:
    """Return a node on which a pod fits once some pods without a spent budget are gone."""
    for name in case.history.nodes:
        free = [
            each["metadata"]["uid"]
            for each in case.history.pods.values()
            if node_of(each) == name
            and priority_of(each) < priority_of(pod)
            and not list(_budgets(case, each))
        ]
        if name != but and free and fits_without(case, pod, name, free):
            return name
    return None


def _budgets(case: WriteCase, pod: Obj) -> Iterator[Obj]:
    labels = pod["metadata"].get("labels", {})
    for (namespace, _), budget in case.history.server_objects(
        "poddisruptionbudgets.policy"
    ).items():
        selector = budget["spec"]["selector"]["matchLabels"]
        same = namespace == pod["metadata"]["namespace"]
        if same and all(labels.get(key) == value for key, value in selector.items()):
            yield budget


def _spent(budget: Obj) -> bool:
    allowed = budget.get("status", {}).get("disruptionsAllowed", 0)
    return int(allowed) <= 0


def _reported(case: WriteCase) -> Iterable[str]:
    """Look for a victim whose status does not say that it is to end, and why."""
    victim = case.write.before or {}
    conditions = victim.get("status", {}).get("conditions") or ()
    if not any(
        each["type"] == "DisruptionTarget" and each["status"] == "True" for each in conditions
    ):
        yield f"{name_of(victim)} was evicted, and nothing in its status says so"


EVICTION: tuple[Invariant[WriteCase], ...] = (
    Invariant(
        "victim-priority",
        "A victim has a lower priority than a pod that waits.",
        "a victim is evicted for a pod that is gone (kubernetes#72124)",
        _lower_priority,
    ),
    Invariant(
        "victim-polite",
        "A pod with preemptionPolicy Never evicts nobody.",
        "non-preempting pods preempt (kubernetes#67671)",
        _polite,
    ),
    Invariant(
        "victim-told",
        "The status of a victim says that it is evicted.",
        "a controller takes an evicted pod for one that failed (KEP-3329)",
        _reported,
    ),
    Invariant("victim-placed", "A victim has a node.", "a waiting pod is deleted", _placed_victim),
    Invariant(
        "victim-needed",
        "A victim's room lets a waiting pod in.",
        "pods are evicted and the preemptor fits nowhere (kubernetes#86449)",
        _needed,
    ),
    Invariant(
        "victim-spared",
        "Nobody is evicted for a pod that has enough room once the ending pods are gone.",
        "a preemptor evicts more while its victims are ending (kubernetes#72259)",
        _spared,
    ),
    Invariant(
        "victim-budget",
        "A budget is broken only where nothing else helps.",
        "preemption ignores budgets though it need not (kubernetes#91492)",
        _budget,
    ),
    *RELEASED,
)
