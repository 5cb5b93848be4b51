"""Compares a benchmark of two revisions: ``make bench-compare REF=...``.

The sources of a revision are taken out of the repository; the other side is the working tree. The
benchmark runs with each in turn, so that both meet the same load. A ratio is that of the two runs
of one round, the working tree's over the revision's. Its spread over the rounds tells what it is
worth. Both sides use the packages that are installed now.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from moorage_lab.bench.processes import COMMAND
from tests import packages

_DIGEST: Final = "digest"
_DIFFERENT: Final = "DIGESTS DIFFER"
_PINS: Final = "requirements.lock"

Round = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The results of the revision and of the working tree, as plain JSON values."""


class ComparisonError(Exception):
    """A revision cannot be read, or a benchmark failed."""


class Ratio(msgspec.Struct, frozen=True):
    """A figure of both sides: medians, and the ratios of the rounds."""

    name: str
    before: float
    after: float
    ratios: tuple[float, ...]

    @property
    def line(self) -> str:
        """The figure for people."""
        spread = f"{min(self.ratios):.3f} to {max(self.ratios):.3f}"
        sides = f"{self.before:14.4g}{self.after:14.4g}"
        return f"{self.name:40}{sides}{median(self.ratios):9.3f}  {spread}"


def figures(result: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers of a result by name; those of lists, and of parameters, are left out."""
    found: dict[str, float] = {}
    for name, value in result.items():
        if name in {"params", "plan"}:
            continue
        if isinstance(value, Mapping):
            found |= figures(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[prefix + name] = value
    return found


def ratios(rounds: Sequence[Round]) -> list[Ratio]:
    """Return the figures that both sides have in every round; zeros are left out."""
    tables = [(figures(before), figures(after)) for before, after in rounds]
    names = [name for name in tables[0][0] if all(a.get(name) and b.get(name) for a, b in tables)]
    return [
        Ratio(
            name,
            median(before[name] for before, _ in tables),
            median(after[name] for _, after in tables),
            tuple(after[name] / before[name] for before, after in tables),
        )
        for name in names
    ]


def digests(rounds: Sequence[Round]) -> str:
    """Return how the digests of both sides compare, "" for a benchmark without a digest."""
    sides = [
        {str(each[_DIGEST]) for each in side if _DIGEST in each}
        for side in zip(*rounds, strict=True)
    ]
    if not all(sides):
        return ""
    if max(map(len, sides)) > 1:
        return "digests differ from run to run of one side: there, timing decides"
    return f"digests equal: {sides[0].pop()}" if sides[0] == sides[1] else _DIFFERENT


def lines(rounds: Sequence[Round], ref: str) -> list[str]:
    """Return the comparison for people."""
    heading = (
        f"{'':40}{ref[:12]:>14}{'working tree':>14}{'ratio':>9}  spread of {len(rounds)} rounds"
    )
    told = digests(rounds)
    return [heading, *(each.line for each in ratios(rounds)), *([told] if told else [])]


def take_out(ref: str, folder: Path) -> Path:
    """Write the sources of a revision into a folder; return what Python imports from.

    Raises
    ------
    ComparisonError
        There is no such revision.
    """
    packed = subprocess.run(
        ["git", "archive", ref, *packages.FOLDERS, _PINS], capture_output=True, check=False
    )
    if packed.returncode:
        raise ComparisonError(packed.stderr.decode(errors="replace").strip())
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(source: Path, arguments: Sequence[str]) -> Mapping[str, Any]:
    """Run a benchmark with these sources.

    Raises
    ------
    ComparisonError
        The benchmark failed, or these sources do not have it.
    """
    command = [sys.executable, "-c", COMMAND, "bench", *arguments, "-o", "json"]
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(source / each) for each in packages.FOLDERS)
    }
    done = subprocess.run(command, env=surroundings, capture_output=True, check=False)
    if done.returncode:
        tail = done.stderr.decode(errors="replace").strip()[-2000:]
        raise ComparisonError(f"bench {' '.join(arguments)} with {source} failed:\n{tail}")
    found: dict[str, Any] = msgspec.json.decode(done.stdout)
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Compare as the command line says; 1 if a run failed or digests differ."""
    parser = argparse.ArgumentParser(description="Run a benchmark with two revisions in turn.")
    parser.add_argument("ref", help="the revision that the working tree is compared with")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side [3]")
    parser.add_argument(
        "benchmark", nargs=argparse.REMAINDER, help="arguments of `moorage bench` [basic]"
    )
    asked = parser.parse_args(given)
    arguments = asked.benchmark or ["basic"]
    with tempfile.TemporaryDirectory(prefix="moorage-compare-") as place:
        folder, here = Path(place), Path.cwd()
        try:
            there = take_out(asked.ref, folder)
            if (folder / _PINS).read_bytes() != Path(_PINS).read_bytes():
                _tell("the packages of the two sides differ; both run with those installed now")
            rounds: list[Round] = []
            for number in range(asked.rounds):
                sys.stderr.write(f"round {number + 1} of {asked.rounds}\n")
                rounds.append((run(there, arguments), run(here, arguments)))
        except ComparisonError as problem:
            sys.stderr.write(f"{problem}\n")
            return 1
    _tell("\n".join(lines(rounds, asked.ref)))
    return int(digests(rounds) == _DIFFERENT)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
