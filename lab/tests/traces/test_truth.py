"""A simulation places every pod where a whole sandbox places it, for random scenarios.

Some seeds are played each time, more among the slow tests. A seed that fails is the id of its test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tests.traces.truth import Scene, played, simulated

_FEW = 3
_MANY = 99
_TOGETHER = 8


@pytest.mark.parametrize("seed", range(_FEW), ids=lambda seed: f"seed {seed}")
def test_every_pod_is_on_the_node_where_a_sandbox_puts_it(seed: int, tmp_path: Path) -> None:
    scene = Scene(seed)
    places = played(scene)
    assert places is not None
    assert simulated(scene, tmp_path) == places


def test_the_scenarios_have_pods_that_wait_and_nodes_that_fail(tmp_path: Path) -> None:
    """Otherwise the agreement would say little."""
    scenes = [Scene(seed) for seed in range(12)]
    waiting = [len(scene.pods) > len(simulated(scene, tmp_path)) for scene in scenes]
    assert sum(waiting) >= 3
    assert sum(scene.fails is not None for scene in scenes) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", range(_FEW, _MANY, _TOGETHER), ids=lambda seed: f"from seed {seed}"
)
def test_every_pod_of_many_scenarios(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + _TOGETHER)
    places = {scene: played(scene) for scene in map(Scene, seeds)}
    comparable = {scene: nodes for scene, nodes in places.items() if nodes is not None}
    assert len(comparable) >= len(places) - 2
    different = [s.seed for s, nodes in comparable.items() if simulated(s, tmp_path) != nodes]
    assert different == []
