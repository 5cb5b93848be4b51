"""Disruption budgets in a model: whether an eviction is allowed, and the budgets' statuses.

The controller's step (`moorage.workloads.disruption_steps`) computes a status from the pods that
a budget selects. Preemption reads these statuses, and a drain may wait for them. Rules of the
eviction: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.codec import decode
from moorage.api.meta import OwnerReference
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import Selector, compile_label_selector
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key
from moorage.workloads.disruption_steps import BudgetError, Scale, budget_due
from moorage.workloads.objects import Whole
from moorage.workloads.pods import is_ready

_LISTER: Final = "pod_disruption_budgets"
_SEVERAL: Final = "it has more than one PodDisruptionBudget, which an eviction does not support"
# Owners with a number of replicas, and the listers that know it where there is no manifest.
_SCALED: Final = {
    "ReplicaSet": ("apps", "replica_sets"),
    "StatefulSet": ("apps", "stateful_sets"),
    "ReplicationController": ("", "replication_controllers"),
}


class Budgets:
    """The disruption budgets of a model, kept current as pods change.

    Parameters
    ----------
    model
        Has the pods and the budgets.
    """

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._objects = model.objects
        self._selectors: dict[Key, Selector] = {}
        # Budget -> the pods that it selects; read from all pods once, when it is first asked.
        self._members: dict[Key, dict[Key, None]] = {}
        self._due: set[Key] = set()
        model.listeners.append(self._pod_changed)

    def objection(self, pod: Pod) -> str:
        """Return why the eviction of a pod would be refused now, "" if it would not.

        Parameters
        ----------
        pod
            The newest version of a pod.
        """
        if pod.metadata.deletion_timestamp or pod.status.phase in (
            "Pending",
            "Succeeded",
            "Failed",
        ):
            return ""
        keys = self._budgets_of(pod)
        if len(keys) > 1:
            return _SEVERAL
        if not keys:
            return ""
        budget = self._synced(keys[0])
        status = budget.status
        if not is_ready(pod):
            always = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
            if always or status.current_healthy >= status.desired_healthy > 0:
                return ""
        if status.disruptions_allowed > 0:
            return ""
        return (
            f"the disruption budget {budget.name} needs {status.desired_healthy} healthy pods and "
            f"has {status.current_healthy}"
        )

    # --- keeping current ------------------------------------------------------------------------

    def _known_budgets(self) -> dict[Key, Any]:
        return self._objects.lister(_LISTER)

    def _budgets_of(self, pod: Pod) -> list[Key]:
        return [
            key
            for key in self._known_budgets()
            if key[0] == pod.namespace and self._selects(key, pod)
        ]

    def _selects(self, key: Key, pod: Pod) -> bool:
        if key not in self._selectors:
            self._selectors[key] = compile_label_selector(self._known_budgets()[key].spec.selector)
        return self._selectors[key].matches(pod.metadata.labels)

    def _pod_changed(self, pod: Pod) -> None:
        """Note a pod that came, changed or went, and look at its budgets in a moment."""
        if not self._known_budgets():
            return
        for key in self._budgets_of(pod):
            members = self._members.get(key)
            if members is not None:
                if pod.key in self._objects.pods:
                    members[pod.key] = None
                else:
                    members.pop(pod.key, None)
            if key not in self._due:
                self._due.add(key)
                self._model.soon(partial(self._look, key))

    def _look(self, key: Key) -> None:
        self._due.discard(key)
        if key in self._known_budgets():
            self._synced(key)

    def _synced(self, key: Key) -> PodDisruptionBudget:
        """Return a budget whose status is right for the pods of this moment."""
        budget: PodDisruptionBudget = self._known_budgets()[key]
        if key not in self._members:
            found = (pod for pod in self._objects.pods.values() if pod.namespace == key[0])
            self._members[key] = {pod.key: None for pod in found if self._selects(key, pod)}
        pods = [self._objects.pods[each] for each in self._members[key]]
        now_ns = self._model.virtual_now_ns
        due = budget_due(budget, pods, partial(self._scale_of, budget), now_ns)
        if due.status is None:
            return budget
        changes = {**msgspec.to_builtins(budget.status), **due.status, "disruptedPods": {}}
        status = msgspec.convert(changes, type(budget.status))
        budget = msgspec.structs.replace(budget, status=status)
        self._model.put_object(_LISTER, key, budget)
        return budget

    def _scale_of(self, budget: PodDisruptionBudget, owner: OwnerReference) -> Scale | None:
        """Return the wanted number of pods of an owner; unknown, it is that of the budget."""
        group, lister = _SCALED.get(owner.kind, ("", ""))
        key = (budget.namespace, owner.name)
        text = self._objects.manifests.get((group, owner.kind), {}).get(key) if lister else None
        if text is not None:
            above_or_self = decode(Whole, text)
            above = above_or_self.metadata.controller
            if above is not None and above.kind == "Deployment":
                parent = self._objects.manifests.get(("apps", "Deployment"), {}).get(
                    (budget.namespace, above.name)
                )
                above_or_self = above_or_self if parent is None else decode(Whole, parent)
            replicas = above_or_self.spec.get("replicas")
            return Scale(above_or_self.metadata.uid, 1 if replicas is None else int(replicas))
        typed: Any = self._objects.lister(lister).get(key) if lister else None
        if typed is not None:
            return Scale(owner.uid, 1 if typed.spec.replicas is None else typed.spec.replicas)
        if budget.status.expected_pods:
            return Scale(owner.uid, budget.status.expected_pods)
        raise BudgetError(f"{owner.kind} {owner.name} has no scale")
