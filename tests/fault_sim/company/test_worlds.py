"""Drawn worlds are right: the totals of five hundred seeds, but for the exceptions listed here."""

from __future__ import annotations

import pytest

from moorage.fault_sim.company.series import judged

_WORLDS = 500
_TOGETHER = 25
_AT_PERMIT = (221, 287, 458)
"""Groups whose members are placed one by one: nominated for five minutes though the group no longer
fits (287), bound next to one whose node goes in that moment (458), and before a node that comes
11 ms later (221)."""
_EXCEPTIONS = frozenset(_AT_PERMIT)
"""Seeds of which a total is too large. The lists may only shrink."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", range(1, _WORLDS + 1, _TOGETHER), ids=lambda seed: f"from seed {seed}"
)
def test_no_total_of_a_world_is_too_large(first: int) -> None:
    """`moorage fault-sim company --worlds 1 --seed N` plays one of them again."""
    seeds = [seed for seed in range(first, first + _TOGETHER) if seed not in _EXCEPTIONS]
    worlds = [judged(seed) for seed in seeds]
    wrong = {world.seed: [each.text for each in world.excesses] for world in worlds}
    assert {seed: texts for seed, texts in wrong.items() if texts} == {}
