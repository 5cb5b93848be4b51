"""Measures what ``docs/performance.md`` tells: ``make performance``, on an idle machine.

The results are kept in ``docs/performance.json``, and `tools.pages.performance_page` makes the page
of them. Each command is run several times, one after another; the growth once, with its picture,
and the slow decisions once. With the argument ``tails``, only the slow decisions are measured anew,
at any load: the page tells the load, as ratios and digests hold at any.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.base.clock import SystemClock, rfc3339
from moorage_lab.bench.processes import COMMAND

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
RECORD: Final = _DOCS / "performance.json"
PICTURE: Final = _DOCS / "images" / "growth.svg"
_ROUNDS: Final = 3
_LOAD_MOST: Final = 0.5
"""Greatest load of the last minute at which measuring begins."""

COMMANDS: Final[Mapping[str, str]] = {
    "plain pods": "basic",
    "plain pods, with records": "basic --records",
    "plain pods, 15,000 nodes": "basic --nodes 15000",
    "plain pods, 100,000 nodes": "basic --nodes 100000",
    "pod affinity": "workload pod-affinity",
    "pod anti-affinity": "workload pod-anti-affinity",
    "preferred pod affinity": "workload preferred-pod-affinity",
    "node affinity": "workload node-affinity",
    "hard spread": "workload hard-spread",
    "soft spread": "workload soft-spread",
    "mixed": "workload mixed",
    "volumes": "workload volumes",
    "preemption": "workload preemption",
    "through the API server": "basic --mode server",
    "path": "path",
    "path, steady": "path --rate 1000 --no-parts",
    "path, steady, 100,000 pods": "path --rate 1000 --no-parts --init-pods 100000",
}
"""What is measured, and the arguments of ``moorage bench``."""


class Record(msgspec.Struct, frozen=True):
    """The measurements of one day on one machine.

    Parameters
    ----------
    day, machine, python, commit
        The day, the processor and its number of cores, the version of Python, the revision.
    results
        The JSON of each run, by what was measured.
    growth
        The JSON of ``moorage bench growth``.
    tails
        The JSON of ``moorage bench tails``; empty until it was measured.
    tails_from
        Day and revision of the tails.
    tails_load
        Load of the last minute when the tails began, processes.
    """

    day: str
    machine: str
    python: str
    commit: str
    results: dict[str, list[dict[str, Any]]]
    growth: list[dict[str, Any]]
    tails: dict[str, Any] = {}
    tails_from: tuple[str, str] = ("", "")
    tails_load: float = 0.0


def main() -> int:
    """Measure everything and write the record and the picture; or the tails alone."""
    if sys.argv[1:] == ["tails"]:
        return _write(_with_tails(msgspec.json.decode(RECORD.read_bytes(), type=Record)))
    load = os.getloadavg()[0]
    if load > _LOAD_MOST:
        print(f"the load is {load:.2f}: measure on an idle machine", file=sys.stderr)
        return 1
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in COMMANDS}
    for number in range(1, _ROUNDS + 1):
        for name, arguments in COMMANDS.items():
            print(f"round {number} of {_ROUNDS}: {name}", file=sys.stderr)
            results[name].append(_bench(*arguments.split()))
    print("growth", file=sys.stderr)
    growth = _bench("growth", "--plot", str(PICTURE))
    record = Record(
        day=_day(),
        machine=f"{_processor()}, {os.cpu_count()} cores",
        python=platform.python_version(),
        commit=_commit(),
        results=results,
        growth=growth,
    )
    return _write(_with_tails(record))


def _with_tails(record: Record) -> Record:
    """Return a record with the slow decisions measured anew."""
    print("slow decisions", file=sys.stderr)
    load = round(os.getloadavg()[0], 1)
    tails = _bench("tails")
    return msgspec.structs.replace(
        record, tails=tails, tails_from=(_day(), _commit()), tails_load=load
    )


def _day() -> str:
    return rfc3339(SystemClock().now_ns())[:10]


def _write(record: Record) -> int:
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    RECORD.write_bytes(text + b"\n")
    return 0


def _bench(*arguments: str) -> Any:
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, "bench", *arguments, "-o", "json"],
            check=True,
            stdout=subprocess.PIPE,
            cwd=place,
        )
    return msgspec.json.decode(done.stdout)


def _processor() -> str:
    """Return the name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
        cwd=_DOCS,
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
