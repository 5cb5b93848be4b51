"""Mistakes of schedulers, planted one at a time: each must be found by a hunt.

``python -m lab.tests.fault_sim.planted [NAME ...] --runs N`` plants each mistake into a copy of the
source, hunts there, and tells what was found, after how many seeds and seconds. The results are
kept in ``planted_results.json``, and told as a table in ``planted.md``. A mistake that was not
found says in ``planted.toml`` what would be needed.

With ``--alone`` no hunt begins: the situations are played one after another,
each alone (`lab.tests.fault_sim.alone`). A mistake may name the situation that is played. With
``--scenario`` the hunt plays one scenario only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from moorage_lab.fault_sim.scenarios import SCENARIOS, few_in_turn
from tests import packages

HERE = Path(__file__).parent
RESULTS = HERE / "planted_results.json"
TABLE = HERE / "planted.md"


class Planted(NamedTuple):
    """One mistake: a place in the source, what stands there, and what is put there instead.

    One that was not found says what it needs, or why nothing that can be observed is wrong.
    """

    name: str
    origin: str
    file: str
    old: str
    new: str
    needs: str = ""
    equal: str = ""
    situation: str = ""


class Result(NamedTuple):
    """The end of a search: the invariant that told, "" for none, and what it took.

    The situation is that of the script, where each was played alone; "" in a hunt.
    """

    invariant: str
    seeds: int
    seconds: float
    situation: str = ""


def _read() -> tuple[Planted, ...]:
    table = tomllib.loads((HERE / "planted.toml").read_text())
    return tuple(Planted(name, **fields) for name, fields in table.items())


PLANTED = _read()


def copied(into: Path) -> Path:
    """Copy the source, compiled modules included, and return the copy."""
    for source in packages.SOURCES:
        shutil.copytree(source, into / "src", dirs_exist_ok=True)
    return into / "src"


def source_of(file: str) -> Path:
    """Return a file of the source, named with its package."""
    return next(path for source in packages.SOURCES if (path := source / file).exists())


@contextmanager
def planted(each: Planted, copy: Path) -> Iterator[None]:
    """Put a mistake into a copy of the source, and take it back at the end."""
    path = copy / each.file
    right = path.read_text()
    if right.count(each.old) != 1:
        raise SystemExit(f"{each.name}: {each.file} has {right.count(each.old)} places, not one")
    path.write_text(right.replace(each.old, each.new))
    try:
        yield
    finally:
        path.write_text(right)


def hunt(each: Planted, copy: Path, runs: int, seconds: float, scenario: str = "all") -> Result:
    """Hunt in a copy of the source that has a mistake, until an invariant is broken."""
    words = ["fault-sim", "hunt", "--first", "--runs", str(runs), "--seconds", str(seconds)]
    words += ["--scenario", scenario]
    alone = "" if scenario == "all" else f"scenario {scenario}"
    with planted(each, copy):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "moorage", *words, "-o", "json"],
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
    if not done.stdout:
        # The simulation itself ended, which tells as well as an invariant.
        return Result(f"ends: {done.stderr.strip().splitlines()[-1][:60]}", 0, took, alone)
    report = json.loads(done.stdout)
    broken = report["broken"]
    invariant = broken[0]["invariant"] if broken else ""
    return Result(invariant, report["runs"], took, alone)


def play_alone(each: Planted, copy: Path) -> Result:
    """Play situations alone in a copy of the source that has a mistake, until one tells it."""
    names = [each.situation] if each.situation else []
    with planted(each, copy):
        done = subprocess.run(
            [sys.executable, "-m", "lab.tests.fault_sim.alone", *names],
            env={**os.environ, "PYTHONPATH": str(copy)},
            cwd=packages.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if not done.stdout:
        return Result(f"ends: {done.stderr.strip().splitlines()[-1][:60]}", 0, 0.0)
    invariant, situation, scripts, seconds = json.loads(done.stdout)
    return Result(invariant, scripts, seconds, situation)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def table(results: Mapping[str, Sequence[Any]]) -> str:
    """Return the table of all mistakes, in Markdown."""
    known = {name: Result(*found) for name, found in results.items()}
    rows = [_row(each, known.get(each.name)) for each in PLANTED]
    found = sum(bool(each.invariant) for each in known.values())
    equal = sum(bool(each.equal) for each in PLANTED)
    turn = 2 * len(few_in_turn(0, SCENARIOS["few"].waits))
    return "\n".join(
        [
            "# Mistakes that were planted, and how the simulation found them",
            "",
            "Written by `python -m lab.tests.fault_sim.planted`. "
            "Each mistake was planted alone into a",
            "copy of the source; a hunt over every scenario began at seed 1 and ended at the first",
            "broken invariant. The seconds include the start of Python.",
            "",
            "Where a situation is named, situations were played alone instead",
            "of a hunt. The counts are of scripts, and of the processor's seconds without the",
            "start of Python. A mistake may name the situation to be played.",
            f"A hunt comes to each situation in {turn} seeds, and plays a variation of an older",
            "script instead every second time.",
            "",
            f"{found} of {len(PLANTED)} were found. Of the others, {equal} change nothing that can",
            f"be observed: {found} of {len(PLANTED) - equal} that do.",
            "",
            "| Mistake | Source | Told by | Seeds | Seconds |",
            "|---|---|---|---:|---:|",
            *rows,
            "",
        ]
    )


def _row(each: Planted, found: Result | None) -> str:
    if found is None and each.equal:
        found = Result("", 0, 0.0)
    if found is None:
        return f"| {each.name} | {each.origin} | not looked for yet | | |"
    if found.invariant:
        told = found.invariant
    elif each.equal:
        told = f"nothing to find: {each.equal}"
    else:
        told = f"not found{each.needs and f'; {each.needs}'}"
    if found.situation.startswith("scenario"):
        told += f", in the {found.situation} alone"
    elif found.situation:
        told += f", by the situation {found.situation}"
    return f"| {each.name} | {each.origin} | {told} | {found.seeds} | {found.seconds:.0f} |"


def main() -> None:
    """Plant and hunt, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--scenario", default="all", help="the only scenario that is hunted")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="play situations alone, hunt nothing")
    parser.add_argument("--missing", action="store_true", help="only those without a result")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        _hunt_all(asked, Path(folder), pool)


def _hunt_all(asked: argparse.Namespace, folder: Path, pool: ThreadPoolExecutor) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(asked.jobs):
        copies.put(copied(folder / str(number)))

    def one(each: Planted) -> tuple[Planted, Result]:
        copy = copies.get()
        try:
            if asked.alone:
                return each, play_alone(each, copy)
            return each, hunt(each, copy, asked.runs, asked.seconds, asked.scenario)
        finally:
            copies.put(copy)

    chosen = [each for each in PLANTED if not asked.names or each.name in asked.names]
    if asked.missing:
        chosen = [each for each in chosen if not results.get(each.name, [""])[0]]
    for done in as_completed([pool.submit(one, each) for each in chosen]):
        each, result = done.result()
        told = result.invariant or "NOT FOUND"
        _say(f"{each.name:<30} {told:<20} {result.seeds:>5} {result.seconds:>7.1f} s")
        results[each.name] = [result.invariant, result.seeds, round(result.seconds, 1)]
        if result.situation:
            results[each.name].append(result.situation)
        kept = {one.name: results[one.name] for one in PLANTED if one.name in results}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        TABLE.write_text(table(kept))


if __name__ == "__main__":
    main()
