"""Writes how full a cluster is: tables for people, plain values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns
from moorage.cli.rows.text import Shown, alike_lines, request_lines
from moorage.service.questions.folding.folds import Fold
from moorage_sandbox.cli.top.fullness import Amounts, Fullness, Kind, Row

_NANO: Final = 10**9


def tables(fullness: Fullness, kind: Kind, shown: Shown | None) -> str:
    """Return totals, pods by phase, and rows of nodes, pods or namespaces.

    Parameters
    ----------
    kind
        What the rows are.
    shown
        What becomes one row, and how much is shown; None for every row by itself, in full.
    """
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
    if shown is None:
        rows = _all_rows(fullness, kind, resources)
    elif kind == "nodes":
        headings = ["nodes", *_headings(kind, resources)]
        cells = [_cells(row, resources, kind) for row in fullness.rows]
        rows = alike_lines(headings, cells, shown)
    else:
        rows = request_lines([_fold(row, kind) for row in fullness.rows], resources, shown)
    return "\n".join([*lines, f"pods: {phases or 'none'}", "", *rows])


def _all_rows(fullness: Fullness, kind: Kind, resources: Sequence[str]) -> list[str]:
    cells = [_cells(row, resources, kind) for row in fullness.rows]
    return Columns(_headings(kind, resources)).lines(cells)


def _headings(kind: Kind, resources: Sequence[str]) -> list[str]:
    headings = [kind[:-1], "pods"] if kind != "pods" else ["pod"]
    for name in resources:
        headings += [name, "%"] if kind == "nodes" else [name]
    return headings


def _fold(row: Row, kind: Kind) -> Fold:
    namespace, _, name = row.name.partition("/")
    names = (name,) if kind == "pods" else ()
    return Fold(pods=row.pods, namespace=namespace, owner=row.owner, names=names, requests=row.used)


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


def _cells(row: Row, resources: Sequence[str], kind: Kind) -> list[str]:
    cells = [row.name] if kind == "pods" else [row.name, str(row.pods)]
    for name in resources:
        used = row.used.get(name, 0)
        cells.append(amount(name, used))
        if kind == "nodes":
            cells.append(percent(used, row.allocatable.get(name, 0)))
    return cells
