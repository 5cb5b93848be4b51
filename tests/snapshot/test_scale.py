"""Pods with labels of their own, in number: columns grow with pods and nodes, not their product."""

from __future__ import annotations

import pytest

from moorage.api.selectors import EVERYTHING, equality_selector
from moorage.snapshot.pod_columns import CountKey, PodColumns
from moorage.snapshot.snapshot import Snapshot
from tests.snapshot.builders import node

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
