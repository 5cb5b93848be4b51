"""Rows of pods that wait alike as text that does not wrap; pure. Shared by several commands."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import Final

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.cli.rows.durations import duration
from moorage.service.questions.folding.folds import Fold

_GAP: Final = "  "
_INDENT: Final = "      "
_COLUMNS: Final = 80
"""The width where standard output is no terminal."""
_OWNER_LEAST: Final = 12
_ELLIPSIS: Final = "…"


def terminal_width() -> int:
    """Return the width of the terminal, columns; 80 where there is none."""
    return shutil.get_terminal_size((_COLUMNS, 24)).columns


def fold_lines(folds: Sequence[Fold], *, now_ns: int, width: int) -> list[str]:
    """Return a table of rows, nothing for none; below each row what is said of its pods.

    Parameters
    ----------
    folds
        The rows.
    now_ns
        When they were read, wall-clock nanoseconds.
    width
        The most characters of a line.
    """
    if not folds:
        return []
    columns = {
        "pods": [str(each.pods) for each in folds],
        "owner": [owner_text(each) for each in folds],
        "queue": [_queue(each) for each in folds],
        "oldest": [_age(each, now_ns) for each in folds],
        "reason": [each.reason for each in folds],
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    lines = table_lines(list(told), zip(*told.values(), strict=True), width=width, flexible=1)
    text = lines[:1]
    for line, each in zip(lines[1:], folds, strict=True):
        text.append(line)
        group = f"group {each.group}: " if each.group else ""
        if group or each.message:
            text.append(cut(f"{_INDENT}{group}{each.message or 'not tried yet'}", width))
    return text


def table_lines(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, width: int, flexible: int
) -> list[str]:
    """Return the lines of a table in which one column gives way, so that no line wraps.

    Parameters
    ----------
    headings
        Names of the columns; the first column is one of numbers.
    rows
        The cells.
    width
        The most characters of a line.
    flexible
        The index of the column that is cut.
    """
    cells = [[name.upper() for name in headings], *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    others = sum(widths) - widths[flexible] + len(_GAP) * (len(widths) - 1)
    widths[flexible] = min(widths[flexible], max(_OWNER_LEAST, width - others))
    lines = []
    for row in cells:
        row[flexible] = cut(row[flexible], widths[flexible])
        padded = [row[0].rjust(widths[0])]
        padded += [cell.ljust(size) for cell, size in zip(row[1:], widths[1:], strict=True)]
        lines.append(cut(_GAP.join(padded).rstrip(), width))
    return lines


def owner_text(fold: Fold) -> str:
    """Return what the pods of a row are: their owner, or the first of them by name."""
    what = fold.owner or (f"pod/{fold.names[0]}" if fold.names else "")
    if not fold.owner and fold.pods > 1:
        what += f", {_ELLIPSIS}"
    return f"{fold.namespace}/{what}" if fold.namespace else what


def rows_left(rows: int, pods: int, advice: str) -> str:
    """Return a note about rows that are not shown, with what shows them; "" for none."""
    return f"{rows} more rows with {pods} pods are not shown; {advice}" if rows else ""


def cut(text: str, width: int) -> str:
    """Return a text in at most so many characters; the last one says that something is cut."""
    line = " ".join(text.splitlines()) if "\n" in text else text
    return line if len(line) <= width else line[: width - 1].rstrip() + _ELLIPSIS


def _queue(fold: Fold) -> str:
    """Return where most pods of a row wait."""
    places = sorted(fold.queues.items(), key=lambda each: (-each[1], each[0]))
    if not places:
        return ""
    return places[0][0] + _ELLIPSIS * (len(places) > 1)


def _age(fold: Fold, now_ns: int) -> str:
    if not fold.oldest:
        return ""
    return duration((now_ns - parse_rfc3339(fold.oldest)) / NS_PER_SECOND)
