"""Asks for the queue and prints it: pods that wait alike as one row, or every pod."""

from __future__ import annotations

from typing import Final

import click

from moorage.cli.ask import SchedulerLink, read_answer
from moorage.cli.queue.text import (
    folded_lines,
    folded_remarks,
    narrowed,
    remarks,
    wide_lines,
)
from moorage.cli.render import Form, show, show_note
from moorage.cli.rows.text import terminal_width
from moorage.service.questions.answers import QueueAnswer
from moorage.service.questions.folding.folded_queue import rows_of
from moorage.service.questions.folding.folds import By, Sort, first_folds, fold

_PODS_MOST: Final = "5000"
"""Pods of each queue that are folded."""


async def show_folded(
    link: SchedulerLink, namespace: str, *, by: By, sort: Sort, rows: int, clear: bool
) -> None:
    """Print the rows of pods that wait alike.

    Parameters
    ----------
    link, namespace
        The scheduler that answers; the namespace of the pods, "" for all.
    by, sort
        As of `fold`.
    rows
        Most rows.
    clear
        Whether the screen is cleared first.
    """
    # The scheduler keeps namespaces apart, and knows rows of one owner; further folding is here.
    # For rows of single pods the question is about pods.
    asked = {} if by == "none" else {"by": "owner"}
    answer = narrowed(
        read_answer(await link.ask("/queue", {"limit": _PODS_MOST, **asked}), QueueAnswer),
        namespace,
    )
    unfolded = rows_of(answer.pods) if by == "none" else answer.folds
    shown = first_folds(fold(unfolded, by=by, sort=sort), rows)
    if clear:
        click.clear()
    text = "\n".join(folded_lines(answer, shown.folds, width=terminal_width()))
    if text:
        click.echo(text)
    for remark in folded_remarks(answer, shown, namespace):
        show_note(remark)


async def show_pods(
    link: SchedulerLink, namespace: str, output: Form, *, limit: int, clear: bool
) -> None:
    """Print every pod in a form of ``-o``.

    Parameters
    ----------
    link, namespace, output
        The scheduler that answers; the namespace of the pods, "" for all; the form.
    limit
        Most pods of each queue.
    clear
        Whether the screen is cleared first, for forms of people.
    """
    answer = narrowed(
        read_answer(await link.ask("/queue", {"limit": str(limit)}), QueueAnswer), namespace
    )
    if clear and output in {"wide", "name"}:
        click.clear()
    names = [f"pod/{pod.name}" for pod in answer.pods]
    show(output, answer, text="\n".join(wide_lines(answer)), names=names)
    for remark in remarks(answer, namespace):
        show_note(remark)
