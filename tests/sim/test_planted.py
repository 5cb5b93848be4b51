"""Planted mistakes: each has its place in the source, and some are looked for."""

from __future__ import annotations

import pytest

from tests.sim.planted import PLANTED, SOURCE, Planted, hunt


@pytest.mark.parametrize("each", PLANTED, ids=lambda each: each.name)
def test_the_place_of_a_mistake_is_in_the_source(each: Planted) -> None:
    text = (SOURCE / "moorage" / each.file).read_text()
    assert text.count(each.old) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["deletion-wakes-nobody", "lease-not-asked"])
def test_a_planted_mistake_is_found(name: str) -> None:
    [each] = [each for each in PLANTED if each.name == name]
    invariant, _, _ = hunt(each, runs=30, seconds=600)
    assert invariant
