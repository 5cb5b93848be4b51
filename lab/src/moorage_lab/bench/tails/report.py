"""The measured decisions: a table for people, and values by case and size for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.base.digests import digest
from moorage.cli.render import Columns
from moorage_lab.bench.tails.cases import CASES
from moorage_lab.bench.tails.run import Tail
from moorage_lab.bench.timing import NS_PER_MS, NS_PER_US

_US_PER_MS = NS_PER_MS / NS_PER_US
_HEADER = ["CASE", "SIZE", "DECISIONS", "PER SECOND", "P50", "P99", "MAX", "PLACEMENTS"]


def as_json(tails: Sequence[Tail]) -> dict[str, Any]:
    """Return plain values by case and size, and one digest of all placements."""
    cases: dict[str, dict[str, Any]] = {}
    for each in tails:
        cases.setdefault(each.case, {})[str(each.size)] = msgspec.to_builtins(each)
    names = ((f"{each.case} {each.size}", each.digest) for each in tails)
    return {"digest": digest(names), "cases": cases}


def as_lines(tails: Sequence[Tail]) -> list[str]:
    """Return a line for each size of each case; times in milliseconds."""
    rows = [
        [
            each.case,
            f"{each.size:,} {CASES[each.case].counts}",
            f"{each.decisions:,}",
            f"{each.per_second:,.0f}",
            *(_ms(us) for us in (each.decision.p50_us, each.decision.p99_us, each.decision.max_us)),
            each.digest[:12],
        ]
        for each in tails
    ]
    return Columns(_HEADER).lines(rows)


def _ms(us: float) -> str:
    return f"{us / _US_PER_MS:.2f} ms"
