"""The report of a shadow as text for people; pure."""

from __future__ import annotations

from typing import Final

from moorage.api.quantity import NANO
from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns
from moorage.shadow.comparison import Comparison, Outcome
from moorage.shadow.fullness import Amount
from moorage.shadow.report import Courses, Report

_SHOWN_MOST: Final = 10
_MILLI: Final = NANO // 1000
_WORDS: Final = {
    Outcome.SAME: "same",
    Outcome.EQUAL: "equally good: a draw decides",
    Outcome.OTHER_NODE: "another node",
    Outcome.NOT_PLACED: "it would not bind the pod",
    Outcome.PLACED: "it would bind a pod that waits, or evict for it",
    Outcome.NOT_COMPARABLE: "not comparable",
}


def report_text(report: Report) -> str:
    """Return a report as text."""
    parts = [
        f"{report.configuration} next to the scheduler of {', '.join(report.profiles)}, "
        f"{report.started[:19]}Z to {report.ended[:19]}Z",
        "",
    ]
    rows = [(_WORDS[each], str(report.outcomes[each.value])) for each in Outcome]
    parts += Columns(["decisions", "number"]).lines(row for row in rows if row[1] != "0")
    parts += ["", _sentence(report), ""]
    if report.plugins:
        rows = [(name or "-", str(number)) for name, number in report.plugins.items()]
        parts += [*Columns(["plugin that makes the difference", "number"]).lines(rows), ""]
    parts += _differences(report)
    if report.not_comparable_because:
        rows = [(why, str(number)) for why, number in report.not_comparable_because.items()]
        parts += [*Columns(["not comparable because", "number"]).lines(rows), ""]
    if report.courses is not None:
        parts += _courses(report.courses)
    return "\n".join(parts).rstrip()


def _sentence(report: Report) -> str:
    if report.agreement is None:
        return "No decision could be compared."
    share = 100 * report.agreement
    told = f"{report.agree} of {report.compared} comparable decisions agree ({share:.1f}%)."
    if not report.differ:
        return f"{told} No difference."
    return told


def _differences(report: Report) -> list[str]:
    shown = report.differences[:_SHOWN_MOST]
    if not shown:
        return []
    lines = [line for each in shown for line in _difference(each)]
    if report.differ > len(shown):
        lines.append(f"  and {report.differ - len(shown)} more; -o json and --to have more of them")
    return ["Differences:", *lines, ""]


def _difference(each: Comparison) -> list[str]:
    places = f"{each.real_node or 'no node'} really, {each.shadow_node or 'no node'} here"
    return [f"  {each.pod}: {places}", f"    {each.reason}"]


def _courses(courses: Courses) -> list[str]:
    """Return the cluster as it is next to the configuration's own course."""
    real, own = courses.real, courses.own
    rows = [
        ("pods on nodes", str(real.pods), str(own.pods)),
        ("pods without a node", str(real.pending), str(own.pending)),
        ("nodes without a pod", *(f"{each.empty_nodes} of {each.nodes}" for each in (real, own))),
    ]
    for index, each in enumerate(real.amounts):
        pair = each, own.amounts[index]
        rows.append((f"{each.resource} requested", *map(_used, pair)))
        rows.append((f"{each.resource}, most on one node", *map(_largest, pair)))
        rows.append((f"{each.resource} stranded", *map(_stranded, pair)))
    heading = Columns(["the cluster", "really", "own course"])
    evicted = f"In its own course it bound {courses.own_bound} pods"
    if courses.own_evicted:
        evicted += f" and evicted {courses.own_evicted}, {courses.own_lost} without an owner"
    return [*heading.lines(rows), f"{evicted}."]


def _used(each: Amount) -> str:
    share = percent(each.requested, each.allocatable)
    return f"{_amount(each, each.requested)} ({share})"


def _largest(each: Amount) -> str:
    return f"{_amount(each, each.largest_free)} free"


def _stranded(each: Amount) -> str:
    return _amount(each, each.stranded)


def _amount(each: Amount, units: int) -> str:
    return amount(each.resource, units * (_MILLI if each.resource == "cpu" else NANO))
