"""The rows of a trace: CSV, plain or compressed, or Parquet, each with its line."""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moorage.api.manifest_text import utf8
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import DATA_BYTES_MAX, read_file, unpacked
from moorage_lab.traces.tables import arrow

Row = Mapping[str, str]


def rows_of(file: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a trace, each with its line in the file (Parquet: its number, from 1).

    Raises
    ------
    UsageError
        The file cannot be read, or pyarrow is missing for a Parquet file.
    """
    try:
        if file.endswith(".parquet"):
            yield from _parquet(file)
        else:
            yield from _csv(file)
    except (UnicodeDecodeError, csv.Error, DecodeError) as error:
        raise UsageError(f"{file}: not CSV in UTF-8 or UTF-16: {error}") from error


def content_of(file: str) -> bytes:
    """Return the bytes of a trace, unpacked if its name ends in .gz.

    Raises
    ------
    UsageError
        The file cannot be read.
    """
    with _readable(file):
        data = read_file(Path(file), DATA_BYTES_MAX)
        return unpacked(data) if file.endswith(".gz") else data


@contextmanager
def _readable(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {file}: {reason}") from error


def _csv(file: str) -> Iterator[tuple[int, Row]]:
    with io.StringIO(utf8(content_of(file)).decode(), newline="") as text:
        reader = csv.reader(text)
        first = next((cells for cells in reader if any(cells)), ())  # below empty lines
        heading = [name.strip() for name in first]
        if not heading:
            raise UsageError(f"{file}: it is empty, where a heading with names of columns belongs")
        if repeated := sorted(name for name, times in Counter(heading).items() if times > 1):
            raise UsageError(f"{file}: its heading has column {repeated[0]!r} twice")
        for cells in reader:
            if cells:
                yield reader.line_num, _row(heading, cells)


def _row(heading: list[str], cells: list[str]) -> Row:
    """Return a row by column; cells beyond the heading are kept under "", for a message."""
    row = dict(zip(heading, cells, strict=False))
    if len(cells) != len(heading):
        number = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        row[""] = f"{number}, and the heading has {len(heading)}"
    return row


def _parquet(file: str) -> Iterator[tuple[int, Row]]:
    pyarrow = arrow(f"reading {file}")
    from pyarrow import parquet

    try:
        with _readable(file):
            table = parquet.read_table(file)
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"{file}: not Parquet: {error}") from error
    number = 0
    for batch in table.to_batches():
        for row in batch.to_pylist():
            number += 1
            yield number, {key: "" if value is None else str(value) for key, value in row.items()}
