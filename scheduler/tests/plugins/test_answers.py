"""Answers kept by set and by shape stay right when ids get a new meaning."""

from __future__ import annotations

from moorage.framework.cycle_state import CycleState
from moorage.plugins.answers import SetAnswers, memo_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import TOLERATIONS
from scheduler.tests.plugins.builders import cluster, make, node, pod

HARD = [{"key": "k", "effect": "NoSchedule"}]
SOFT = [{"key": "k", "effect": "PreferNoSchedule"}]


def test_an_id_that_gets_a_new_set_gets_a_new_answer():
    snapshot = cluster(node("a", taints=HARD))
    plugin, _ = make("TaintToleration", snapshot)
    asked, state = PodInfo(pod()), CycleState()
    assert plugin.filter(state, asked, snapshot.all()).code_n.tolist() == [3]
    old_id = int(snapshot.taint_sets.ids[0])
    snapshot.table.update_node(node("a"))
    snapshot.table.update_node(node("a", taints=SOFT))
    assert int(snapshot.taint_sets.ids[0]) == old_id, "the case is about reuse of an id"
    assert plugin.filter(state, asked, snapshot.all()) is None


def test_each_set_of_the_view_is_answered_once():
    asked_about: list[int] = []

    def count(taints: tuple[object, ...]) -> int:
        asked_about.append(len(taints))
        return len(taints)

    snapshot = cluster(node("a"), node("b", taints=HARD), node("c", taints=HARD), node("d"))
    answers, sets = SetAnswers(count), snapshot.taint_sets
    assert answers.gather(sets, snapshot.rows([1])).tolist() == [1]
    assert asked_about == [1]
    assert answers.gather(sets, snapshot.all()).tolist() == [0, 1, 1, 0]
    assert asked_about == [1, 0]
    snapshot.table.add_node(node("e", taints=HARD + SOFT))
    assert answers.gather(sets, snapshot.all()).tolist() == [0, 1, 1, 0, 2]
    assert asked_about == [1, 0, 2]


def test_compiled_values_are_shared_by_replicas_and_not_by_plugin_instances():
    first = PodInfo(pod("a", tolerations=[{"operator": "Exists"}])).part(TOLERATIONS)
    twin = PodInfo(pod("b", tolerations=[{"operator": "Exists"}])).part(TOLERATIONS)
    one, other = object(), object()
    compiled = memo_of(first, one, lambda value: [value])
    assert memo_of(twin, one, lambda value: [value]) is compiled
    assert memo_of(twin, other, lambda value: [value]) is not compiled
