"""PodDisruptionBudgets as preemption honours them: whose eviction would break one.

Part of DefaultPreemption. Budgets are spent afresh for every node, in the order of importance.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``,
``filterPodsWithPDBViolation``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import Selector, compile_label_selector
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo


class _Budget(msgspec.Struct, frozen=True):
    """One budget that can protect somebody; `index` tells it apart."""

    index: int
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    def protects(self, pod: PodInfo) -> bool:
        """Whether the pod counts against it; one being disrupted already does not."""
        labels = pod.pod.metadata.labels
        return self.selector.matches(labels) and pod.name not in self.disrupted


class Budgets:
    """The budgets of the cluster, compiled when they changed.

    Parameters
    ----------
    lister
        Where they are.
    """

    def __init__(self, lister: Lister[PodDisruptionBudget]) -> None:
        self._lister = lister
        self._generation = -1
        self._by_namespace: dict[str, list[_Budget]] = {}

    def protect_any(self) -> bool:
        """Whether there is any budget that can protect a pod."""
        return bool(self._current())

    def protects(self, pod: PodInfo) -> bool:
        """Whether any budget counts the pod."""
        return bool(self._matching(pod))

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Tell pods whose eviction breaks a budget from the others.

        Parameters
        ----------
        pods
            Victims of one node, most important first: the budget goes to them in this order.

        Returns
        -------
        tuple of list
            The violating pods and the others, each in the given order.
        """
        spent: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            broken = False
            for budget in self._matching(pod):
                spent[budget.index] = spent.get(budget.index, 0) + 1
                broken |= spent[budget.index] > budget.allowed
            (violating if broken else others).append(pod)
        return violating, others

    def _matching(self, pod: PodInfo) -> list[_Budget]:
        if not pod.pod.metadata.labels:
            return []
        return [each for each in self._current().get(pod.namespace, ()) if each.protects(pod)]

    def _current(self) -> dict[str, list[_Budget]]:
        if self._generation != self._lister.generation:
            self._generation = self._lister.generation
            self._by_namespace = {}
            for index, budget in enumerate(self._lister.all()):
                compiled = _compiled(index, budget)
                if compiled is not None:
                    found = self._by_namespace.setdefault(budget.metadata.namespace, [])
                    found.append(compiled)
        return self._by_namespace


def _compiled(index: int, budget: PodDisruptionBudget) -> _Budget | None:
    """Return what a budget protects; None when its selector is absent, empty or invalid."""
    written = budget.spec.selector
    if written is None or not (written.match_labels or written.match_expressions):
        return None
    try:
        selector = compile_label_selector(written)
    except ValueError:
        return None
    status = budget.status
    return _Budget(index, selector, status.disruptions_allowed, frozenset(status.disrupted_pods))
