"""The victims of a preemption, computed plainly: one node after another, one pod after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from moorage.base.clock import parse_rfc3339
from moorage_lab.fault_sim.history import History, Obj, name_of, priority_of

_LOWEST: Final = -(2**31) - 1
"""Below every priority: the cost where nobody is lost who would stay otherwise."""


class Candidate(msgspec.Struct, frozen=True):
    """A node that takes a pod once some pods are gone.

    Parameters
    ----------
    victims
        Names of the pods that have to leave.
    violations
        Number of the victims that a spent budget protects.
    cost
        What is lost, in the order of its weight: the node with the least is chosen.
    is_certain
        Whether the order of the pods is certain: two as important may be tried in any order.
    """

    victims: tuple[str, ...]
    violations: int
    cost: tuple[int, ...]
    is_certain: bool


def candidate_on(
    node: str,
    pod: Obj,
    history: History,
    *,
    budgets: Iterable[Obj],
    leaving: Collection[str],
    now_ns: int,
    fits: Callable[[Iterable[str]], bool],
) -> Candidate | None:
    """Return the pods that must leave a node for a pod; None where evictions do not help.

    Parameters
    ----------
    node, pod
        Where, and for what.
    history
        The pods.
    budgets
        The PodDisruptionBudgets.
    leaving
        Uids of the victims of earlier preemptors that are about to leave.
    now_ns
        Wall-clock time of the scheduler: a pod that has not started counts as started now.
    fits
        Returns whether the node takes the pod when the pods with these uids are gone.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go``
    (SelectVictimsOnNode): every pod of lower priority leaves, and comes back as far as the pod
    still fits, those first that a spent budget protects, then the more important ones. Those that
    leave anyway come back last of all, and cost nothing, other than in kube-scheduler: see the
    deviations.
    """
    lower = [each for each in history.on_node(node) if priority_of(each) < priority_of(pod)]
    if not lower or not fits(map(_uid, lower)):
        return None
    ranks = {_uid(each): _rank(each, now_ns) for each in lower}
    lower.sort(key=lambda each: ranks[_uid(each)])
    protected = _protected(lower, list(budgets))
    order = [each for each in lower if _uid(each) in protected]
    order += [each for each in lower if _uid(each) not in protected]
    order.sort(key=lambda each: _uid(each) in leaving)
    gone = dict.fromkeys(map(_uid, order))
    for each in order:
        others = [uid for uid in gone if uid != _uid(each)]
        if fits(others):
            del gone[_uid(each)]
    victims = [each for each in lower if _uid(each) in gone]
    lost = [each for each in victims if _uid(each) not in leaving]
    violations = sum(_uid(each) in protected for each in lost)
    priorities = [priority_of(each) for each in lost]
    return Candidate(
        tuple(map(name_of, victims)),
        violations,
        (violations, max(priorities, default=_LOWEST), sum(each + 2**31 for each in priorities)),
        len(set(ranks.values())) == len(ranks),
    )


def best_nodes(candidates: Mapping[str, Candidate]) -> list[str]:
    """Return the nodes on which the least is lost; of them, the start of the victims decides."""
    least = min(each.cost for each in candidates.values())
    return sorted(name for name, each in candidates.items() if each.cost == least)


def _uid(pod: Obj) -> str:
    return str(pod["metadata"]["uid"])


def _rank(pod: Obj, now_ns: int) -> tuple[int, int]:
    """Return the place of a pod among others: the more important, the earlier."""
    started = pod.get("status", {}).get("startTime")
    return -priority_of(pod), parse_rfc3339(started) if started else now_ns


def _protected(lower: Sequence[Obj], budgets: Sequence[Obj]) -> set[str]:
    """Return the uids of the pods whose eviction a budget does not allow, the first ones spared."""
    allowed = [int(each.get("status", {}).get("disruptionsAllowed") or 0) for each in budgets]
    protected = set[str]()
    for pod in lower:
        labels = pod["metadata"].get("labels", {})
        for number, budget in enumerate(budgets):
            same = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
            selector = budget["spec"]["selector"].get("matchLabels", {})
            under_way = budget.get("status", {}).get("disruptedPods") or {}
            if not same or not selector or pod["metadata"]["name"] in under_way:
                continue
            if all(labels.get(key) == value for key, value in selector.items()):
                allowed[number] -= 1
                if allowed[number] < 0:
                    protected.add(_uid(pod))
    return protected
