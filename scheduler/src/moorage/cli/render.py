"""Turns reports, objects and the server's tables into text, and prints a report in any form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

import click
import msgspec

from moorage.base.errors import ApiError, MoorageError, RefusedError

_GAP = "   "

Form: TypeAlias = Literal["text", "wide", "json", "yaml", "name"]
"""The form in which a command prints: the value of ``-o``."""


def show(
    form: Form, report: Any, *, text: str | Callable[[], str], names: Iterable[str] = ()
) -> None:
    """Print a report on standard output, in the form that ``-o`` asks for.

    Parameters
    ----------
    form
        The value of ``-o``.
    report
        The report for programs: a struct, or plain values. One document.
    text
        The report for people, or a function that writes it; "" prints nothing.
    names
        The object of the report as ``kind/name``, for the form ``name``.
    """
    match form:
        case "json" | "yaml":
            plain = msgspec.to_builtins(report)
            output_text = json_text(plain) if form == "json" else yaml_text(plain)
        case "name":
            output_text = "\n".join(names)
        case _:
            output_text = text if isinstance(text, str) else text()
    if output_text:
        click.echo(output_text)


def error_text(error: MoorageError) -> str:
    """Return the message of a failure, with advice where its text is a server's or TLS's."""
    if isinstance(error, ApiError) and error.code == HTTPStatus.UNAUTHORIZED:
        return (
            f"{error}: the server knows no such user; check the user's credentials in the "
            "kubeconfig"
        )
    if isinstance(error, RefusedError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return f"{error}; check certificate-authority of the cluster in the kubeconfig"
    if isinstance(error, RefusedError):
        return f"{error}; is the server running, and is its address in the kubeconfig right?"
    return str(error)


def show_error(text: str) -> None:
    """Print on standard error that something failed, and what to do."""
    click.echo(f"error: {text}", err=True)


def show_note(text: str) -> None:
    """Print a note, which is no failure, on standard error."""
    click.echo(f"note: {text}", err=True)


def json_text(value: Any) -> str:
    """Return indented JSON, as kubectl prints it."""
    return json.dumps(value, indent=4, ensure_ascii=False)


def yaml_text(value: Any) -> str:
    """Return YAML in block style, keys in the order of the server."""
    from moorage.api.yaml_text import write_yaml  # takes time to import; most commands go without

    text = write_yaml(value)
    return text.rstrip("\n")


class Columns:
    """Prints rows under headings; widths only grow, so that later rows line up.

    Parameters
    ----------
    headings
        Names of the columns.
    """

    def __init__(self, headings: Sequence[str]) -> None:
        self._headings = [name.upper() for name in headings]
        self._widths = [len(name) for name in self._headings]
        self._printed_headings = False

    def lines(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """Return the lines of some more rows, the headings before the first."""
        new = [list(row) for row in rows]
        for row in new:
            self._widths = [max(w, len(c)) for w, c in zip(self._widths, row, strict=True)]
        if not self._printed_headings:
            self._printed_headings = True
            new.insert(0, self._headings)
        return [self._line(row) for row in new]

    def _line(self, row: Sequence[str]) -> str:
        cells = [cell.ljust(width) for cell, width in zip(row, self._widths, strict=True)]
        return _GAP.join(cells).rstrip()


class Table(msgspec.Struct, frozen=True):
    """A table of a report.

    Parameters
    ----------
    headings
        Names of the columns.
    rows
        The cells.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """Return the table as lines of text."""
        return Columns(self.headings).lines(self.rows)


def table_headings(table: Mapping[str, Any], *, wide: bool, namespaces: bool) -> list[str]:
    """Return the headings of a server-side table; `wide` shows the columns of lower priority."""
    names = [each["name"] for each in _shown(table["columnDefinitions"], wide=wide)]
    return ["Namespace", *names] if namespaces else names


def table_rows(
    table: Mapping[str, Any],
    definitions: Sequence[Mapping[str, Any]],
    *,
    wide: bool,
    namespaces: bool,
    prefix: str = "",
) -> list[list[str]]:
    """Return the cells of a server-side table as text.

    Parameters
    ----------
    table
        The table as sent by the server; rows carry their object's metadata.
    definitions
        Definitions of the columns; only the first table of a watch has them.
    prefix
        Text before each name: ``pod/`` where several kinds are shown.
    """
    rows = []
    for row in table.get("rows") or []:
        cells = [
            "<none>" if cell is None or cell == "" else str(cell)
            for cell, column in zip(row["cells"], definitions, strict=False)
            if wide or not column.get("priority")
        ]
        if prefix and cells:
            cells[0] = f"{prefix}{cells[0]}"
        if namespaces:
            metadata = (row.get("object") or {}).get("metadata") or {}
            cells.insert(0, metadata.get("namespace", ""))
        rows.append(cells)
    return rows


def _shown(definitions: Iterable[Mapping[str, Any]], *, wide: bool) -> list[Mapping[str, Any]]:
    return [each for each in definitions if wide or not each.get("priority")]
