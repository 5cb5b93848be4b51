"""PodDisruptionBudgets in preemption: which evictions would violate a budget.

Part of DefaultPreemption. Every node starts with the full budgets. Pods use up the budgets in
the order of importance.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``,
``filterPodsWithPDBViolation``; v1.37 ``pkg/scheduler/framework/preemption/util.go``. In 1.37 a
budget with an empty selector protects every pod of its namespace, a pod without labels may be
protected, and a pod uses up no further budget after the first that it breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import Selector, compile_label_selector
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo

# Number of kept answers, one for each label set: a few megabytes. A guess.
_LABELS_MOST: Final = 16384


class _Budget(msgspec.Struct, frozen=True):
    """One budget that can protect pods; `index` identifies the budget."""

    index: int
    selector: Selector
    allowed: int
    disrupted: frozenset[str]


class Budgets:
    """The budgets of the cluster, compiled again after each change.

    Parameters
    ----------
    lister
        The PodDisruptionBudgets.
    of_1_37
        Whether the rules are those of 1.37.
    """

    def __init__(self, lister: Lister[PodDisruptionBudget], *, of_1_37: bool = False) -> None:
        self._lister = lister
        self.of_1_37 = of_1_37
        self._up_to_first = of_1_37  # a pod uses up no further budget after the first it breaks
        self._generation = -1
        self._by_namespace: dict[str, list[_Budget]] = {}
        # By labels, which replicas share. Any change of a budget clears this cache.
        self._by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Budget]] = {}
        self._by_row: dict[int, tuple[tuple[PodInfo, ...], int, tuple[int, ...]]] = {}

    @property
    def generation(self) -> int:
        """A number that increases with each added, deleted or changed budget."""
        return self._lister.generation

    def protect_any(self) -> bool:
        """Whether any budget can protect a pod."""
        return bool(self._current())

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Split pods into budget violations and others; both lists keep the given order."""
        broken = frozenset(self.violating(pods))
        violating = [pod for index, pod in enumerate(pods) if index in broken]
        return violating, [pod for index, pod in enumerate(pods) if index not in broken]

    def violating_ranks(self, row: int, pods: tuple[PodInfo, ...], first: int) -> tuple[int, ...]:
        """Return the ranks, starting at `first`, of pods whose eviction violates a budget.

        Parameters
        ----------
        row
            Key of the cache: a second call with the same tuple of pods is answered from the cache.
        pods
            Pods of the row by rank.
        first
            Rank of the most important victim.
        """
        self._current()
        known = self._by_row.get(row)
        if known is None or known[0] is not pods or known[1] != first:
            found = tuple(first + index for index in self.violating(pods[first:]))
            known = self._by_row[row] = pods, first, found
        return known[2]

    def violating(self, pods: Sequence[PodInfo]) -> list[int]:
        """Return the indexes of pods whose eviction violates a budget.

        Parameters
        ----------
        pods
            Victims of one node, most important first: they use up the budget in this order.
        """
        spent: dict[int, int] = {}
        violating: list[int] = []
        for index, pod in enumerate(pods):
            if self._breaks(pod, spent):
                violating.append(index)
        return violating

    def _breaks(self, pod: PodInfo, spent: dict[int, int]) -> bool:
        """Whether the eviction of one more pod breaks a budget; count it in `spent`."""
        broken = False
        for budget in self._matching(pod):
            spent[budget.index] = spent.get(budget.index, 0) + 1
            broken |= spent[budget.index] > budget.allowed
            if broken and self._up_to_first:
                break
        return broken

    def _matching(self, pod: PodInfo) -> list[_Budget]:
        labels = pod.pod.metadata.labels
        if not (labels or self.of_1_37):
            return []
        there = self._current().get(pod.namespace)
        if there is None:
            return []
        key = (pod.namespace, tuple(labels.items()))
        budgets = self._by_labels.get(key)
        if budgets is None:
            if len(self._by_labels) >= _LABELS_MOST:
                self._by_labels.clear()
            budgets = self._by_labels[key] = [b for b in there if b.selector.matches(labels)]
        return [budget for budget in budgets if pod.name not in budget.disrupted]

    def _current(self) -> dict[str, list[_Budget]]:
        if self._generation != self._lister.generation:
            self._generation = self._lister.generation
            self._by_namespace = {}
            self._by_labels = {}
            self._by_row = {}
            for index, budget in enumerate(self._lister.all()):
                compiled = self._compiled(index, budget)
                if compiled is not None:
                    found = self._by_namespace.setdefault(budget.metadata.namespace, [])
                    found.append(compiled)
        return self._by_namespace

    def _compiled(self, index: int, budget: PodDisruptionBudget) -> _Budget | None:
        """Compile a budget; return None when its selector selects no pod, or is invalid."""
        written = budget.spec.selector
        if written is None:
            return None
        if not (self.of_1_37 or written.match_labels or written.match_expressions):
            return None
        try:
            selector = compile_label_selector(written)
        except ValueError:
            return None
        status = budget.status
        disrupted = frozenset(status.disrupted_pods)
        return _Budget(index, selector, status.disruptions_allowed, disrupted)
