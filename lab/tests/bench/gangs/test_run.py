"""The benchmark of gangs at a tiny size: it runs, and repeats itself."""

from __future__ import annotations

import json

from click.testing import CliRunner

from moorage.cli.main import main


def run() -> dict[str, object]:
    args = ["bench", "gang", "--nodes", "6", "--sizes", "2,8", "--gangs", "3", "--repeats", "1"]
    result = CliRunner().invoke(main, [*args, "-o", "json"])
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_the_same_seed_finds_the_same_places():
    first, second = run(), run()
    assert first["digest"] == second["digest"]
    assert isinstance(first["sizes"], list)
    assert [each["pods"] for each in first["sizes"]] == [2, 8]


def test_a_gang_that_does_not_fit_is_an_error_that_says_why():
    result = CliRunner().invoke(main, ["bench", "gang", "--nodes", "1", "--sizes", "200"])
    assert result.exit_code == 2
    assert "gang default/of-200 does not fit: pod group is unschedulable" in result.output
