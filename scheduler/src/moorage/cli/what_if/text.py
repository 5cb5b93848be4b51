"""The course of a change as text for people, and as plain values for programs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns
from moorage.cli.rows.text import Shown, alike_lines, folded_rows, wrapped
from moorage.cli.what_if.sections import Section, sections_of
from moorage.service.questions.folding.folds import Fold
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.fullness import Use, UseChange

_NANO: Final = 10**9
_INDENT: Final = "  "
_ANYWHERE: Final = "Get volumes that a driver makes, taken to be usable on every node"
_JOB_PODS: Final = (
    "Are taken not to end, though pods that wait may start when these pods of Jobs do"
)
_ORDER: Final = (
    "Which pods get a node depends on the order in which their owners make them again; another "
    "order comes out differently."
)


def plain(course: ChangeComparison, source: str, *, worse: Sequence[str]) -> dict[str, Any]:
    """Return a course as plain values, what gets worse, and where the answer comes from."""
    found: dict[str, Any] = msgspec.to_builtins(course)
    return {**found, "worse": list(worse), "source": source}


def report(
    course: ChangeComparison, source: str, *, worse: Sequence[str], shown: Shown | None
) -> str:
    """Return a course as text; the last line says where it comes from, unless that is empty.

    Parameters
    ----------
    worse
        A sentence for each deterioration.
    shown
        How pods become rows; None for every pod with all that is known of it.
    """
    parts: list[str] = []
    for section in sections_of(course):
        parts += _section(section, shown)
    if not parts:
        parts = ["No pod starts, moves or waits because of the change.", ""]
    for need in course.drain_flags:
        parts += _names(f"kubectl drain needs {need.flag} for", need.pods, shown)
    if course.order_matters:
        parts += [*wrapped(_ORDER, shown), ""]
    parts += _names(_ANYWHERE, course.volumes_anywhere, shown)
    parts += _names(_JOB_PODS, course.job_pods, shown)
    if not course.is_quiet:
        parts += ["It does not come to rest: pods are tried again and again.", ""]
    parts += _fullness(course, shown)
    parts += wrapped(f"Worse: {'; '.join(worse)}" if worse else "Nothing gets worse.", shown)
    return "\n".join([*parts, "", *wrapped(source, shown)] if source else parts)


def _section(section: Section, shown: Shown | None) -> list[str]:
    if not section.rows:
        return []
    if shown is None:
        headings = ("pod", section.place, "owner", "group", "reason", "message")
        lines = Columns(headings).lines(_wide_cells(each) for each in section.rows)
        lines = [f"{_INDENT}{line}" for line in lines]
    else:
        lines = folded_rows(section.rows, shown, indent=_INDENT, place=section.place)
    return [f"{section.title} ({len(section.rows)}):", *lines, ""]


def _wide_cells(row: Fold) -> list[str]:
    cells = (*row.queues, "")[:1]
    more = (*cells, row.owner, row.group, row.reason, row.message)
    return [f"{row.namespace}/{row.names[0]}", *(cell or "<none>" for cell in more)]


def _names(title: str, names: Sequence[str], shown: Shown | None) -> list[str]:
    if not names:
        return []
    limit = len(names) if shown is None else shown.limit
    lines = [f"{_INDENT}{name}" for name in names[:limit]]
    if names[limit:]:
        lines.append(f"{_INDENT}{len(names) - limit} more are not shown; --limit shows more")
    return [f"{title} ({len(names)}):", *lines, ""]


# --- how full it is -------------------------------------------------------------------------------


def _fullness(course: ChangeComparison, shown: Shown | None) -> list[str]:
    """Return tables of the nodes and zones whose use changes, before and after."""
    tables: list[str] = []
    for heading, changes in (("node", course.nodes), ("zone", course.zones)):
        if not changes:
            continue
        resources = {name: None for each in changes for name in _resources(each)}
        rows = [_cells(each, resources) for each in changes]
        if shown is None:
            tables += Columns([heading, "pods", *resources]).lines(rows)
        else:
            headings = [f"{heading}s", heading, "pods", *resources]
            tables += alike_lines(headings, rows, shown)
        tables.append("")
    return tables


def _resources(change: UseChange) -> Iterable[str]:
    use = change.after or change.before
    assert use is not None, "one of them is there"
    return use.allocatable


def _cells(change: UseChange, resources: Iterable[str]) -> list[str]:
    pair = (change.before, change.after)
    pods = " -> ".join("-" if use is None else str(use.pods) for use in pair)
    return [
        change.name,
        pods,
        *(" -> ".join(_share(use, name) for use in pair) for name in resources),
    ]


def _share(use: Use | None, resource: str) -> str:
    if use is None:
        return "-"
    used, offered = (
        round(amounts.get(resource, 0) * _NANO) for amounts in (use.used, use.allocatable)
    )
    return f"{amount(resource, used)} ({percent(used, offered)})"
