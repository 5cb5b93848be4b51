"""Plays situations, each alone, until an invariant is broken.

``python -m lab.tests.fault_sim.alone [NAME ...]`` plays the named ones, or all, and prints as
JSON the invariant, the situation, the number of scripts and the processor's seconds; "" for nothing
broken. A hunt plays every situation within some hundred seeds; this finds in seconds what one of
them tells.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence

from lab.tests.fault_sim.one_situation import one_situation
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.scenarios import ONE_BY_ONE

_SEEDS = (1, 2)


def broken_by(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Play situations alone; yield the name of each, and the first invariant broken."""
    for seed in _SEEDS:
        for setup, situation in ONE_BY_ONE:
            if not names or situation.name in names:
                outcome = play(
                    one_situation(situation, seed=seed, setup=setup, rest_seconds=40.0, looks=True)
                )
                broken = outcome.breaches[0].invariant if outcome.breaches else ""
                yield situation.name, broken


def main() -> None:
    """Play, and print the first situation that broke something."""
    found, played, began = ("", ""), 0, time.process_time()
    for name, broken in broken_by(sys.argv[1:]):
        played += 1
        if broken:
            found = broken, name
            break
    sys.stdout.write(json.dumps([*found, played, time.process_time() - began]) + "\n")


if __name__ == "__main__":
    main()
