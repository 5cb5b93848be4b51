"""Sums by domain, updated by changed rows, equal sums over all rows.

Left out: what plugins make of them (their own tests).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from moorage.plugins.affinity.domain_counts import DomainSums
from moorage.plugins.running_sums import Places, RunningSums
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import COUNTS, cluster, node, pod
from scheduler.tests.snapshot.histories import World, histories

KEYS = ("zone", "disk")


def by_value(snapshot: Snapshot, key: str, count_n: np.ndarray) -> dict[str, int]:
    """Sum a column over the values of a label, node by node."""
    found: dict[str, int] = {}
    for row in range(snapshot.num_nodes):
        value = snapshot.node(row).metadata.labels.get(key)
        if value is not None:
            found[value] = found.get(value, 0) + int(count_n[row])
    return {value: count for value, count in found.items() if count}


@settings(max_examples=80)
@given(histories)
def test_sums_kept_through_any_history_equal_sums_taken_node_by_node(history):
    world = World()
    kept = DomainSums(world.snapshot)
    for event in history:
        world.apply(event)
        for key in KEYS:
            for count in COUNTS:
                found = kept.domains_of(key, count)
                assert found.by_domain[-1] == 0  # what a node without the label reads
                named = zip(found.column.values, found.by_domain.tolist(), strict=False)
                expected = by_value(world.snapshot, key, world.snapshot.count_column(count))
                assert {value: number for value, number in named if number} == expected


@pytest.fixture
def snapshot():
    return cluster(*(node(f"n{i}", labels={"zone": f"z{i % 2}"}) for i in range(40)))


def test_a_returned_array_never_changes(snapshot):
    kept, count = DomainSums(snapshot), COUNTS[0]
    before = kept.domains_of("zone", count).by_domain
    frozen = before.tolist()
    with snapshot.trial() as trial:
        trial.add_pod(PodInfo(pod("p", labels={"app": "web"})), 3)
        inside = kept.domains_of("zone", count).by_domain.tolist()
    after = kept.domains_of("zone", count).by_domain.tolist()
    assert (before.tolist(), inside, after) == (frozen, [0, 1, 0], frozen)


def test_uncounted_rows_do_not_change_sums(snapshot):
    odd = np.arange(40) % 2 == 1
    places = Places(snapshot.label_column("zone").ids, 2, odd)
    kept, count = RunningSums(snapshot), COUNTS[0]
    kept.sums_of(places, count)
    for row in (2, 3, 3):
        name = f"p{snapshot.table.pod_total}"
        snapshot.table.add_pod(pod(name, labels={"app": "web"}), f"n{row}")
        assert (
            kept.sums_of(places, count).tolist()
            == places.sums(snapshot.count_column(count)).tolist()
        )
    assert kept.sums_of(places, count).tolist() == [0, 2, 0]


def test_the_number_of_kept_sums_is_bounded(snapshot):
    kept = RunningSums(snapshot)
    for _ in range(300):
        kept.sums_of(Places(snapshot.label_column("zone").ids, 2, None), COUNTS[0])
    assert len(kept._sums) == 128
