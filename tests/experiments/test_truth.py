"""A simulation places every pod where a whole sandbox places it, for random scenarios.

Some seeds are played each time, more among the slow tests. A seed that fails is the id of its test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.truth import Scene, played, simulated

_FEW = 24
_MANY = 200


@pytest.mark.parametrize("seed", range(_FEW), ids=lambda seed: f"seed {seed}")
def test_every_pod_is_on_the_node_where_a_sandbox_puts_it(seed: int, tmp_path: Path) -> None:
    scene = Scene(seed)
    assert simulated(scene, tmp_path) == played(scene)


def test_the_scenarios_have_pods_that_wait_end_and_are_evicted(tmp_path: Path) -> None:
    """Otherwise the agreement would say little."""
    places = [simulated(Scene(seed), tmp_path) for seed in range(_FEW)]
    waiting = [len(Scene(seed).pods) - len(found) for seed, found in enumerate(places)]
    assert sum(map(bool, waiting)) > _FEW / 4
    assert sum(Scene(seed).fails is not None for seed in range(_FEW)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(_FEW, _MANY, 44), ids=lambda seed: f"from seed {seed}")
def test_every_pod_of_many_scenarios(first: int, tmp_path: Path) -> None:
    seeds = range(first, min(first + 44, _MANY))
    scenes = [Scene(seed) for seed in seeds]
    assert [each.seed for each in scenes if simulated(each, tmp_path) != played(each)] == []
