"""Rows of alike pods and of alike nodes as text that does not wrap; pure. For several commands."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.cli.amounts import amount
from moorage.cli.rows.durations import duration
from moorage.service.questions.folding.folds import By, Fold, Folded, first_folds, fold

_GAP: Final = "  "
_INDENT: Final = "      "
_COLUMNS: Final = 80
"""The width where standard output is no terminal."""
_OWNER_LEAST: Final = 12
_ELLIPSIS: Final = "…"


def terminal_width() -> int:
    """Return the width of the terminal, columns; 80 where there is none."""
    return shutil.get_terminal_size((_COLUMNS, 24)).columns


class Shown(msgspec.Struct, frozen=True):
    """How pods are shown.

    Parameters
    ----------
    by
        What makes pods one row.
    limit
        Most rows of a table.
    width
        The most characters of a line.
    """

    by: By = "owner"
    limit: int = 20
    width: int = _COLUMNS


def folded_rows(
    rows: Iterable[Fold], shown: Shown, *, indent: str = "", place: str = "queue"
) -> list[str]:
    """Return a table of alike pods, and a line about rows that are not shown.

    Parameters
    ----------
    rows
        A row for each pod, or folds.
    shown
        What becomes one row, and how much is shown.
    indent
        Stands before each line.
    place
        As of `fold_lines`.
    """
    folded = first_folds(fold(rows, by=shown.by), shown.limit)
    lines = fold_lines(folded.folds, width=shown.width - len(indent), place=place)
    return [f"{indent}{line}" for line in (*lines, *_left(folded))]


def wrapped(text: str, shown: Shown | None, *, indent: str = "") -> list[str]:
    """Return the lines of a sentence, broken at words; one line where `shown` is None."""
    if shown is None:
        return [f"{indent}{text}"]
    return textwrap.wrap(
        text,
        shown.width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def fold_lines(
    folds: Sequence[Fold], *, width: int, now_ns: int = 0, place: str = "queue"
) -> list[str]:
    """Return a table of rows, nothing for none; below each row what is said of its pods.

    Parameters
    ----------
    folds
        The rows.
    width
        The most characters of a line.
    now_ns
        When they were read, wall-clock nanoseconds; for rows that say since when pods wait.
    place
        The heading of the column that says where most pods of a row are.
    """
    if not folds:
        return []
    columns = {
        "pods": [str(each.pods) for each in folds],
        "owner": [owner_text(each) for each in folds],
        place: [place_text(each) for each in folds],
        "oldest": [age_text(each, now_ns) for each in folds],
        "reason": [each.reason for each in folds],
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    lines = table_lines(list(told), zip(*told.values(), strict=True), width=width, flexible=1)
    text = lines[:1]
    for line, each in zip(lines[1:], folds, strict=True):
        text.append(line)
        group = f"group {each.group}" * bool(each.group)
        message = each.message or "not tried yet" * bool(group and each.reason)
        if group or message:
            text.append(cut(f"{_INDENT}{': '.join(filter(None, (group, message)))}", width))
    return text


def alike_lines(headings: Sequence[str], rows: Iterable[Sequence[str]], shown: Shown) -> list[str]:
    """Return a table in which things with equal cells behind their names are one row with a count.

    Parameters
    ----------
    headings
        What is counted, and the names of the columns of `rows`.
    rows
        The cells, a name first.
    shown
        Whether there are such rows (all but ``none``), and how much is shown.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, *cells in rows:
        alike.setdefault((name * (shown.by == "none"), tuple(cells)), []).append(name)
    first = [
        (str(len(names)), names[0] + f", {_ELLIPSIS}" * bool(names[1:]), *cells)
        for (_, cells), names in list(alike.items())[: shown.limit]
    ]
    lines = table_lines(headings, first, width=shown.width, flexible=1)
    if len(alike) > len(first):
        left = rows_left(len(alike) - len(first), "--limit shows more")
        lines.append(cut(left, shown.width))
    return lines


def request_lines(rows: Iterable[Fold], resources: Sequence[str], shown: Shown) -> list[str]:
    """Return a table of what alike pods request together.

    Parameters
    ----------
    rows
        A row for each pod, or folds.
    resources
        The resources.
    shown
        What becomes one row, and how much is shown.
    """
    folded = first_folds(fold(rows, by=shown.by), shown.limit)
    cells = [
        (
            str(each.pods),
            owner_text(each),
            *(amount(name, each.requests.get(name, 0)) for name in resources),
        )
        for each in folded.folds
    ]
    headings = ("pods", "owner", *resources)
    lines = table_lines(headings, cells, width=shown.width, flexible=1)
    return [*lines, *_left(folded)]


def _left(folded: Folded) -> list[str]:
    """Return the line about rows that are not shown, if there are any."""
    text = rows_left(folded.rows_left, "--limit shows more", pods=folded.pods_left)
    return [text] if text else []


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
    if what and not fold.owner and fold.pods > 1:
        what += f", {_ELLIPSIS}"
    return "/".join(filter(None, (fold.namespace, what)))


def rows_left(rows: int, advice: str, *, pods: int = 0) -> str:
    """Return a note about rows that are not shown, with what shows them; "" for none.

    Parameters
    ----------
    rows, pods
        How many rows, and their pods; 0 pods are not named.
    advice
        What shows them.
    """
    if not rows:
        return ""
    which, are = ("1 more row", "is") if rows == 1 else (f"{rows} more rows", "are")
    whose = f" with {pods} pod{'s' * (pods != 1)}" if pods else ""
    return f"{which}{whose} {are} not shown; {advice}"


def cut(text: str, width: int) -> str:
    """Return a text in at most so many characters; the last one says that something is cut."""
    line = " ".join(text.splitlines()) if "\n" in text else text
    return line if len(line) <= width else line[: width - 1].rstrip() + _ELLIPSIS


def place_text(fold: Fold) -> str:
    """Return where most pods of a row are."""
    places = sorted(fold.queues.items(), key=lambda each: (-each[1], each[0]))
    if not places:
        return ""
    return places[0][0] + _ELLIPSIS * (len(places) > 1)


def age_text(fold: Fold, now_ns: int) -> str:
    """Return how long the first pod of a row waits; "" where that is not known."""
    if not fold.oldest:
        return ""
    return duration((now_ns - parse_rfc3339(fold.oldest)) / NS_PER_SECOND)
