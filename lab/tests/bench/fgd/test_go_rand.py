"""The generator of Go: known draws, and the parts built on it."""

from __future__ import annotations

from moorage_lab.bench.fgd.go_rand import GoRand


def test_the_first_draws_of_seed_1_are_those_of_go():
    generator = GoRand(1)
    assert [generator.below(100) for _ in range(5)] == [81, 87, 47, 59, 81]


def test_seed_0_is_the_seed_that_stands_for_it():
    assert GoRand(0).bits63() == GoRand(89482311).bits63()


def test_a_power_of_two_and_one_use_up_a_value_each():
    one, other = GoRand(7), GoRand(7)
    assert one.below(1) == 0
    other.bits63()
    assert one.below(64) == other.bits63() >> 32 & 63


def test_a_permutation_and_a_shuffle_keep_every_item():
    items = list(range(100))
    GoRand(5).shuffle(items)
    assert items != sorted(items) == list(range(100))
    assert sorted(GoRand(5).permutation(100)) == list(range(100))
