"""The course of a change as text for people, and as plain values for programs; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from moorage.cli.amounts import amount, percent
from moorage.cli.render import Columns, Table
from moorage.cli.rows.text import Shown, alike_lines, folded_rows, wrapped
from moorage.cli.what_if.sections import Section, sections_of
from moorage.service.questions.folding.folds import Fold
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.fullness import Use, UseChange

_NANO: Final = 10**9
_INDENT: Final = "  "
NOTHING: Final = "No pod starts, moves or waits because of the change."
_ANYWHERE: Final = "Get volumes that a driver makes, taken to be usable on every node"
_JOB_PODS: Final = (
    "Are taken not to end, though pods that wait may start when these pods of Jobs do"
)
_ORDER: Final = (
    "Which pods get a node depends on the order in which their owners make them again; another "
    "order comes out differently."
)
_IN_TURN: Final = (
    "Each node is taken to be drained by a command of its own. One kubectl drain of several nodes "
    "drains them in turn: where it waits, the nodes after it keep their pods."
)


class ChangeReport(ChangeComparison, frozen=True, kw_only=True, rename="camel"):
    """The answer of the command for programs.

    Parameters
    ----------
    worse
        A sentence for each deterioration.
    source
        Where the answer comes from, in words.
    """

    worse: tuple[str, ...]
    source: str


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
        parts = [NOTHING, ""]
    for title, names in name_lists(course):
        parts += _names(title, names, shown)
    for sentence in remarks(course):
        parts += [*wrapped(sentence, shown), ""]
    parts += _fullness(course, shown)
    parts += wrapped(verdict(worse), shown)
    return "\n".join([*parts, "", *wrapped(source, shown)] if source else parts)


def verdict(worse: Sequence[str]) -> str:
    """Return what gets worse, as a sentence."""
    return f"Worse: {'; '.join(worse)}" if worse else "Nothing gets worse."


def name_lists(course: ChangeComparison) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield lists of names, each with its title; a list may be empty."""
    for need in course.drain_flags:
        yield f"kubectl drain needs {need.flag} for", need.pods
    yield _ANYWHERE, course.volumes_anywhere
    yield _JOB_PODS, course.job_pods


def remarks(course: ChangeComparison) -> Iterator[str]:
    """Yield sentences about the whole course."""
    if course.order_matters:
        yield _ORDER
    if course.not_evicted and len(_left_nodes(course)) > 1:
        yield _IN_TURN
    if not course.is_quiet:
        yield "It does not come to rest: pods are tried again and again."


def _left_nodes(course: ChangeComparison) -> set[str]:
    """Return the nodes that pods leave, or would if budgets let them."""
    leaving = [each.from_node for each in course.moves if not each.evicted_by]
    pending = [each.was for each in course.newly_pending if not each.evicted_by]
    leaving += [was.rpartition(" on ")[2] for was in pending if " on " in was]
    leaving += [each.node for each in course.lost] + [each.node for each in course.not_evicted]
    return set(leaving)


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
    for table in use_tables(course):
        if shown is None:
            tables += table.lines()
        else:
            headings = [f"{table.headings[0]}s", *table.headings]
            tables += alike_lines(headings, table.rows, shown)
        tables.append("")
    return tables


def use_tables(course: ChangeComparison) -> Iterator[Table]:
    """Yield how full nodes and zones are, before and after the change; no table without rows."""
    for heading, changes in (("node", course.nodes), ("zone", course.zones)):
        if changes:
            resources = {name: None for each in changes for name in _resources(each)}
            rows = tuple(_cells(each, resources) for each in changes)
            yield Table((heading, "pods", *resources), rows)


def _resources(change: UseChange) -> Iterable[str]:
    use = change.after or change.before
    assert use is not None, "one of them is there"
    return use.allocatable


def _cells(change: UseChange, resources: Iterable[str]) -> tuple[str, ...]:
    pair = (change.before, change.after)
    pods = " -> ".join("-" if use is None else str(use.pods) for use in pair)
    shares = (" -> ".join(_share(use, name) for use in pair) for name in resources)
    return (change.name, pods, *shares)


def _share(use: Use | None, resource: str) -> str:
    if use is None:
        return "-"
    used, offered = (
        round(amounts.get(resource, 0) * _NANO) for amounts in (use.used, use.allocatable)
    )
    return f"{amount(resource, used)} ({percent(used, offered)})"
