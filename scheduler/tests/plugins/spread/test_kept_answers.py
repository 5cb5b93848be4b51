"""Answers of PodTopologySpread that are given again, and where they end."""

from __future__ import annotations

from typing import Any

from moorage.framework.cycle_state import CycleState
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, make
from scheduler.tests.plugins.spread.test_pod_topology_spread import NAME, WEB, a_node, a_pod, rule


def _filter(plugin: Any, snapshot: Any, info: PodInfo) -> Any:
    state = CycleState()
    plugin.pre_filter(state, info, snapshot)
    return plugin.filter(state, info, snapshot.all())


def test_the_answer_for_the_same_domains_is_given_again():
    snapshot = cluster(*(a_node(f"n{i}", f"z{i % 2}") for i in range(4)))
    plugin, _ = make(NAME, snapshot)
    asked, replica = PodInfo(a_pod("p", WEB, rule())), PodInfo(a_pod("q", WEB, rule()))
    snapshot.table.add_pod(a_pod("a", WEB), "n0")
    first = _filter(plugin, snapshot, asked)
    assert first.failed_n.tolist() == [True, False, True, False]
    snapshot.table.add_pod(a_pod("b", WEB), "n1")
    assert _filter(plugin, snapshot, asked) is None
    snapshot.table.add_pod(a_pod("c", WEB), "n1")
    other = _filter(plugin, snapshot, asked)
    assert other.failed_n.tolist() == [False, True, False, True]
    snapshot.table.add_pod(a_pod("d", WEB), "n0")
    snapshot.table.add_pod(a_pod("e", WEB), "n2")
    assert _filter(plugin, snapshot, replica) is first


def test_the_kept_answer_ends_with_a_change_of_nodes():
    snapshot = cluster(*(a_node(f"n{i}", f"z{i % 2}") for i in range(4)))
    plugin, _ = make(NAME, snapshot)
    asked = PodInfo(a_pod("p", WEB, rule()))
    snapshot.table.add_pod(a_pod("a", WEB), "n0")
    _filter(plugin, snapshot, asked)
    snapshot.table.update_node(a_node("n3", "z0"))
    found = _filter(plugin, snapshot, asked)
    assert found.failed_n.tolist() == [True, False, True, True]
