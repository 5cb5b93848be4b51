"""The course of a change as text for people, and as plain values for programs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from moorage.cli.render import Columns
from moorage.cli.top.fullness import Fullness, Row, fullness
from moorage.cli.top.text import amount, percent
from moorage.cli.top.text import plain as plain_fullness
from moorage.what_if.course import Cluster, Course, Waiting

_ZONE: Final = "topology.kubernetes.io/zone"
_LINES_MOST: Final = 20


def plain(course: Course) -> dict[str, Any]:
    """Return a course as plain values, with how full nodes and zones are before and after."""
    found: dict[str, Any] = msgspec.to_builtins(course)
    del found["before"], found["after"]
    found["worse"] = list(course.worse)
    for name, cluster in (("before", course.before), ("after", course.after)):
        nodes = _by_node(cluster)
        zones = _by_zone(nodes, cluster)
        found[name] = {"nodes": plain_fullness(nodes), "zones": plain_fullness(zones)["rows"]}
    return found


def report(course: Course) -> str:
    """Return a course as text."""
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
    ]
    parts += _section("Are lost, for they have no owner", lines)
    parts += _section("End", list(course.ended))
    parts += _waiting("Have no node any more, or none at first", course.newly_pending)
    parts += _waiting("Wait as before", course.still_pending)
    if not parts:
        parts = ["No pod starts, moves or waits because of the change.", ""]
    if not course.is_quiet:
        parts += ["It does not come to rest: pods are tried again and again.", ""]
    parts += _fullness(course)
    parts.append(f"Worse: {'; '.join(course.worse)}" if course.worse else "Nothing gets worse.")
    return "\n".join(parts)


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


def _fullness(course: Course) -> list[str]:
    """Return the nodes and zones whose use changes, before and after."""
    tables: list[str] = []
    nodes = (_by_node(course.before), _by_node(course.after))
    zones = (_by_zone(nodes[0], course.before), _by_zone(nodes[1], course.after))
    for heading, (before, after) in (("node", nodes), ("zone", zones)):
        rows = list(_changed(before, after))
        if rows:
            resources = [total.resource for total in after.totals]
            columns = Columns([heading, "pods", *resources])
            tables += [*columns.lines(_cells(each, resources) for each in rows), ""]
    return tables


def _changed(before: Fullness, after: Fullness) -> Iterator[tuple[Row | None, Row | None]]:
    old = {row.name: row for row in before.rows}
    new = {row.name: row for row in after.rows}
    for name in sorted({**old, **new}):
        if old.get(name) != new.get(name):
            yield old.get(name), new.get(name)


def _cells(pair: tuple[Row | None, Row | None], resources: Iterable[str]) -> list[str]:
    old, new = pair
    named = new or old
    assert named is not None, "one of them is there"
    pods = " -> ".join("-" if row is None else str(row.pods) for row in pair)
    cells = [named.name, pods]
    cells += [" -> ".join(_share(row, name) for row in (old, new)) for name in resources]
    return cells


def _share(row: Row | None, resource: str) -> str:
    if row is None:
        return "-"
    used, offered = row.used.get(resource, 0), row.allocatable.get(resource, 0)
    return f"{amount(resource, used)} ({percent(used, offered)})"


def _by_node(cluster: Cluster) -> Fullness:
    return fullness(cluster.nodes, cluster.pods, (), "nodes")


def _by_zone(nodes: Fullness, cluster: Cluster) -> Fullness:
    """Return rows of zones instead of nodes; nodes without a zone are left out."""
    zones = {
        node.name: node.metadata.labels[_ZONE]
        for node in cluster.nodes
        if _ZONE in node.metadata.labels
    }
    rows: dict[str, Row] = {}
    for row in nodes.rows:
        if row.name in zones:
            rows[zones[row.name]] = _added(rows.get(zones[row.name]), row, zones[row.name])
    return Fullness(nodes.totals, nodes.phases, tuple(rows[name] for name in sorted(rows)))


def _added(total: Row | None, row: Row, name: str) -> Row:
    if total is None:
        return Row(name, row.pods, dict(row.used), dict(row.allocatable))
    used, offered = dict(total.used), dict(total.allocatable)
    for amounts, more in ((used, row.used), (offered, row.allocatable)):
        for resource, value in more.items():
            amounts[resource] = amounts.get(resource, 0) + value
    return Row(name, total.pods + row.pods, used, offered)
