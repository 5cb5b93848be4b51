"""The disruption budgets of pods to evict: whether they allow it, in words.

The budgets' statuses are taken as the API shows them, as preemption and evictions do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import compile_label_selector
from moorage.explain.words import listed
from moorage.snapshot.snapshot import Snapshot


def budgets_against(snapshot: Snapshot, pods: Iterable[Pod]) -> list[str]:
    """Return the names of the budgets that do not allow the evictions of all these pods now."""
    spent: Counter[str] = Counter()
    known: dict[str, PodDisruptionBudget] = {}
    for pod in pods:
        for budget in _budgets_of(snapshot, pod):
            spent[budget.name] += 1
            known[budget.name] = budget
    return sorted(
        name for name, count in spent.items() if count > known[name].status.disruptions_allowed
    )


def eviction_text(snapshot: Snapshot, pod: Pod, rest: str) -> tuple[str, bool]:
    """Return an eviction in words, and whether the pod's budgets allow it.

    Parameters
    ----------
    snapshot, pod
        The cluster, and the pod to evict.
    rest
        The words after the pod: its node, and more.
    """
    pod_text = f"pod {pod.full_name} (priority {pod.priority}) {rest}"
    budgets = _budgets_of(snapshot, pod)
    if not budgets:
        return f"evict {pod_text}", True
    if len(budgets) > 1:  # the API refuses it, whatever they allow
        names = listed(sorted(each.name for each in budgets))
        return (
            f"delete {pod_text}; an eviction supports one PodDisruptionBudget, not {names}",
            False,
        )
    name, left = budgets[0].name, budgets[0].status.disruptions_allowed
    if left <= 0:
        return f"delete {pod_text}; PodDisruptionBudget {name} allows no eviction of it now", False
    evictions = "1 eviction" if left == 1 else f"{left} evictions"
    return f"evict {pod_text}; PodDisruptionBudget {name} allows {evictions} now", True


def evictions_text(snapshot: Snapshot, pods: Sequence[Pod], rest: str) -> tuple[str, bool]:
    """Return the evictions of several pods in words, and whether their budgets allow them all."""
    every = [f"{each.full_name} (priority {each.priority})" for each in pods]
    names = f"{', '.join(every[:-1])} and {every[-1]}"
    against = budgets_against(snapshot, pods)
    if any(len(_budgets_of(snapshot, each)) > 1 for each in pods):
        why = "; an eviction supports one PodDisruptionBudget, and one of these pods has more"
        return f"delete pods {names} {rest}{why}", False
    if against:
        why = f"; PodDisruptionBudget {listed(against)} does not allow all these evictions now"
        return f"delete pods {names} {rest}{why}", False
    return f"evict pods {names} {rest}", True


def is_protected(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether the API refuses to evict a pod now."""
    budgets = _budgets_of(snapshot, pod)
    return len(budgets) > 1 or bool(budgets_against(snapshot, [pod]))


def against_text(snapshot: Snapshot, pods: Iterable[Pod]) -> str:
    """Return which budgets the evictions of some pods would violate; "" for none."""
    against = budgets_against(snapshot, pods)
    return f", against PodDisruptionBudget {listed(against)}" if against else ""


def _budgets_of(snapshot: Snapshot, pod: Pod) -> list[PodDisruptionBudget]:
    """Return the budgets that protect a pod; a pod that has not started has none."""
    if pod.status.phase in {"Pending", "Succeeded", "Failed"}:
        return []
    budgets = []
    for each in snapshot.listers.pod_disruption_budgets.in_namespace(pod.metadata.namespace):
        try:
            selector = compile_label_selector(each.spec.selector)
        except ValueError:
            continue
        if pod.name not in each.status.disrupted_pods and selector.matches(pod.metadata.labels):
            budgets.append(each)
    return budgets
