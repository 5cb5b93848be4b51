"""The benchmark of explanations asks about every cause, and finds suggestions."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.explain.run import CAUSES, measure_explanations


def test_every_cause_is_asked_about_on_a_full_cluster() -> None:
    lines: list[str] = []
    found = measure_explanations(
        in_tree_registry(),
        nodes=12,
        pods_a_node=7,
        rounds=2,
        clock=ManualClock(),
        progress=lines.append,
    )
    assert (found.nodes, found.pods, found.questions) == (12, 84, 2 * len(CAUSES))
    assert set(found.by_cause) == set(CAUSES)
    assert found.suggestions >= 2 * (len(CAUSES) - 2)
    assert found.p50_ms <= found.p95_ms <= found.max_ms
    assert lines == ["12 nodes, 84 pods", "round 1 of 2", "round 2 of 2"]
