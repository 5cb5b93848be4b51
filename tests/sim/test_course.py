"""Whole runs: the same seed is the same run, and every invariant holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest

from moorage.sim.acts import Script
from moorage.sim.course import Outcome, play
from moorage.sim.scenarios import SCENARIOS, scenario


def told(outcome: Outcome) -> str:
    """Return the breaches of a run, each in a line; "" for none."""
    return "\n".join(f"{each.invariant}: {each.text}" for each in outcome.breaches)


# Seeds that break an invariant; not known yet whether the scheduler or the invariant is wrong.
_NOT_UNDERSTOOD = {
    ("quotas", 4): "a node's column of requested cpu is larger than what its pods ask",
}


def test_a_short_run_holds_every_invariant_and_can_be_repeated() -> None:
    script = msgspec.structs.replace(scenario("mixed"), steps=12).script(3)
    first = play(script)
    assert told(first) == ""
    assert first.bound > 0
    again = play(msgspec.json.decode(msgspec.json.encode(script), type=Script))
    assert again.lines == first.lines


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
# Seed 4 of mixed: a preemptor whose evictions failed was tried again a thousand times a second.
@pytest.mark.parametrize("seed", range(1, 7))
def test_every_invariant_holds(name: str, seed: int, request: pytest.FixtureRequest) -> None:
    if (name, seed) in _NOT_UNDERSTOOD:
        reason = _NOT_UNDERSTOOD[name, seed]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    assert told(play(scenario(name).script(seed))) == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_does_not_depend_on_the_order_of_hashing() -> None:
    def digest(hash_seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "moorage", "sim", "run", "--seed", "6", "-o", "json"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found: str = json.loads(done.stdout)["digest"]
        return found

    assert digest("1") == digest("2")
