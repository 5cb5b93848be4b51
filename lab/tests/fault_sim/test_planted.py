"""Planted mistakes: each has its place in the source, and some are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tests.fault_sim.planted import PLANTED, TABLE, Planted, copied, hunt, source_of


@pytest.mark.parametrize("each", PLANTED, ids=lambda each: each.name)
def test_the_place_of_a_mistake_is_in_the_source(each: Planted) -> None:
    text = source_of(each.file).read_text()
    assert text.count(each.old) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["deletion-wakes-nobody", "events-in-flight-lost"])
def test_a_planted_mistake_is_found(name: str, tmp_path: Path) -> None:
    [each] = [each for each in PLANTED if each.name == name]
    # Every change of the simulation draws anew: far more seeds are allowed than are needed.
    assert hunt(each, copied(tmp_path), runs=500, seconds=600).invariant


def test_the_table_names_every_mistake() -> None:
    table = TABLE.read_text()
    assert [each.name for each in PLANTED if f"| {each.name} |" not in table] == []
