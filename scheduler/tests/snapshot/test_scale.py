"""Pods with labels of their own, in number: columns grow with pods and nodes, not their product."""

from __future__ import annotations

import pytest

from moorage.api.selectors import EVERYTHING, equality_selector
from moorage.snapshot.pod_columns import CountKey, PodColumns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import cluster, node, pod

NODES = 5_000
PODS = 150_000


def column_bytes(snapshot: Snapshot) -> int:
    return sum(array.nbytes for array in snapshot.table.columns._arrays.values())


def pod_table_bytes(pods: PodColumns) -> int:
    arrays = (pods._row, pods._label_set, pods._live)
    return sum(array.nbytes for array in arrays)


@pytest.mark.slow
def test_label_sets_of_their_own_do_not_multiply_with_nodes():
    snapshot = Snapshot()
    for i in range(NODES):
        snapshot.table.add_node(node(f"n{i}"))
    pods = snapshot.table.pods
    keys = [CountKey(equality_selector({"app": f"a{i}"}), None, True) for i in range(15)]
    keys.append(CountKey(EVERYTHING, None, False))
    for i in range(PODS // 2):
        pods.add(f"u{i}", i % NODES, "ns", {"app": f"a{i % 16}", "index": str(i)}, live=True)
    for key in keys:
        snapshot.count_column(key)
    half = column_bytes(snapshot)
    for i in range(PODS // 2, PODS):
        pods.add(f"u{i}", i % NODES, "ns", {"app": f"a{i % 16}", "index": str(i)}, live=True)
    assert column_bytes(snapshot) == half  # node columns know nothing of the number of pods
    assert half < NODES * 2 * 8 * (len(keys) + 30)
    # A fixed few a pod, doubled by growing; no byte for each selector.
    assert pod_table_bytes(pods) < 2 * PODS * (2 * 8 + 1 + 1)
    assert snapshot.count_column(keys[-1]).sum() == PODS
    assert [int(snapshot.count_column(key).sum()) for key in keys[:15]] == [
        len(range(i, PODS, 16)) for i in range(15)
    ]
    for i in range(PODS):
        pods.remove(f"u{i}")
    assert all(int(snapshot.count_column(key).sum()) == 0 for key in keys)
    assert pods._label_sets.size == PODS
    assert list(pods._label_sets.live()) == []


def test_a_pod_is_held_against_the_selectors_its_labels_may_match_only():
    """However many selectors and label sets there are: what is looked at is counted, not timed."""
    snapshot = cluster(node("n"))
    pods = snapshot.table.pods
    for i in range(300):
        pods.add(f"u{i}", 0, "ns", {"app": f"a{i}", "index": str(i)}, live=True)
        snapshot.count_column(CountKey(equality_selector({"app": f"a{i}"}), None, False))
    assert len(list(pods._by_selector.candidates("ns", {"app": "a7", "index": "7"}))) == 1
    wanted = equality_selector({"app": "a7"})
    assert list(pods._label_sets._candidates(wanted)) == pods._label_sets.matching(wanted, None)
    assert len(pods._label_sets.matching(wanted, None)) == 1


def test_terms_of_their_own_are_not_asked_about_every_pod_nor_kept_as_columns():
    nodes = [node(f"n{i}", labels={"host": str(i)}) for i in range(100)]
    snapshot = cluster(*nodes)
    empty = column_bytes(snapshot)
    for i in range(2000):
        term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": f"a{i}"}}}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        snapshot.table.add_pod(
            pod(f"p{i}", labels={"app": f"a{i}"}, affinity={"podAntiAffinity": rule}), f"n{i % 100}"
        )
    terms = snapshot.affinity_terms
    assert len(terms) == 2000
    assert column_bytes(snapshot) == empty + 8 * snapshot.table.columns._capacity  # the label
    assert len(list(terms._index.candidates("a", {"app": "a7", "other": "x"}))) == 1
    asked = PodInfo(pod("asked", labels={"app": "a7"}))
    (found,) = terms.matching(asked, {}, labels_version=0).required_anti
    assert found.counts() == {"7": 1}
