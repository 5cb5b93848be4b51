"""Worlds that are drawn: the same for the same seed, and together they cover the combinations."""

from __future__ import annotations

from moorage_lab.fault_sim.company.coverage import coverage_of
from moorage_lab.fault_sim.company.features import FEATURES, WIDE_FEATURES, features_of
from moorage_lab.fault_sim.company.generator import draw_world

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


def test_worlds_of_a_seed_are_the_same_whether_or_not_wide_ones_are_drawn() -> None:
    before = [draw_world(seed) for seed in range(5)]
    wide = [draw_world(seed, wide=True) for seed in range(5)]
    assert wide == [draw_world(seed, wide=True) for seed in range(5)]
    assert before == [draw_world(seed) for seed in range(5)]


def test_wide_worlds_cover_each_pair_and_most_triples() -> None:
    """One pair cannot be: the complete search is for mode ``trial`` only."""
    drawn = (tuple(sorted(features_of(seed, wide=True))) for seed in range(_WORLDS))
    covered = coverage_of(drawn, WIDE_FEATURES)
    assert covered.missing_pairs == [("complete-groups", "permit")]
    assert covered.triples > 0.75 * covered.triples_possible
    assert sorted(covered.worlds_by_feature) == sorted(WIDE_FEATURES)
