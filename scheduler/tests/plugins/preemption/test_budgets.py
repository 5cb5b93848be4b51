"""What the budgets remember between questions; their rejections are held to the reference."""

from __future__ import annotations

from moorage.api.codec import from_dict
from moorage.api.policy import PodDisruptionBudget
from moorage.plugins.preemption.budgets import Budgets
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import pod


def budget(name: str, namespace: str) -> PodDisruptionBudget:
    return from_dict(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
        },
    )


def replica(index: int) -> PodInfo:
    return PodInfo(pod(f"p{index}", labels={"app": "a", "index": str(index)}))


def test_pods_that_no_budget_can_protect_are_not_cached():
    lister: Lister[PodDisruptionBudget] = Lister()
    lister.put(budget("elsewhere", "other"))
    budgets = Budgets(lister)
    assert [budgets.violating([replica(index)]) for index in range(3)] == [[], [], []]
    assert len(budgets._by_labels) == 0


def test_the_cache_of_label_sets_is_bounded(monkeypatch):
    monkeypatch.setattr("moorage.plugins.preemption.budgets._LABELS_MOST", 2)
    lister: Lister[PodDisruptionBudget] = Lister()
    lister.put(budget("here", "default"))
    budgets = Budgets(lister)
    assert [budgets.violating([replica(index)]) for index in range(5)] == [[0]] * 5
    assert len(budgets._by_labels) <= 2
