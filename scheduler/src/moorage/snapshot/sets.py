"""Interned sets: taints, host ports and features of a node, each as a small id.

Many nodes carry the same set, so a question is answered once for each distinct set and then
gathered: ``answer_by_id[ids_n]``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.columns import Columns

S = TypeVar("S", bound=Hashable)


class SetColumn(Generic[S]):
    """A column of interned sets; id 0 is the empty set and always there.

    Parameters
    ----------
    columns
        The columns that hold the ids.
    key
        Name of the fixed column.
    empty
        The value of a row without a set of its own.
    """

    def __init__(self, columns: Columns, key: str, empty: S) -> None:
        self._columns = columns
        self._key = key
        self._items: list[S | None] = [empty]
        self._ids: dict[S, int] = {empty: 0}
        self._uses: list[int] = [0]
        self._free: list[int] = []
        self.version = 0
        """Rises when an id gets a new meaning; answers cached by id are then invalid."""
        columns.ensure(key)

    @property
    def ids(self) -> NDArray[np.int64]:
        """int64, (n,): the set id of each row, read-only."""
        return self._columns.view(self._key)

    @property
    def size(self) -> int:
        """Number of ids ever handed out; length of an answer table."""
        return len(self._items)

    def live(self) -> Iterable[int]:
        """Ids in use, ascending; the empty set always counts."""
        return (i for i, uses in enumerate(self._uses) if uses > 0 or i == 0)

    def item(self, set_id: int) -> S:
        """Return the content behind an id in use."""
        found = self._items[set_id]
        assert found is not None, f"set id {set_id} of {self._key} is not in use"
        return found

    def at(self, row: int) -> S:
        """Return the content of one row."""
        return self.item(int(self._columns.ensure(self._key)[row]))

    def set(self, row: int, content: S) -> None:
        """Give a row a set."""
        array = self._columns.ensure(self._key)
        old = int(array[row])
        new = self._intern(content)
        self._uses[new] += 1
        array[row] = new
        self._release(old)

    def added(self) -> None:
        """Note a new row, which starts with the empty set."""
        self._uses[0] += 1

    def removed(self, row: int) -> None:
        """Note that a row is about to be removed."""
        self._release(int(self._columns.ensure(self._key)[row]))

    def _intern(self, content: S) -> int:
        number = self._ids.get(content)
        if number is not None:
            return number
        if self._free:
            number = self._free.pop()
            self._items[number] = content
            self.version += 1
        else:
            number = len(self._items)
            self._items.append(content)
            self._uses.append(0)
        self._ids[content] = number
        return number

    def _release(self, set_id: int) -> None:
        self._uses[set_id] -= 1
        if self._uses[set_id] == 0 and set_id != 0:
            content = self._items[set_id]
            assert content is not None
            del self._ids[content]
            self._items[set_id] = None
            self._free.append(set_id)
