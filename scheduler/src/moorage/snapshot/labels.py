"""Node labels as columns of interned values, one column for each requested key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import parse_int64
from moorage.snapshot.columns import Columns

ABSENT = -1


class LabelColumn:
    """The values of one label key over all nodes."""

    def __init__(self, columns: Columns, key: str) -> None:
        self._columns = columns
        self._key = ("label", key)
        self.values: list[str] = []
        """Label values by value id; only grows."""
        self._ids: dict[str, int] = {}
        columns.ensure(self._key)

    @property
    def ids(self) -> NDArray[np.int64]:
        """int64, (n,): value id of each row, -1 where the label is absent; read-only.

        Used as an index, -1 picks the last entry: append the answer for "absent" to a table of
        answers by value id and gather with one indexing operation.
        """
        return self._columns.view(self._key)

    @property
    def size(self) -> int:
        """Number of distinct values seen."""
        return len(self.values)

    def lookup(self, value: str) -> int:
        """Return the id of a value, or -1 when no node ever had it."""
        return self._ids.get(value, ABSENT)

    def rows_by_value(self, rows: NDArray[np.int64]) -> list[tuple[str, NDArray[np.int64]]]:
        """Return each value that some rows have, with these rows in order; absent is no value."""
        rows = rows[self.ids[rows] != ABSENT]
        rows = rows[np.argsort(self.ids[rows], kind="stable")]
        ids, starts = np.unique(self.ids[rows], return_index=True)
        values = [self.values[each] for each in ids.tolist()]
        return list(zip(values, np.split(rows, starts)[1:], strict=True))

    def ints(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return by value id, (size,): the value as an integer, and whether the value is one."""
        parsed = [parse_int64(value) for value in self.values]
        number = np.array([0 if value is None else value for value in parsed], np.int64)
        return number, np.array([value is not None for value in parsed], np.bool_)

    def put_row(self, row: int, labels: Mapping[str, str]) -> None:
        """Write one row from a node's labels."""
        value = labels.get(self._key[1])
        self._columns.ensure(self._key)[row] = ABSENT if value is None else self._intern(value)

    def _intern(self, value: str) -> int:
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value)
        return found


class Labels:
    """All label columns; a column is made when its key is first asked for."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._by_key: dict[str, LabelColumn] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """The label keys that were asked for."""
        return tuple(self._by_key)

    def find(self, key: str) -> LabelColumn | None:
        """Return the column of a label key, or None when the key was never requested."""
        return self._by_key.get(key)

    def column(self, key: str, labels_by_row: Sequence[Mapping[str, str]]) -> LabelColumn:
        """Return the column of a label key, filled from all nodes on first use."""
        column = self._by_key.get(key)
        if column is None:
            column = self._by_key[key] = LabelColumn(self._columns, key)
            for row, labels in enumerate(labels_by_row):
                column.put_row(row, labels)
        return column

    def put_row(self, row: int, labels: Mapping[str, str]) -> None:
        """Write one row of every column from a node's labels."""
        for column in self._by_key.values():
            column.put_row(row, labels)
