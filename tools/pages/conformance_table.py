"""Writes ``docs/reference/conformance.md``: ``python -m tools.pages.conformance_table``.

The table is what ``moorage conformance lab/tests/conformance/data`` counts. A run takes half a
minute, so freshness is not checked here: ``lab/tests/conformance`` compares its own run with each
row.
"""

from __future__ import annotations

import sys
from pathlib import Path

from moorage_lab.conformance.report import Report, Tally, is_upstream
from moorage_lab.conformance.runner import check_recordings

_DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = _DOCS / "reference" / "conformance.md"
DATA = _DOCS.parent / "lab" / "tests" / "conformance" / "data"

_HEADER = """# Conformance

<!-- Written by `make docs` from a run of the recordings. Do not edit. -->

Decisions recorded from kube-scheduler v1.36.2, and how many of the recorded scenarios moorage
reproduces in every supported field: filter results and reasons, raw, normalised and weighted
scores, winners, victims, messages. *Faulty* scenarios are equal but for places where the recording
holds a fault of kube-scheduler, listed below and among the [deviations](../deviations.md).
*Unsupported* scenarios need something that is not built yet;
none is skipped for another reason. Nominated pods count as in kube-scheduler here, which is one of
the [deviations](../deviations.md). Run it yourself:

<!-- not run: takes half a minute; the tests of every family do it -->
```console
$ .venv/bin/moorage conformance lab/tests/conformance/data
```

"""
_TABLE = """| Family | Scenarios | Equal | Faulty | Different | Unsupported |
|---|---:|---:|---:|---:|---:|
"""
_UPSTREAM = """
## From upstream's tests, not from a run

These cases are transcribed from the table tests of Kubernetes, with the names of their files and
cases, and are answered as 1.37. No kube-scheduler was run to make them.
`lab/tests/conformance/data/upstream/README.md` has the format and the notice of the license.

"""

_WAKE_UPS = """
## Wake-ups, looked for in random clusters

kube-scheduler's hints forget some wake-ups, which the recordings cannot show. So random clusters
are changed in one place: when a node fits a waiting pod after the change and did not before, a hint
of the plugin has to queue the pod. Of 100,000 pairs of a pod and a change, a node newly fitted for
one of eleven plugins in 9,715, and each was heard. Of 10,000 such pairs with devices, it did in
382, and each was heard; a change that a hint missed was found this way, and is among the
[deviations](../deviations.md). (2026-11-30; seeds from 5,000,000 on.) The tests play some of them
each time; with `WAKE_UP_RUNS=100000` `scheduler/tests/plugins/test_wake_ups.py` plays as many.
"""


def row(family: str, tally: Tally) -> str:
    """Return the line of one family."""
    counts = (tally.cases, tally.equal, tally.faulty, tally.different, tally.unsupported)
    return f"| {family} | {' | '.join(map(str, counts))} |\n"


def page(report: Report) -> str:
    """Return the whole page for a run."""
    families = sorted(report.families.items())
    recorded = [(name, tally) for name, tally in families if not is_upstream(name)]
    transcribed = [(name, tally) for name, tally in families if is_upstream(name)]
    total = _total(recorded)
    faults = "".join(f"- {fault}: {count}\n" for fault, count in sorted(total.faults.items()))
    needs = "".join(f"- {need}: {count}\n" for need, count in sorted(total.needs.items()))
    text = _HEADER + _rows(recorded)
    if faults:
        text += (
            f"\nRecorded faults of kube-scheduler, and how many scenarios hold them:\n\n{faults}"
        )
    if needs:
        text += f"\nWhat unsupported scenarios need, and how many of them:\n\n{needs}"
    return text + _UPSTREAM + _rows(transcribed) + _WAKE_UPS


def _total(families: list[tuple[str, Tally]]) -> Tally:
    total = Tally()
    for _, tally in families:
        total.cases += tally.cases
        total.equal += tally.equal
        total.faulty += tally.faulty
        total.different += tally.different
        total.unsupported += tally.unsupported
        total.needs.update(tally.needs)
        total.faults.update(tally.faults)
    return total


def _rows(families: list[tuple[str, Tally]]) -> str:
    rows = "".join(row(family, tally) for family, tally in families)
    return f"{_TABLE}{rows}{row('**all**', _total(families))}"


if __name__ == "__main__":
    PAGE.write_text(page(check_recordings([DATA], progress=sys.stderr)))
