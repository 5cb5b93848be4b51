"""Drawn worlds are right: the totals of five hundred seeds, with no exception."""

from __future__ import annotations

import pytest

from moorage_lab.fault_sim.company.series import judged

_WORLDS = 500
_TOGETHER = 25


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", range(1, _WORLDS + 1, _TOGETHER), ids=lambda seed: f"from seed {seed}"
)
def test_no_total_of_a_world_is_too_large(first: int) -> None:
    """`moorage fault-sim company --worlds 1 --seed N` plays one of them again."""
    worlds = [judged(seed) for seed in range(first, first + _TOGETHER)]
    wrong = {world.seed: [each.text for each in world.excesses] for world in worlds}
    assert {seed: texts for seed, texts in wrong.items() if texts} == {}
