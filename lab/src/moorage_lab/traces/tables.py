"""Tables of results: rows under names of columns, as CSV, JSON, Parquet, HTML and Arrow.

Arrow tables convert to pandas and polars without copying. pyarrow is an extra; without it tables
are written as CSV and JSON.
"""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from moorage.api.codec import encode
from moorage.base.errors import UsageError

_ROWS_SHOWN: Final = 20


def arrow(purpose: str) -> Any:
    """Return the library for columnar tables.

    Parameters
    ----------
    purpose
        The use, for the message.

    Raises
    ------
    UsageError
        pyarrow is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError(f"{purpose} needs pyarrow: pip install 'moorage[arrow]'") from error
    return pyarrow


class Table:
    """Rows of values under names of columns.

    Parameters
    ----------
    columns
        By name, each as long as the others.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns: dict[str, list[Any]] = {name: list(each) for name, each in columns.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows: {', '.join(self.columns)}"

    @property
    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, as mappings."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def where(self, **wanted: Any) -> Table:
        """Return the rows with these values in these columns."""
        keep = [
            number
            for number in range(len(self))
            if all(self.columns[name][number] == value for name, value in wanted.items())
        ]
        return Table({name: [each[n] for n in keep] for name, each in self.columns.items()})

    def to_arrow(self) -> Any:
        """Return the table as ``pyarrow.Table``.

        Raises
        ------
        UsageError
            pyarrow is not installed.
        """
        return arrow("an Arrow table").table(self.columns)

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas, which has to be installed with pyarrow."""
        return self.to_arrow().to_pandas()

    def write(self, file: Path) -> None:
        """Write the table; the suffix says how: .csv, .json or .parquet.

        Raises
        ------
        UsageError
            There is no such form, or pyarrow is not installed.
        """
        if file.suffix == ".parquet":
            table = self.to_arrow()
            from pyarrow import parquet

            parquet.write_table(table, file)
        elif file.suffix == ".csv":
            file.write_text(self.to_csv(), encoding="utf-8")
        elif file.suffix == ".json":
            file.write_bytes(encode(list(self.rows)))
        else:
            raise UsageError(f"{file}: write .csv, .json or .parquet")

    def to_csv(self) -> str:
        """Return the table as CSV with a heading."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        return text.getvalue()

    def to_html(self, *, most: int | None = None) -> str:
        """Return the table as HTML.

        Parameters
        ----------
        most
            Number of rows that are shown; None for all.
        """
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        shown = len(self) if most is None else min(most, len(self))
        lines = []
        for number in range(shown):
            cells = "".join(f"<td>{_cell(each[number])}</td>" for each in self.columns.values())
            lines.append(f"<tr>{cells}</tr>")
        more = "" if shown == len(self) else f"<p>{shown} of {len(self)} rows</p>"
        body = "\n".join(lines)
        return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>{more}"

    def _repr_html_(self) -> str:
        return self.to_html(most=_ROWS_SHOWN)


def _cell(value: Any) -> str:
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))
