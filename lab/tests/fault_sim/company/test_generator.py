"""Worlds that are drawn: the same for the same seed, and together they cover the combinations."""

from __future__ import annotations

from moorage_lab.fault_sim.company.coverage import coverage_of
from moorage_lab.fault_sim.company.generator import FEATURES, draw_world, features_of

_WORLDS = 500


def test_a_seed_draws_one_world() -> None:
    assert [draw_world(seed) for seed in range(5)] == [draw_world(seed) for seed in range(5)]


def test_worlds_are_small() -> None:
    worlds = [draw_world(seed) for seed in range(100)]
    assert {len(world.nodes) for world in worlds} <= set(range(1, 9))
    assert max(world.end_seconds for world in worlds) <= 200


def test_worlds_of_continuous_integration_cover_each_pair_and_most_triples() -> None:
    covered = coverage_of(tuple(sorted(features_of(seed))) for seed in range(_WORLDS))
    assert covered.missing_pairs == []
    assert covered.triples > 0.75 * covered.triples_possible
    assert sorted(covered.worlds_by_feature) == sorted(FEATURES)
