"""Scripts in which a hunt found a breach: each is played again, shortened, as the hunt kept it.

A file's name has the seed of the script and the invariant that was broken. The mistake itself has a
test of its own in the room where it was fixed: a script draws anew after any change of the
simulation, and may then miss it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import play

SCRIPTS = sorted(Path(__file__).with_name("replay_scripts").glob("*.json"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_invariant_holds_in_a_script_that_once_broke_one(path: Path) -> None:
    script = msgspec.json.decode(path.read_bytes(), type=Script)
    assert path.stem.startswith(f"{script.seed}-")
    outcome = play(script)
    assert [(each.invariant, each.text) for each in outcome.breaches] == []
    assert outcome.fault_counts or outcome.bound
