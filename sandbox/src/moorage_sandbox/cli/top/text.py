"""Writes how full a cluster is: tables for people, plain values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns
from moorage_sandbox.cli.top.fullness import Amounts, By, Fullness, Row

_NANO: Final = 10**9


def tables(fullness: Fullness, by: By) -> str:
    """Return totals, pods by phase, and a row for each node, pod or namespace."""
    summary = Columns(["RESOURCE", "USED", "USED%", "FREE", "LARGEST FREE", "STRANDED"])
    lines = summary.lines(
        [
            total.resource,
            amount(total.resource, total.used),
            percent(total.used, total.allocatable),
            amount(total.resource, total.free),
            amount(total.resource, total.largest_free),
            amount(total.resource, total.stranded),
        ]
        for total in fullness.totals
    )
    phases = ", ".join(f"{count} {phase}" for phase, count in fullness.phases.items())
    resources = [total.resource for total in fullness.totals]
    headings = [by[:-1], "pods"] if by != "pods" else ["pod"]
    for name in resources:
        headings += [name, "%"] if by == "nodes" else [name]
    rows = Columns(headings).lines([_cells(row, resources, by) for row in fullness.rows])
    return "\n".join([*lines, f"pods: {phases or 'none'}", "", *rows])


def plain(fullness: Fullness, autoscale: str = "") -> dict[str, Any]:
    """Return the same for JSON: cpu in cores, memory in bytes, other resources counted.

    Parameters
    ----------
    autoscale
        ``MIN:MAX`` where the number of nodes moves by itself.
    """
    return {
        "nodes": fullness.nodes,
        "autoscale": autoscale,
        "resources": [
            {
                key: value if isinstance(value, str) else value / _NANO
                for key, value in msgspec.to_builtins(total).items()
            }
            for total in fullness.totals
        ],
        "phases": fullness.phases,
        "rows": [
            {
                "name": row.name,
                "pods": row.pods,
                "used": _plain(row.used),
                "allocatable": _plain(row.allocatable),
            }
            for row in fullness.rows
        ],
    }


def _plain(amounts: Amounts) -> dict[str, float]:
    return {name: nano / _NANO for name, nano in sorted(amounts.items())}


def _cells(row: Row, resources: Sequence[str], by: By) -> list[str]:
    cells = [row.name] if by == "pods" else [row.name, str(row.pods)]
    for name in resources:
        used = row.used.get(name, 0)
        cells.append(amount(name, used))
        if by == "nodes":
            cells.append(percent(used, row.allocatable.get(name, 0)))
    return cells
