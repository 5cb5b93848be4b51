"""The free devices of every row as one number: rows with equal numbers share one search.

The numbers are kept from one attempt to the next. A row is read again when its node, its slices or
the allocations in its pools change. Solutions are kept by number, and replicas share them, because
a solution has positions of devices and no names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import NodeFacts, PoolID
from moorage.plugins.claims.devices.grouping import Question, Signatures, question
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.requests import Demand
from moorage.plugins.claims.devices.search import Solution
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.table import NodeTable

_QUESTIONS_MAX: Final = 16
_SHAPES_MAX: Final = 64
_NUMBERS_MAX: Final = 4096
_NUMBERS_OF_A_ROW_MAX: Final = 4
"""Limits of kept columns, of kept solutions by shape of claims, and of numbers; guesses.

The greater of the two limits of numbers applies.
"""

RowArray = NDArray[np.int64]
NumberArray = NDArray[np.int32]

UNKNOWN: Final = 0
ALLOCATED: Final = 1
NOT_ALLOCATED: Final = 2
INVALID_POOL: Final = 3
"""Outcomes of a search; INVALID_POOL is a failed search on a node with an invalid pool."""


def outcome(view: NodeView, solution: Solution | None) -> int:
    """Return the outcome of a search on a node."""
    if solution is not None:
        return ALLOCATED
    return INVALID_POOL if view.has_invalid_pool else NOT_ALLOCATED


class RowAnswers(NamedTuple):
    """Answers about some rows."""

    number_n: NumberArray
    """int32, (rows,): a key of `by_number` where the claims can be allocated."""
    outcome_n: NDArray[np.uint8]
    """uint8, (rows,): `ALLOCATED`, `NOT_ALLOCATED` or `INVALID_POOL`."""
    solutions: Mapping[int, Solution]
    """Solutions by number."""


class _Solutions:
    """The solutions for claims of one shape, by number."""

    def __init__(self) -> None:
        self.outcome_k = np.zeros(64, np.uint8)
        self.by_number: dict[int, Solution] = {}

    def outcomes(self, count: int) -> NDArray[np.uint8]:
        """Return uint8, (at least `count`,): the outcome for each number."""
        if count > len(self.outcome_k):
            wider = np.zeros(2 * count, np.uint8)
            wider[: len(self.outcome_k)] = self.outcome_k
            self.outcome_k = wider
        return self.outcome_k


class _Column:
    """The numbers of all rows for one question.

    Parameters
    ----------
    rows
        The number of rows, of which none was read yet.
    followed_to
        The position in the log of changed rows.
    """

    def __init__(self, rows: int, followed_to: int) -> None:
        self.number_n: NumberArray = np.zeros(rows, np.int32)
        self.is_stale_n = np.ones(rows, np.bool_)
        self.numbers: dict[tuple[object, ...], int] = {}
        self.solutions: dict[tuple[object, ...], _Solutions] = {}
        self.followed_to = followed_to

    def move(self, rows: int, came_from: Mapping[int, int]) -> None:
        """Take some rows to other places.

        Parameters
        ----------
        rows
            The number of rows from now on.
        came_from
            The row that a row was before; -1 where it has to be read.
        """
        source_n = np.arange(rows)
        source_n[list(came_from)] = list(came_from.values())
        self.number_n = np.append(self.number_n, np.int32(0))[source_n]
        self.is_stale_n = np.append(self.is_stale_n, np.True_)[source_n]

    def solutions_of(self, demands: Sequence[Demand]) -> _Solutions:
        """Return the solutions for claims of this shape."""
        shape = tuple(demand.shape for demand in demands)
        solutions = self.solutions.get(shape)
        if solutions is None:
            if len(self.solutions) >= _SHAPES_MAX:
                self.solutions.clear()
            solutions = self.solutions[shape] = _Solutions()
        return solutions


class DeviceRows:
    """Answers for the rows of the cluster.

    Parameters
    ----------
    table
        The rows.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._changed: KeyLog[int] = KeyLog()
        self._columns: dict[Question, _Column] = {}
        self._nodes: list[Node] = []
        """The node of each row, as it was when the cluster was last followed."""
        self._views: list[NodeView | None] = []
        self._rows_of_pool: dict[PoolID, dict[int, None]] = {}
        self._built_from: tuple[Inventory, AllocatedState, int] | None = None
        self._structure = -1
        self._positions = (0, 0, 0)

    def answers(
        self, allocator: Allocator, demands: Sequence[Demand], rows: RowArray
    ) -> RowAnswers:
        """Search devices for claims on these rows.

        Raises
        ------
        AllocationError, AllocationTimeoutError
            As `Allocator.allocate`, for the first row in order with the error.
        """
        self._follow(allocator)
        properties = question(demands)
        column = self._column(properties)
        self._read_stale(column, allocator, properties, rows)
        solutions = column.solutions_of(demands)
        number_n = column.number_n[rows]
        outcomes = solutions.outcomes(len(column.numbers))
        outcome_n = outcomes[number_n]
        if not outcome_n.all():
            unknown = (outcome_n == UNKNOWN).nonzero()[0]
            _, first = np.unique(number_n[unknown], return_index=True)
            for at in unknown[np.sort(first)].tolist():
                number, row = number_n.item(at), rows.item(at)
                view, node = self._view(row, allocator), self._facts(row)
                solution = allocator.search(view, demands, allocator.timer(node))
                if solution is not None:
                    solutions.by_number[number] = solution
                outcomes[number] = outcome(view, solution)
            outcome_n = outcomes[number_n]
        return RowAnswers(number_n, outcome_n, solutions.by_number)

    # -- following the cluster -----------------------------------------------------------------

    def _follow(self, allocator: Allocator) -> None:
        """Note the rows that changed since the last call."""
        table, inventory, state = self._table, allocator.inventory, allocator.allocated
        positions = (table.node_log.position, inventory.log.position, state.log.position)
        before, self._positions = self._positions, positions
        built_from = (inventory, state, inventory.epoch)
        if self._built_from != built_from:
            self._built_from = built_from
            self._restart()
            return
        if before == self._positions and table.columns.structure == self._structure:
            return
        nodes = table.node_log.since(before[0])
        slices = inventory.log.since(before[1])
        pools = state.log.since(before[2])
        if nodes is None or slices is None or pools is None:
            self._restart()
            return
        if table.columns.structure != self._structure:
            self._move_rows()
            nodes = []  # a changed node is another object, so nothing was kept of it
        for row in nodes:
            self._nodes[row] = table.nodes[row]
        changed = dict.fromkeys(nodes)
        for node_name, pool in slices:
            if not node_name:  # a slice for many nodes
                self._restart()
                return
            its_row = table.row_of(node_name)
            if its_row is not None:
                changed[its_row] = None
            changed.update(self._rows_of_pool.get(pool, {}))
        for pool in pools:
            changed.update(self._rows_of_pool.get(pool, {}))
        for row in changed:
            self._changed.append(row)

    def _restart(self) -> None:
        """Forget every row."""
        self._structure = self._table.columns.structure
        self._nodes = list(self._table.nodes)
        self._columns.clear()
        self._views = [None] * len(self._nodes)
        self._rows_of_pool.clear()

    def _move_rows(self) -> None:
        """Take what is known of each node to the row that the node has now."""
        old, new = self._nodes, list(self._table.nodes)
        self._structure, self._nodes = self._table.columns.structure, new
        pairs = enumerate(zip_longest(old, new))
        others = [row for row, (then, now) in pairs if then is not now]
        row_before = {id(old[row]): row for row in others if row < len(old)}
        came_from = {row: row_before.get(id(new[row]), -1) for row in others if row < len(new)}
        for column in self._columns.values():
            self._mark_stale(column)
            column.move(len(new), came_from)
        views = [*self._views, None]
        for row in row_before.values():
            self._see(row, None)
        self._views = [*self._views[: len(new)], *[None] * (len(new) - len(old))]
        for row, before in came_from.items():
            self._see(row, views[before])

    # -- columns -------------------------------------------------------------------------------

    def _column(self, question: Question) -> _Column:
        """Return the column of a question, with the changed rows marked as stale."""
        column = self._columns.get(question)
        if column is None and len(self._columns) >= _QUESTIONS_MAX:
            self._columns.clear()
        numbers_most = max(_NUMBERS_MAX, _NUMBERS_OF_A_ROW_MAX * len(self._views))
        if column is None or len(column.numbers) > numbers_most:
            column = self._columns[question] = _Column(len(self._views), self._changed.position)
        self._mark_stale(column)
        return column

    def _mark_stale(self, column: _Column) -> None:
        """Mark the rows that changed since the column was last asked for."""
        if column.followed_to != self._changed.position:
            changed = self._changed.since(column.followed_to)
            column.is_stale_n[slice(None) if changed is None else changed] = True
            column.followed_to = self._changed.position

    def _read_stale(
        self, column: _Column, allocator: Allocator, properties: Question, rows: RowArray
    ) -> None:
        """Read the changed rows, and give them their new numbers."""
        stale = rows[column.is_stale_n[rows]].tolist()
        if not stale:
            return
        signatures: Signatures = allocator.signatures(properties)
        numbers = column.numbers
        for row in stale:
            check_time = allocator.timer(self._facts(row))
            key = signatures.signature_of(self._view(row, allocator), check_time)
            column.number_n[row] = numbers.setdefault(key, len(numbers))
            column.is_stale_n[row] = False

    def _view(self, row: int, allocator: Allocator) -> NodeView:
        """Return the pools that a row sees."""
        view = allocator.inventory.view(self._facts(row))
        if view is not self._views[row]:
            self._see(row, view)
        return view

    def _see(self, row: int, view: NodeView | None) -> None:
        """Note which pools a row sees."""
        before, self._views[row] = self._views[row], view
        for pool in () if before is None else before.pool_ids:
            del self._rows_of_pool[pool][row]
            if not self._rows_of_pool[pool]:
                del self._rows_of_pool[pool]
        for pool in () if view is None else view.pool_ids:
            self._rows_of_pool.setdefault(pool, {})[row] = None

    def _facts(self, row: int) -> NodeFacts:
        node = self._table.nodes[row]
        return NodeFacts(node.name, node.metadata.labels)
