"""The bound of what a hunt can find: the share of mistakes on lines that its runs execute.

``python -m lab.tests.fault_sim.reach --runs N`` plays N runs of a hunt and says, for each room, how
many of the changes of `lab.tests.fault_sim.mutations` are on lines that were run. No invariant can
tell a mistake on another line. It takes minutes, where hunting for a sample of mistakes takes
hours, so it shows first whether users or invariants have to become better.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import coverage

from lab.tests.fault_sim.mutations import SOURCE, Mutation, all_mutations
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.hunt import Steering
from moorage_lab.fault_sim.scenarios import IN_TURN, scenario


def lines_run(first_seed: int, runs: int, names: Iterable[str]) -> dict[str, set[int]]:
    """Return the lines of each file of the scheduler that a hunt through scenarios runs.

    Lines that only an import runs do not count: the modules are imported before.
    """
    steering = Steering([scenario(name) for name in names], first_seed)
    watch = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False)
    watch.start()
    for _ in range(runs):
        script = steering.next()
        steering.learn(script, play(script))
        gc.collect()
    watch.stop()
    data = watch.get_data()
    return {
        Path(file).relative_to(SOURCE).as_posix(): set(data.lines(file) or ())
        for file in data.measured_files()
    }


def report(mutations: Iterable[Mutation], lines: Mapping[str, AbstractSet[int]]) -> str:
    """Return the share of changes on lines that were run: of all, and of each folder."""
    of: Counter[str] = Counter()
    run: Counter[str] = Counter()
    for each in mutations:
        folder = "/".join(Path(each.file).parts[:-1][:2])
        for key in ("all", folder):
            of[key] += 1
            run[key] += each.line in lines.get(each.file, ())
    rows = sorted(of, key=lambda key: (key != "all", run[key] - of[key], key))
    return "\n".join(f"{key}: {run[key]} of {of[key]}, {run[key] / of[key]:.0%}" for key in rows)


def main() -> None:
    """Play the runs, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--scenario", help="one scenario instead of all in turn")
    asked = parser.parse_args()
    names = [asked.scenario] if asked.scenario else IN_TURN
    lines = lines_run(asked.first_seed, asked.runs, names)
    sys.stdout.write(report(all_mutations(), lines) + "\n")


if __name__ == "__main__":
    main()
