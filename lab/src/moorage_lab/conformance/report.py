"""The report of a conformance run: tallies by family, as a table for people and as JSON.

Last stop of the conformance runner.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from moorage_lab.conformance.compare import Difference

_SHOWN_CHARACTERS = 160
"""Characters of a value that a difference prints; a guess at two lines of a terminal."""


class Tally(msgspec.Struct):
    """Counts of one family; filled case by case.

    Parameters
    ----------
    cases, equal, faulty, different, unsupported
        Numbers of cases; the last four sum to the first. A faulty case is equal but for places
        where the recording holds a known fault of kube-scheduler.
    by_field
        How many pods differ, by field.
    needs
        Number of unsupported cases, by need.
    faults
        Number of faulty cases, by fault.
    """

    cases: int = 0
    equal: int = 0
    faulty: int = 0
    different: int = 0
    unsupported: int = 0
    by_field: Counter[str] = msgspec.field(default_factory=Counter)
    needs: Counter[str] = msgspec.field(default_factory=Counter)
    faults: Counter[str] = msgspec.field(default_factory=Counter)


class Report:
    """Everything a run found.

    Attributes
    ----------
    families
        Tally by family, in the order of first appearance.
    first_differences
        The first differences, at most `keep` for each family.
    """

    def __init__(self, *, keep: int = 5) -> None:
        self.families: dict[str, Tally] = {}
        self.first_differences: list[Difference] = []
        self._keep = keep

    def add_unsupported(self, family: str, needs: Iterable[str]) -> None:
        """Count a case that could not be run."""
        tally = self._tally(family)
        tally.unsupported += 1
        tally.needs.update(needs)

    def add_compared(
        self, family: str, differences: Sequence[Difference], faults: Sequence[str] = ()
    ) -> None:
        """Count a case that was run, with its differences and the faults it holds."""
        tally = self._tally(family)
        tally.faults.update(faults)
        if not differences:
            tally.equal += not faults
            tally.faulty += bool(faults)
            return
        shown = self._keep - sum(tally.by_field.values())
        tally.different += 1
        tally.by_field.update(difference.field for difference in differences)
        self.first_differences += differences[: max(0, shown)]

    def _tally(self, family: str) -> Tally:
        tally = self.families.setdefault(family, Tally())
        tally.cases += 1
        return tally

    @property
    def different(self) -> int:
        """Number of cases that differ."""
        return sum(tally.different for tally in self.families.values())

    def as_json(self) -> dict[str, Any]:
        """Return the counts by family as plain values."""
        return {
            "families": {
                name: {
                    "cases": tally.cases,
                    "equal": tally.equal,
                    "faulty": tally.faulty,
                    "different": tally.different,
                    "unsupported": tally.unsupported,
                }
                for name, tally in self.families.items()
            }
        }

    def as_text(self) -> str:
        """Return the table, faults, unsupported needs and first differences, for people."""
        parts = ["\n".join(_table(self.families))]
        if any(map(is_upstream, self.families)):
            parts.append("Families upstream-*: from upstream's tests, not from a run")
        faults = (tally.faults for tally in self.families.values())
        needs = (tally.needs for tally in self.families.values())
        parts += _section("Recorded faults of kube-scheduler, number of cases", _summed(faults))
        parts += _section("Not supported, number of cases by need", _summed(needs))
        if self.first_differences:
            lines = [_shown(difference) for difference in self.first_differences]
            differ = "1 case differs" if self.different == 1 else f"{self.different} cases differ"
            parts += _section(f"First differences ({differ})", lines)
        return "\n\n".join(parts) + "\n"


def is_upstream(family: str) -> bool:
    """Whether the cases of a family are transcribed from upstream's tests, not recorded."""
    return family.startswith("upstream-")


def _summed(counters: Iterable[Counter[str]]) -> list[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return [f"{count:6} {subject}" for subject, count in sorted(total.items())]


def _table(families: dict[str, Tally]) -> list[str]:
    header = ["family", "cases", "equal", "faulty", "different", "unsupported", "by field"]
    rows = [[name, *map(str, _counts(tally)), _by_field(tally)] for name, tally in families.items()]
    sums = [sum(column) for column in zip(*map(_counts, families.values()), strict=True)]
    rows.append(["all", *map(str, sums), ""])
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return [_line(row, widths) for row in (header, ["-" * width for width in widths], *rows)]


def _line(cells: list[str], widths: list[int]) -> str:
    first, *numbers = cells[:-1]
    text = [first.ljust(widths[0])]
    text += [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
    return "  ".join([*text, cells[-1]]).rstrip()


def _counts(tally: Tally) -> tuple[int, int, int, int, int]:
    return tally.cases, tally.equal, tally.faulty, tally.different, tally.unsupported


def _by_field(tally: Tally) -> str:
    return ", ".join(f"{field} {count}" for field, count in sorted(tally.by_field.items())) or "-"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["\n".join([f"{title}:", *(f"  {line}" for line in lines)])]


def _shown(difference: Difference) -> str:
    where = " ".join(filter(None, (difference.case, difference.pod)))
    field = ".".join(filter(None, (difference.field, difference.place))).replace(".[", "[")
    expected, got = _value(difference.expected), _value(difference.got)
    return f"{where}: {field}\n      expected {expected}\n      got      {got}"


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"
