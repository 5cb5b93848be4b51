"""``moorage sim``: output, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type


def test_a_run_is_kept_and_replayed(bare: Type) -> None:
    kept = bare("sim", "run", "--seed", "4", "--steps", "3", "--save", "s.json", "-o", "json")
    assert kept.exit_code == 0
    again = bare("sim", "replay", "s.json", "-o", "json")
    first, second = json.loads(kept.stdout), json.loads(again.stdout)
    assert first["digest"] == second["digest"]
    assert len(second.pop("trace")) > 10
    assert first == second


def test_a_run_has_as_many_nodes_as_are_asked_for(bare: Type) -> None:
    words = ("--scenario", "calm", "--steps", "3", "--nodes", "12", "--save", "s.json")
    assert bare("sim", "run", *words).exit_code == 0
    names = {each["metadata"]["name"] for each in json.loads(Path("s.json").read_text())["nodes"]}
    assert names >= {f"n{number}" for number in range(12)}  # others are for pods with a want
    assert "n12" not in names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "--scenario", "storm"],
            "error: no scenario 'storm'; there are calm, wants, few, late, wire, leaders, "
            "quotas, operations, extenders, disk, mixed",
        ),
        (
            ["run", "--faults", "wire,rain"],
            "error: no fault 'rain'; there are wire, stop, kill, jump, outage, blind, agents, "
            "stale, disk, and none",
        ),
        (["replay", "gone.json"], "error: gone.json cannot be read: No such file or directory"),
        (
            ["replay", "bad.json"],
            "error: bad.json is no script of a simulation: Object contains unknown field `sede`",
        ),
    ],
)
def test_bad_input_is_told(bare: Type, words: list[str], message: str) -> None:
    Path("bad.json").write_text('{"sede": 1}')
    result = bare("sim", *words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == message
