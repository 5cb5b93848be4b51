"""The answers of commands as documents: sentences, tables and suggestions; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.base.clock import parse_rfc3339
from moorage.base.errors import UsageError
from moorage.cli.capacity.text import (
    NO_SHAPE,
    CapacityReport,
    left_out_sentences,
    need_answers,
    room_sentences,
    waiting_text,
)
from moorage.cli.explain.object_text import (
    amount_table,
    count_table,
    object_suggestion_text,
    object_title,
)
from moorage.cli.explain.text import node_table, suggestion_text
from moorage.cli.queue.text import group_table
from moorage.cli.render import Table
from moorage.cli.rows.text import age_text, owner_text, place_text, rows_left
from moorage.cli.what_if.sections import sections_of
from moorage.cli.what_if.text import (
    NOTHING,
    ChangeReport,
    name_lists,
    remarks,
    use_tables,
    verdict,
)
from moorage.explain.answer import Explanation
from moorage.explain.workloads.answer import ObjectExplanation
from moorage.service.questions.answers import QueueAnswer
from moorage.service.questions.folding.folded_queue import rows_of
from moorage.service.questions.folding.folds import Fold, first_folds, fold

_ROWS_MOST: Final = 200
"""Rows of a table; a guess: nobody reads more, and the answer as JSON has all of them."""
_NAMES_MOST: Final = 50
_ALL_ROWS: Final = "the answer as JSON has them"


class Step(msgspec.Struct, frozen=True):
    """A suggestion.

    Parameters
    ----------
    text
        The change as a sentence.
    command
        The command that makes it; "" for none.
    """

    text: str
    command: str = ""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document: what stands below one title.

    Parameters
    ----------
    title
        The title; "" for none.
    sentences
        The text.
    table
        A table below the text; None for none.
    names
        A list below the table.
    steps
        Suggestions.
    """

    title: str = ""
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    names: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An answer for people.

    Parameters
    ----------
    subject
        What was asked about.
    sentence
        The whole answer in one sentence.
    parts
        The parts.
    source
        Where the answer is from; "" where the answer does not say.
    """

    subject: str
    sentence: str
    parts: tuple[Part, ...]
    source: str = ""


def document_of(command: str, answer: Mapping[str, Any]) -> Document:
    """Return the answer of a command as a document.

    Parameters
    ----------
    command
        The command, one of `COMMANDS`.
    answer
        What it prints with ``-o json``.

    Raises
    ------
    UsageError
        The answer is of a form that no document shows.
    """
    return COMMANDS[command](answer)


# --- explain --------------------------------------------------------------------------------------


def _explanation(answer: Mapping[str, Any]) -> Document:
    if "sentence" not in answer:
        raise UsageError("report explain: records of attempts (--attempt, --records) are not shown")
    if "type" in answer:
        return _object(msgspec.convert(answer, ObjectExplanation))
    return _pod(msgspec.convert(answer, Explanation))


def _pod(explanation: Explanation) -> Document:
    steps = tuple(Step(suggestion_text(each), each.command) for each in explanation.suggestions)
    nodes = explanation.nodes
    left = explanation.node_count - len(nodes)
    table = Part(
        title="Nodes",
        table=node_table(nodes),
        sentences=(f"The first {len(nodes)} of {explanation.node_count}.",) * bool(left),
    )
    return Document(
        subject=f"Pod {explanation.namespace}/{explanation.name}",
        sentence=explanation.sentence,
        parts=(Part(sentences=explanation.notes), *_steps(steps), *[table] * bool(nodes)),
        source=explanation.source,
    )


def _object(explanation: ObjectExplanation) -> Document:
    steps = tuple(
        Step(object_suggestion_text(each), each.command) for each in explanation.suggestions
    )
    parts = [Part(sentences=explanation.notes), *_steps(steps)]
    if explanation.counts:
        parts.append(Part(title="Pods", table=count_table(explanation.counts, wide=True)))
    if explanation.amounts:
        parts.append(Part(title="Amounts", table=amount_table(explanation.amounts)))
    title = object_title(explanation)
    return Document(
        subject=title[:1].upper() + title[1:],
        sentence=explanation.sentence,
        parts=tuple(parts),
        source=explanation.source,
    )


def _steps(steps: tuple[Step, ...]) -> list[Part]:
    text = "Each was tried by itself."
    return [Part(title="Suggestions", sentences=(text,), steps=steps)] * bool(steps)


# --- what-if and capacity -------------------------------------------------------------------------


def _comparison(answer: Mapping[str, Any]) -> Document:
    course = msgspec.convert(answer, ChangeReport)
    parts = [
        _pods(f"{section.title} ({len(section.rows)})", section.rows, place=section.place)
        for section in sections_of(course)
        if section.rows
    ]
    nothing = Part(sentences=(NOTHING,))
    parts = parts or [nothing]
    for title, names in name_lists(course):
        if names:
            more = f"{len(names) - _NAMES_MOST} more"
            shown = (*names[:_NAMES_MOST], *[more] * bool(names[_NAMES_MOST:]))
            parts.append(Part(title=f"{title} ({len(names)})", names=shown))
    parts += [Part(sentences=(each,)) for each in remarks(course)]
    for table in use_tables(course):
        title = f"How full {table.headings[0]}s are"
        left = rows_left(max(0, len(table.rows) - _ROWS_MOST), _ALL_ROWS)
        rows = Table(table.headings, table.rows[:_ROWS_MOST])
        parts.append(Part(title=title, sentences=(left,) * bool(left), table=rows))
    return Document(
        subject="What if",
        sentence=verdict(course.worse),
        parts=tuple(parts),
        source=course.source,
    )


def _capacity(answer: Mapping[str, Any]) -> Document:
    report = msgspec.convert(answer, CapacityReport)
    sentences = [] if report.room is None else room_sentences(report.question, report.room)
    parts = []
    if report.needs or report.waiting:
        sentences.append(waiting_text(report.needs, report.waiting))
        sentences += [NO_SHAPE] * (not report.needs)
        parts.append(_pods("Pods that wait", report.waiting))
        parts += [
            _pods("", rows, sentence=text)
            for text, rows in need_answers(report.needs, report.waiting)
        ]
    if report.left_out:
        sentences += left_out_sentences(report.left_out, report.limit)
    first, *others = sentences or ["No pod waits."]
    return Document(
        subject="Capacity",
        sentence=first,
        parts=(Part(sentences=tuple(others)), *parts),
        source=report.source,
    )


# --- queue ----------------------------------------------------------------------------------------


def _queue(answer: Mapping[str, Any]) -> Document:
    queue = msgspec.convert(answer, QueueAnswer)
    now_ns = parse_rfc3339(queue.time)
    sizes: Mapping[str, int] = msgspec.to_builtins(queue.sizes)
    listed, waiting = len(queue.pods), sum(sizes.values())
    first = "1 pod is on its way" if waiting == 1 else f"{waiting} pods are on their way"
    places = ", ".join(f"{size} {name}" for name, size in sizes.items() if size)
    parts = [_pods("Pods", rows_of(queue.pods), place="queue", now_ns=now_ns)] * bool(listed)
    if queue.groups:
        parts.append(Part(title="Pod groups", table=group_table(queue.groups)))
    return Document(
        subject="Queue",
        sentence=f"{first}{f': {places}' if places else ''}",
        parts=tuple(parts),
    )


# --- parts ----------------------------------------------------------------------------------------


def _pods(
    title: str, rows: Iterable[Fold], *, place: str = "node", sentence: str = "", now_ns: int = 0
) -> Part:
    """Return a part with a table of pods, those of equal owner, group and reason as one row."""
    folded = first_folds(fold(rows), _ROWS_MOST)
    left = rows_left(folded.rows_left, _ALL_ROWS, pods=folded.pods_left)
    return Part(
        title=title,
        sentences=tuple(filter(None, (sentence, left))),
        table=_fold_table(folded.folds, place=place, now_ns=now_ns) if folded.folds else None,
    )


def _fold_table(folds: Iterable[Fold], *, place: str, now_ns: int) -> Table:
    """Return a table of pods without the columns that say nothing."""
    columns: dict[str, Callable[[Fold], str]] = {
        "pods": lambda each: str(each.pods),
        "owner": owner_text,
        "group": lambda each: each.group,
        place: place_text,
        "oldest": lambda each: age_text(each, now_ns),
        "reason": lambda each: each.reason,
        "message": lambda each: each.message,
    }
    cells = {name: [cell(each) for each in folds] for name, cell in columns.items()}
    filled = {name: column for name, column in cells.items() if any(column)}
    return Table(tuple(filled), tuple(zip(*filled.values(), strict=True)))


COMMANDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Document]]] = {
    "explain": _explanation,
    "what-if": _comparison,
    "capacity": _capacity,
    "queue": _queue,
}
"""The commands whose answers are shown."""
