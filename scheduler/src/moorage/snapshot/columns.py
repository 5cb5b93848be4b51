"""Growable arrays that share their rows.

Rows stay dense: removing a row moves the last row into the hole, so a pass over all nodes is a
slice, never a gather. A row number is therefore only good until the next change of structure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.schema import ColumnKey, spec_of

AnyArray = NDArray[Any]

_FIRST_CAPACITY = 64  # a guess: small clusters never grow, growing doubles


class Columns:
    """Named columns of one length.

    Attributes
    ----------
    n
        Number of rows in use.
    structure
        Rises whenever rows are added, removed or moved; values cached by row are then invalid.
    generation
        Rises with `structure`, and whenever a column is made or dropped; arrays that readers keep
        are then invalid.
    """

    def __init__(self) -> None:
        self.n = 0
        self.structure = 0
        self.generation = 0
        self._capacity = _FIRST_CAPACITY
        self._arrays: dict[ColumnKey, AnyArray] = {}
        self.views: dict[ColumnKey, AnyArray] = {}
        """The columns read since the last change of structure, as `view` returns them; not to be
        changed. A reader of many columns reads this dict first, which takes no call.
        """

    def ensure(self, key: ColumnKey) -> AnyArray:
        """Return the whole backing array of a column, made with its fill on first use.

        The array is longer than `n`; writers index it by row, readers use `view`.
        """
        array = self._arrays.get(key)
        if array is None:
            spec = spec_of(key)
            self.generation += 1
            array = self._arrays[key] = np.full(self._capacity, spec.fill, spec.dtype)
        return array

    def has(self, key: ColumnKey) -> bool:
        """Whether the column exists already."""
        return key in self._arrays

    def view(self, key: ColumnKey) -> AnyArray:
        """Return the column as a read-only array, (n,); writes to the column show through."""
        view = self.views.get(key)
        if view is None:
            view = self.ensure(key)[: self.n]
            view.flags.writeable = False
            self.views[key] = view
        return view

    def drop(self, key: ColumnKey) -> None:
        """Forget a column."""
        self.generation += 1
        self._arrays.pop(key, None)
        self.views.pop(key, None)

    def append_row(self) -> int:
        """Add a row with every column at its fill; return its number."""
        if self.n == self._capacity:
            self._grow()
        row = self.n
        self.n += 1
        self._restructured()
        return row

    def remove_row(self, row: int) -> int:
        """Remove a row by moving the last one into its place.

        Returns
        -------
        int
            The number the moved row had; equal to `row` when nothing moved.
        """
        last = self.n - 1
        for key, array in self._arrays.items():
            array[row] = array[last]
            array[last] = spec_of(key).fill
        self.n = last
        self._restructured()
        return last

    def _grow(self) -> None:
        self._capacity *= 2
        for key, array in self._arrays.items():
            wider = np.full(self._capacity, spec_of(key).fill, array.dtype)
            wider[: self.n] = array[: self.n]
            self._arrays[key] = wider

    def _restructured(self) -> None:
        self.structure += 1
        self.generation += 1
        self.views.clear()
