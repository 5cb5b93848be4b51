"""The course of a change as text for people, and as plain values for programs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns
from moorage.what_if.consequences import ChangeComparison, Waiting
from moorage.what_if.fullness import Use, UseChange

_LINES_MOST: Final = 20
_ROWS_MOST: Final = 100
_NANO: Final = 10**9
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


def report(course: ChangeComparison, source: str, *, worse: Sequence[str]) -> str:
    """Return a course as text; the last line says where it comes from, unless that is empty."""
    parts: list[str] = []
    if course.anyway:
        lines = [f"{each.pod} -> {each.node}" for each in course.anyway]
        parts += _section("Start without the change, too", lines)
    lines = [f"{each.pod} -> {each.node}" for each in course.starts]
    parts += _section("Start", lines)
    lines = [
        f"{each.pod}: {each.from_node} -> {each.to_node}, as {_short(each.successor)}"
        for each in course.moves
        if not each.evicted_by
    ]
    parts += _section("Move", lines)
    lines = [
        f"{each.pod} on {each.from_node}, for {each.evicted_by}; "
        f"comes back on {each.to_node} as {_short(each.successor)}"
        for each in course.moves
        if each.evicted_by
    ]
    lines += [
        f"{each.was}, for {each.evicted_by}; no node takes the pod that its owner makes"
        for each in course.newly_pending
        if each.evicted_by
    ]
    parts += _section("Are evicted", lines)
    lines = [
        f"{each.pod} on {each.node}" + (f", evicted for {each.evicted_by}" * bool(each.evicted_by))
        for each in course.lost
        if not (each.owner or each.job_failure)
    ]
    parts += _section("Are lost, for they have no owner", lines)
    lines = [f"{each.pod} on {each.node}" for each in course.lost if each.job_failure]
    parts += _section("Are lost, for their Job fails", lines)
    lines = [f"{each.pod} on {each.node}: {each.owner}" for each in course.lost if each.owner]
    parts += _section("May be lost, for nobody knows whether their owner makes others", lines)
    parts += _section("End", list(course.ended))
    lines = [f"{each.pod} on {each.node}, because {each.reason}" for each in course.not_evicted]
    parts += _section("Are not evicted, kubectl drain would wait", lines)
    parts += _waiting("Have no node any more, or none at first", course.newly_pending)
    parts += _waiting("Wait as before", course.still_pending)
    if not parts:
        parts = ["No pod starts, moves or waits because of the change.", ""]
    for need in course.drain_flags:
        parts += _section(f"kubectl drain needs {need.flag} for", list(need.pods))
    if course.order_matters:
        parts += [_ORDER, ""]
    parts += _section(_ANYWHERE, list(course.volumes_anywhere))
    parts += _section(_JOB_PODS, list(course.job_pods))
    if not course.is_quiet:
        parts += ["It does not come to rest: pods are tried again and again.", ""]
    parts += _fullness(course)
    parts.append(f"Worse: {'; '.join(worse)}" if worse else "Nothing gets worse.")
    return "\n".join([*parts, "", source] if source else parts)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    shown = [f"  {line}" for line in lines[:_LINES_MOST]]
    if len(lines) > _LINES_MOST:
        shown.append(f"  and {len(lines) - _LINES_MOST} more; -o json has all")
    return [f"{title} ({len(lines)}):", *shown, ""]


def _waiting(title: str, pods: Sequence[Waiting]) -> list[str]:
    """Return pods that wait, those with one reason together."""
    by_reason: dict[str, list[Waiting]] = {}
    for each in pods:
        by_reason.setdefault(each.reason, []).append(each)
    lines = []
    for reason, alike in by_reason.items():
        named = [f"{each.pod} ({_origin(each)})" for each in alike[:_LINES_MOST]]
        if len(alike) > _LINES_MOST:
            named.append(f"and {len(alike) - _LINES_MOST} more")
        lines += [*named, f"  because {reason}"]
    if not lines:
        return []
    return [f"{title} ({len(pods)}):", *(f"  {line}" for line in lines), ""]


def _origin(each: Waiting) -> str:
    return each.was if each.was in ("new", "pending") else f"was {each.was}"


def _short(pod: str) -> str:
    return pod.partition("/")[2]


# --- how full it is -------------------------------------------------------------------------------


def _fullness(course: ChangeComparison) -> list[str]:
    """Return tables of the nodes and zones whose use changes, before and after."""
    tables: list[str] = []
    for heading, changes in (("node", course.nodes), ("zone", course.zones)):
        if not changes:
            continue
        named = {name: None for each in changes for name in _resources(each)}
        columns = Columns([heading, "pods", *named])
        rows = [_cells(each, named) for each in changes[:_ROWS_MOST]]
        tables += columns.lines(rows)
        if len(changes) > _ROWS_MOST:
            tables.append(f"and {len(changes) - _ROWS_MOST} more; -o json has all")
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
