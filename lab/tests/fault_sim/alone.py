"""Plays things that a pod can wait for, each alone, until an invariant is broken.

``python -m lab.tests.fault_sim.alone [NAME ...]`` plays the named things, or all, and prints as
JSON the invariant, the thing, the number of scripts and the processor's seconds; "" for nothing
broken. A hunt plays every thing within some hundred seeds; this finds in seconds what one thing
tells.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence

from lab.tests.fault_sim.one_wait import one_wait
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.scenarios import ONE_BY_ONE
from moorage_lab.fault_sim.users.waits import SatisfiedWait

_SEEDS = (1, 2)


def name_of(wait: SatisfiedWait) -> str:
    """Return the name of a thing."""
    return wait.__name__.strip("_")


def broken_by(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Play things alone; yield of each script the thing, and the first invariant broken."""
    for seed in _SEEDS:
        for setup, wait in ONE_BY_ONE:
            if not names or name_of(wait) in names:
                outcome = play(
                    one_wait(wait, seed=seed, setup=setup, rest_seconds=40.0, looks=True)
                )
                broken = outcome.breaches[0].invariant if outcome.breaches else ""
                yield name_of(wait), broken


def main() -> None:
    """Play, and print the first thing that broke something."""
    found, played, began = ("", ""), 0, time.process_time()
    for thing, broken in broken_by(sys.argv[1:]):
        played += 1
        if broken:
            found = broken, thing
            break
    sys.stdout.write(json.dumps([*found, played, time.process_time() - began]) + "\n")


if __name__ == "__main__":
    main()
