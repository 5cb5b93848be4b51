"""The table of a run: how many groups were placed, and the time of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.base.digests import digest
from moorage.cli.render import Columns
from moorage_lab.bench.group_search.run import GroupEnd

LIMIT_MS: Final = 200.0
"""Milliseconds within which a group is to be placed."""

_HEADINGS: Final = (
    *("groups", "number", "one order", "search", "proved", "gave up"),
    *("within 200 ms", "p50", "p99", "max", "longest step"),
)


def as_lines(ends: Sequence[GroupEnd]) -> list[str]:
    """Return the table, a line for each group that has no places in time, and the digest."""
    families = list(dict.fromkeys(each.family for each in ends))
    table = Columns(_HEADINGS)
    rows = [_row(name, [each for each in ends if each.family == name]) for name in families]
    late = [each for each in ends if not _in_time(each)]
    return [
        *table.lines([*rows, _row("all", ends)]),
        *map(_late_line, late),
        f"digest {digest_of(ends)[:12]}",
    ]


def as_json(ends: Sequence[GroupEnd]) -> dict[str, Any]:
    """Return everything as plain values."""
    return {"groups": msgspec.to_builtins(ends), "digest": digest_of(ends)}


def digest_of(ends: Sequence[GroupEnd]) -> str:
    """Return the digest of all places."""
    return digest((f"{each.family} {each.seed}", each.places) for each in ends)


def _row(name: str, ends: Sequence[GroupEnd]) -> list[str]:
    times_ms = sorted(each.took_ms for each in ends)
    by_order = sum(each.placed and not each.searched for each in ends)
    by_search = sum(each.placed and bool(each.searched) for each in ends)
    in_time = sum(map(_in_time, ends))
    return [
        name,
        str(len(ends)),
        str(by_order),
        str(by_search),
        str(sum(each.searched == "impossible" for each in ends)),
        str(sum(not each.placed and each.searched != "impossible" for each in ends)),
        f"{in_time} ({100 * in_time / len(ends):.1f} %)",
        *(f"{times_ms[int(share * (len(ends) - 1))]:.0f} ms" for share in (0.5, 0.99, 1)),
        f"{max(each.longest_step_ms for each in ends):.0f} ms",
    ]


def _in_time(end: GroupEnd) -> bool:
    return end.placed and end.took_ms <= LIMIT_MS


def _late_line(end: GroupEnd) -> str:
    how = "placed" if end.placed else end.searched or "not searched"
    return (
        f"  {end.family}, seed {end.seed}: {end.members} members, {end.nodes} nodes: {how} after "
        f"{end.took_ms:.0f} ms, {end.sets} sets, {end.rejections} rejections"
    )
