"""A trial on many rows at once: the sums of requests are shifted for each row.

Only for attempts in which no Filter sees more of a row's pods than their sums.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_filters, broken_filter
from moorage.engine.filters.filter_pass import FilterPass
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.framework.what_if import Room
from moorage.snapshot.nominated_rows import NominatedSums
from moorage.snapshot.shifted import ShiftedSums
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]


class FilterResult:
    """`RowsResult` over the filter result of the Filters.

    Parameters
    ----------
    profile
        The profile of the Filters.
    found
        Their filter result.
    """

    def __init__(self, profile: Profile, found: FilterPass) -> None:
        self._profile = profile
        self._found = found
        self.passed: NDArray[np.bool_] = found.passed
        self.broken: NDArray[np.bool_] = found.broken
        self.nbytes = found.nbytes + self.passed.nbytes + self.broken.nbytes

    def status(self, position: int) -> Status:
        """Return the status of one row."""
        status = self._found.status(self._profile, position)
        return status if status.ok or status.rejected else broken_filter(status)


class TriedRows:
    """`RowsTrial` over shifted sums of the snapshot.

    Parameters
    ----------
    attempt, view
        The attempt, and the rows.
    sums
        The rows' sums.
    by_sums
        Indexes of the Filters that read them.
    nominated
        Positions in the view where nominated pods come first, and their sums; None without any.
    by_node
        The result on every row of the Filters that read the node alone; None when they must be
        asked.
    """

    def __init__(
        self,
        attempt: Attempt,
        view: NodeView,
        sums: ShiftedSums,
        by_sums: tuple[int, ...],
        *,
        nominated: tuple[Rows, NominatedSums] | None,
        by_node: FilterPass | None,
    ) -> None:
        self._attempt = attempt
        self._view = view
        self._by_sums = by_sums
        self._nominated = nominated
        self._by_node = by_node
        self._room: Room | None = None
        self._shift = sums.shift

    def shift(self, amounts: Mapping[str, Rows], pods: Rows) -> None:
        """Add to the sums of each row."""
        self._shift(amounts, pods)
        self._room = None

    def judge(self) -> FilterResult:
        """Run every Filter on the rows as they are now."""
        profile = self._attempt.profile
        if self._by_node is None:
            return FilterResult(profile, self._run(range(len(profile.filters))))
        found = self._by_node.at(self._view.row_numbers())
        found.merge(self._pass(self._by_sums, self._view))
        self._beside(found.put_sooner, self._by_sums)
        return FilterResult(profile, found)

    def put_back(self, amounts: Mapping[str, Rows], which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Put a pod back on rows that still pass with it; return the rows without room."""
        room = self._room or self._measured()
        if room is None:
            return self._put_back_and_judge(amounts, which)
        self._room = room
        return which & ~room.take(amounts, which)

    def _put_back_and_judge(
        self, amounts: Mapping[str, Rows], which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        added = {name: amount * which for name, amount in amounts.items()}
        self._shift(added, which.astype(np.int64))
        gone: NDArray[np.bool_] = which & ~self._run(self._by_sums).passed
        if gone.any():
            less = {name: -amount * gone for name, amount in amounts.items()}
            self._shift(less, -gone.astype(np.int64))
        return gone

    def _measured(self) -> Room | None:
        """Return the room on the rows as they are now; None where a Filter cannot tell the room."""
        at = self._attempt
        found: Room | None = None
        for index in self._by_sums:
            room = at.profile.filter_forms[index].room
            if found is not None or room is None:
                return None
            found = room(at.state, at.pod, self._view)
        if found is not None and self._nominated is not None:
            # Nominated pods only take room, so a row that passes beside them passes without.
            positions, added = self._nominated
            found.lessen(positions, added.amounts, added.pods)
        return found

    def _run(self, only: Iterable[int]) -> FilterPass:
        found = self._pass(only, self._view)
        self._beside(found.put_failures, only)
        return found

    def _beside(self, put: Callable[[Rows, FilterPass], None], only: Iterable[int]) -> None:
        """Judge the rows with nominated pods, those pods counted, and record the filter results."""
        if self._nominated is None:
            return
        positions, added = self._nominated
        snapshot = self._attempt.snapshot
        view = snapshot.rows(added.rows)
        with ShiftedSums(snapshot.table, view, frozenset(added.amounts)) as sums:
            sums.shift(added.amounts, added.pods)
            put(positions, self._pass(only, view))

    def _pass(self, only: Iterable[int], view: NodeView) -> FilterPass:
        return ask_filters(self._attempt, view, only=only)
