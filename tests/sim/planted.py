"""Mistakes of schedulers, planted one at a time: each must be found by a hunt.

``python -m tests.sim.planted [NAME ...] --runs N`` plants each mistake into a copy of the source,
hunts there, and prints a table: what was found, after how many runs and seconds.
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
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[2] / "src"


class Planted(NamedTuple):
    """One mistake: a place in the source, what stands there, and what is put there instead."""

    name: str
    origin: str
    scenario: str
    file: str
    old: str
    new: str


def _read() -> tuple[Planted, ...]:
    table = tomllib.loads((Path(__file__).parent / "planted.toml").read_text())
    return tuple(Planted(name, **fields) for name, fields in table.items())


PLANTED = _read()


def plant(each: Planted, into: Path) -> None:
    """Copy the source and put a mistake into the copy."""
    shutil.copytree(SOURCE, into, ignore=shutil.ignore_patterns("__pycache__"))
    path = into / "moorage" / each.file
    text = path.read_text()
    if text.count(each.old) != 1:
        raise SystemExit(f"{each.name}: {each.file} has {text.count(each.old)} places, not one")
    path.write_text(text.replace(each.old, each.new))


def hunt(each: Planted, runs: int, seconds: float) -> tuple[str, int, float]:
    """Return the first broken invariant, and after how many runs and seconds it was found."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "src"
        plant(each, into)
        began = time.monotonic()
        words = ["sim", "hunt", "--first", "--runs", str(runs), "--seconds", str(seconds)]
        command = [sys.executable, "-m", "moorage", *words, "--scenario", each.scenario]
        done = subprocess.run(
            [*command, "-o", "json"],
            env={**os.environ, "PYTHONPATH": str(into)},
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
    if not done.stdout:
        return f"ends: {done.stderr.strip().splitlines()[-1][:100]}", 0, took
    report = json.loads(done.stdout)
    broken = report["broken"]
    return (broken[0]["invariant"] if broken else "", report["runs"], took)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Plant and hunt, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    asked = parser.parse_args()
    found = 0
    chosen = [each for each in PLANTED if not asked.names or each.name in asked.names]
    for each in chosen:
        invariant, runs, seconds = hunt(each, asked.runs, asked.seconds)
        found += bool(invariant)
        _say(
            f"{each.name:<30} {invariant or 'NOT FOUND':<20} {runs:>5} {seconds:>7.1f} s",
        )
    _say(f"{found} of {len(chosen)} found")


if __name__ == "__main__":
    main()
