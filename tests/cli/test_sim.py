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
