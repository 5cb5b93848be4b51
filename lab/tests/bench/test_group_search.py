"""The benchmark of the complete search at a tiny size: all groups are placed; it repeats itself.

Not covered: how many of thousands of groups are placed in time (docs, explanation).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.cli.main import main
from moorage_lab.bench.group_search.generator import Case, Shape, exact_cases, random_case


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(main, ["bench", "groups-complete", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_every_group_is_placed_and_the_same_seed_finds_the_same_places() -> None:
    arguments = ("--exact", "1", "--random", "3", "-o", "json")
    first, second = json.loads(run(*arguments).stdout), json.loads(run(*arguments).stdout)
    assert first["digest"] == second["digest"]
    assert [each["placed"] for each in first["groups"]] == [True] * 9


def test_the_table_has_a_row_for_each_kind_of_groups() -> None:
    lines = run("--exact", "1", "--random", "0").stdout.splitlines()
    assert [line.split("   ")[0].rstrip() for line in lines[:8]] == [
        "GROUPS",
        "exact, cpu, 0% slack",
        "exact, cpu, 10% slack",
        "exact, cpu, 20% slack",
        "exact, cpu and memory, 0% slack",
        "exact, cpu and memory, 10% slack",
        "exact, cpu and memory, 20% slack",
        "all",
    ]


def test_without_groups_there_is_nothing_to_measure() -> None:
    arguments = ["bench", "groups-complete", "--exact", "0", "--random", "0"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "there is nothing to measure" in result.output


def asked(members: tuple[Shape, ...]) -> tuple[int, int]:
    return sum(each.cpu_milli for each in members), sum(each.memory_mib for each in members)


@pytest.mark.parametrize("case", exact_cases(5, of_each=2), ids=lambda case: case.family)
def test_an_exact_group_asks_for_no_more_than_its_nodes_have(case: Case) -> None:
    nodes = [each for each in case.nodes if each.pool == case.pool]
    cpu, memory = asked(case.members)
    assert len(nodes) == 6
    assert cpu <= 6 * 16_000
    assert memory <= 6 * 64 * 1024


def test_random_groups_are_of_the_kinds_that_the_table_names() -> None:
    cases = [random_case(seed) for seed in range(60)]
    assert {each.family for each in cases} == {
        "random, plain",
        "random, apart",
        "random, plain, two levels",
        "random, apart, two levels",
    }
    for case in cases:
        assert 2 <= len(case.members) <= 64
        assert 1 <= len({*case.members}) <= 6
        assert 50 <= len(case.nodes) <= 5000
